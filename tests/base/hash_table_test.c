#include "base/hash_table.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "testing.h"

enum { COUNT = 1000 };

struct item {
    int number;
    struct hash_node node; /* not the first field: it is found by its place */
    bool is_seen;
};

static bool is_memory_short; /* see CMakeLists.txt */

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size) {
    return is_memory_short ? NULL : __real_calloc(count, size);
}

static struct item *item_of(struct hash_node *node) {
    return HASH_ITEM(node, struct item, node);
}

/* Spread as hashes are; several numbers have the same. */
static uint64_t hash_of(int number) {
    return (uint64_t)(number / 3) * 0x9e3779b97f4a7c15u;
}

static struct item *find(const struct hash_table *table, int number) {
    struct hash_node *node = hash_table_find(table, hash_of(number));
    for (; node != NULL; node = hash_node_next(node))
        if (item_of(node)->number == number) return item_of(node);
    return NULL;
}

static void add_all(struct hash_table *table, struct item items[static COUNT]) {
    memset(items, 0, COUNT * sizeof items[0]);
    for (int i = 0; i < COUNT; i++) {
        items[i].number = i;
        hash_table_add(table, &items[i].node, hash_of(i));
    }
}

/* Keys that stay are found, the others are not. */
static void check_finds(const struct hash_table *table, struct item *items, int removed_every) {
    for (int i = 0; i < COUNT; i++) {
        bool is_removed = removed_every > 0 && i % removed_every == 0;
        assert_ptr_equal(find(table, i), is_removed ? NULL : &items[i]);
    }
    assert_null(find(table, COUNT + 3));
}

static void check_adding_and_removing(void) {
    static struct item items[COUNT];
    struct hash_table table = {0};
    assert_null(find(&table, 0));
    add_all(&table, items);
    assert_int_equal(table.count, COUNT);
    check_finds(&table, items, 0);
    for (int i = 0; i < COUNT; i += 2) hash_table_remove(&table, &items[i].node);
    assert_int_equal(table.count, COUNT / 2);
    check_finds(&table, items, 2);
    for (int i = 0; i < COUNT; i += 2) hash_table_add(&table, &items[i].node, hash_of(i));
    check_finds(&table, items, 0);
    hash_table_fini(&table);
    assert_int_equal(table.count, 0);
}

TEST(what_is_added_is_found_until_it_is_removed) {
    check_adding_and_removing();
}

TEST(without_memory_for_buckets_the_same_is_found) {
    is_memory_short = true;
    check_adding_and_removing();
    is_memory_short = false;
}

TEST(buckets_grow_again_once_there_is_memory) {
    static struct item items[COUNT];
    struct hash_table table = {0};
    is_memory_short = true;
    hash_table_add(&table, &items[0].node, hash_of(0));
    is_memory_short = false;
    assert_null(table.buckets);
    hash_table_remove(&table, &items[0].node);
    add_all(&table, items);
    check_finds(&table, items, 0);
    assert_true(table.bucket_count >= COUNT);
    assert_int_equal(table.bucket_count & (table.bucket_count - 1), 0);
    hash_table_fini(&table);
}

TEST(a_walk_comes_to_each_once_though_it_removes_some) {
    static struct item items[COUNT];
    for (int is_short = 0; is_short <= 1; is_short++) {
        struct hash_table table = {0};
        int count = 0;
        is_memory_short = is_short;
        assert_null(hash_table_walk(&table, NULL));
        add_all(&table, items);
        struct hash_node *next = hash_table_walk(&table, NULL), *node;
        while ((node = next) != NULL) {
            struct item *item = item_of(node);
            next = hash_table_walk(&table, node);
            assert_false(item->is_seen);
            item->is_seen = true;
            count++;
            if (item->number % 5 == 0) hash_table_remove(&table, node);
        }
        is_memory_short = false;
        assert_int_equal(count, COUNT);
        check_finds(&table, items, 5);
        hash_table_fini(&table);
    }
}

RUN_TESTS(T(what_is_added_is_found_until_it_is_removed),
    T(without_memory_for_buckets_the_same_is_found), T(buckets_grow_again_once_there_is_memory),
    T(a_walk_comes_to_each_once_though_it_removes_some))
