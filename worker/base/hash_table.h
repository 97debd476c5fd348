/**
 * An intrusive hash table: its items contain its nodes. Nodes are chained in buckets, whose number
 * grows with the table.
 *
 * The table knows hashes only. The caller compares keys with each node of the same hash, and uses
 * hashes that senders cannot choose (base/hash.h). A zeroed table is empty. Adding never fails: if
 * memory for more buckets is short, look-ups take longer.
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
    struct hash_node **buckets; /* NULL: all nodes are in `only` */
    struct hash_node *only;
    size_t bucket_count; /* a power of two, or 0 without buckets */
    size_t count;        /* of nodes */
};

/** The item whose `member` is `node`; not for NULL. */
#define HASH_ITEM(node, type, member) ((type *)(void *)((char *)(node)-offsetof(type, member)))

/** Frees the buckets. Nodes that are still in the table are not touched. */
void hash_table_fini(struct hash_table *table);

void hash_table_add(struct hash_table *table, struct hash_node *node, uint64_t hash);

/** Removes a node, which must be in the table. */
void hash_table_remove(struct hash_table *table, struct hash_node *node);

/** A node with this hash, and the next one with the same hash; NULL if there is none. */
struct hash_node *hash_table_find(const struct hash_table *table, uint64_t hash);
struct hash_node *hash_node_next(const struct hash_node *node);

/**
 * Walks all nodes: returns the one after `node`, or the first for NULL. `node` may be removed once
 * the next one is known.
 */
struct hash_node *hash_table_walk(const struct hash_table *table, const struct hash_node *node);

#endif
