/**
 * A hash table of things that hold its node: chained, in buckets that grow as it does.
 *
 * It knows hashes alone. Who finds something compares what it stands for with each node of its
 * hash, and gives hashes that strangers cannot choose (base/hash.h). A table of zeros is an empty
 * one; to add never fails: where memory for more buckets is short, look-ups take longer.
 *
 * Lifetime: nodes are the callers' and stay where they are while they are in the table. Threads:
 * one at a time.
 */
#ifndef BASE_HASH_TABLE_H
#define BASE_HASH_TABLE_H

#include <stddef.h>
#include <stdint.h>

struct hash_node {
    struct hash_node *next; /* in the bucket */
    uint64_t hash;
};

struct hash_table {
    struct hash_node **buckets; /* NULL: all are in `only` */
    struct hash_node *only;
    size_t bucket_count; /* a power of two, or 0 without buckets */
    size_t count;        /* of nodes */
};

/** What holds `node`, which is its `member`; not for NULL. */
#define HASH_ITEM(node, type, member) ((type *)(void *)((char *)(node)-offsetof(type, member)))

/** Gives the buckets back. Nothing happens to nodes that are still there. */
void hash_table_fini(struct hash_table *table);

void hash_table_add(struct hash_table *table, struct hash_node *node, uint64_t hash);

/** The node is in the table. */
void hash_table_remove(struct hash_table *table, struct hash_node *node);

/** A node of this hash, and the next one of the same; NULL where there is none (more). */
struct hash_node *hash_table_find(const struct hash_table *table, uint64_t hash);
struct hash_node *hash_node_next(const struct hash_node *node);

/** All nodes, one after the other: the one after `node`, and after NULL the first. `node` itself
 * may leave as soon as the one after it is known. */
struct hash_node *hash_table_walk(const struct hash_table *table, const struct hash_node *node);

#endif
