/**
 * An intrusive doubly linked list: its items contain its nodes. A zeroed list is empty.
 *
 * Lifetime: nodes are the callers' and stay where they are while they are in the list. Threads: one
 * at a time.
 */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <stddef.h>

struct list_node {
    struct list_node *before, *after; /* NULL at the ends */
};

struct list {
    struct list_node *first, *last; /* NULL: it is empty */
};

/** The item whose `member` is `node`; not for NULL. */
#define LIST_ITEM(node, type, member) ((type *)(void *)((char *)(node)-offsetof(type, member)))

/** Adds a node, which must be in no list, as the last one. */
void list_append(struct list *list, struct list_node *node);

/** Removes a node, which must be in this list. */
void list_remove(struct list *list, struct list_node *node);

#endif
