#include "base/hash_table.h"

#include <stdlib.h>

#include "base/invariant.h"

enum { BUCKETS_MIN = 16 };

static size_t index_of(const struct hash_table *table, uint64_t hash) {
    return (size_t)(hash & (table->bucket_count - 1));
}

static struct hash_node **bucket_of(struct hash_table *table, uint64_t hash) {
    return table->buckets == NULL ? &table->only : &table->buckets[index_of(table, hash)];
}

static void push(struct hash_node **bucket, struct hash_node *node) {
    node->next = *bucket;
    *bucket = node;
}

static void move_all(struct hash_table *table, struct hash_node *node) {
    while (node != NULL) {
        struct hash_node *next = node->next;
        push(bucket_of(table, node->hash), node);
        node = next;
    }
}

/* As many buckets as nodes, at least. */
static void grow(struct hash_table *table) {
    struct hash_table earlier = *table;
    size_t bucket_count = earlier.buckets == NULL ? BUCKETS_MIN : 2 * earlier.bucket_count;
    struct hash_node **buckets = calloc(bucket_count, sizeof buckets[0]);
    if (buckets == NULL) return;
    table->buckets = buckets;
    table->bucket_count = bucket_count;
    table->only = NULL;
    move_all(table, earlier.only);
    for (size_t i = 0; i < earlier.bucket_count; i++) move_all(table, earlier.buckets[i]);
    free(earlier.buckets);
}

void hash_table_fini(struct hash_table *table) {
    free(table->buckets);
    *table = (struct hash_table){0};
}

void hash_table_add(struct hash_table *table, struct hash_node *node, uint64_t hash) {
    if (table->count >= table->bucket_count) grow(table);
    node->hash = hash;
    push(bucket_of(table, hash), node);
    table->count++;
}

void hash_table_remove(struct hash_table *table, struct hash_node *node) {
    struct hash_node **link = bucket_of(table, node->hash);
    while (*link != NULL && *link != node) link = &(*link)->next;
    INVARIANT(*link == node, "a node that is removed is in the table");
    *link = node->next;
    table->count--;
}

static struct hash_node *first_of(struct hash_node *node, uint64_t hash) {
    while (node != NULL && node->hash != hash) node = node->next;
    return node;
}

struct hash_node *hash_table_find(const struct hash_table *table, uint64_t hash) {
    if (table->buckets == NULL) return first_of(table->only, hash);
    return first_of(table->buckets[index_of(table, hash)], hash);
}

struct hash_node *hash_node_next(const struct hash_node *node) {
    return first_of(node->next, node->hash);
}

struct hash_node *hash_table_walk(const struct hash_table *table, const struct hash_node *node) {
    if (node != NULL && node->next != NULL) return node->next;
    if (table->buckets == NULL) return node == NULL ? table->only : NULL;
    size_t i = node == NULL ? 0 : index_of(table, node->hash) + 1;
    while (i < table->bucket_count && table->buckets[i] == NULL) i++;
    return i < table->bucket_count ? table->buckets[i] : NULL;
}
