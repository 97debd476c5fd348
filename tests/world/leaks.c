/*
 * The linker puts these in the place of what takes and gives back what must be given back
 * (CMakeLists.txt). What is there before leaks_begin() is nobody's leak.
 */
#include "world/leaks.h"

#include <librdkafka/rdkafka.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROOM = 1 << 16 }; /* a power of two, and far more than is ever held */

struct held {
    const void *at, *taker; /* where it is, and who took it */
};

/* Of the program, as the linker says. */
extern const char __executable_start;
extern const void *const __data_start, *const _end;

static struct held table[ROOM];
static bool is_on;

static size_t place_of(const void *at) {
    return (size_t)((uintptr_t)at * 0x9e3779b97f4a7c15u >> 48);
}

static struct held *find(const void *at) {
    size_t i = place_of(at);
    while (table[i].at != NULL && table[i].at != at) i = (i + 1) % ROOM;
    return &table[i];
}

void *leaks_note(void *at, const void *taker) {
    if (is_on && at != NULL) *find(at) = (struct held){at, taker};
    return at;
}

/* What stands behind it moves up, so that it is found. */
void leaks_forget(const void *at) {
    struct held *gone = at != NULL ? find(at) : NULL;
    if (gone == NULL || gone->at == NULL) return;
    size_t hole = (size_t)(gone - table);
    for (size_t i = (hole + 1) % ROOM; table[i].at != NULL; i = (i + 1) % ROOM) {
        size_t way = (i - place_of(table[i].at)) % ROOM;
        if (way < (i - hole) % ROOM) continue;
        table[hole] = table[i];
        hole = i;
    }
    table[hole] = (struct held){0};
}

/* A static variable still knows it, for the next one who needs such a thing. */
static bool is_kept(const void *at) {
    for (const void *const *word = &__data_start; word < &_end; word++) {
        if ((const void *)word == table) word = (const void *)(table + ROOM);
        if (word < &_end && *word == at) return true;
    }
    return false;
}

void leaks_begin(void) {
    is_on = true;
}

size_t leaks_end(void) {
    size_t ret = 0;
    is_on = false;
    for (size_t i = 0; i < ROOM; i++) {
        if (table[i].at == NULL || is_kept(table[i].at)) continue;
        ret++;
        fprintf(stderr, "what was taken at +%#tx is not given back\n",
            (const char *)table[i].taker - &__executable_start);
    }
    return ret;
}

/* ---- in the place of what the code calls; the clients of a world call other names, since what
 * they keep is theirs, and one of them may be left to the end of its process ---- */

#define TAKING(name, parameters, arguments)                                                        \
    void *__real_##name parameters;                                                                \
    void *__wrap_##name parameters;                                                                \
    void *__wrap_##name parameters {                                                               \
        return leaks_note(__real_##name arguments, __builtin_return_address(0));                   \
    }                                                                                              \
    void *world_##name parameters;                                                                 \
    void *world_##name parameters {                                                                \
        return __real_##name arguments;                                                            \
    }

#define GIVING_BACK(name)                                                                          \
    void __real_##name(void *at);                                                                  \
    void __wrap_##name(void *at);                                                                  \
    void __wrap_##name(void *at) {                                                                 \
        leaks_forget(at);                                                                          \
        __real_##name(at);                                                                         \
    }

TAKING(rd_kafka_topic_partition_list_new, (int size), (size))
TAKING(rd_kafka_topic_partition_list_copy, (const void *list), (list))
TAKING(rd_kafka_headers_new, (size_t count), (count))
TAKING(rd_kafka_headers_copy, (const void *headers), (headers))
TAKING(rd_kafka_consumer_group_metadata_new_with_genid,
    (const char *group, int32_t generation, const char *member, const char *instance),
    (group, generation, member, instance))
GIVING_BACK(rd_kafka_headers_destroy)
GIVING_BACK(rd_kafka_consumer_group_metadata_destroy)
GIVING_BACK(free)

/* The library frees what the worker allocated for its elements. */
void __real_rd_kafka_topic_partition_list_destroy(rd_kafka_topic_partition_list_t *list);
void __wrap_rd_kafka_topic_partition_list_destroy(rd_kafka_topic_partition_list_t *list);
void __wrap_rd_kafka_topic_partition_list_destroy(rd_kafka_topic_partition_list_t *list) {
    for (int i = 0; i < list->cnt; i++) leaks_forget(list->elems[i].metadata);
    leaks_forget(list);
    __real_rd_kafka_topic_partition_list_destroy(list);
}
