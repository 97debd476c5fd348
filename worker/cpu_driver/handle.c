#include "cpu_driver/handle.h"

#include <stdbool.h>
#include <stdlib.h>

/* A handle consists of the slot's index and a count of the slot's earlier uses. */
enum { INDEX_BITS = 24 };

struct handle_slot {
    enum cpu_handle_kind kind; /* NONE: free */
    uintptr_t generation;
    void *object;
};

static struct handle_slot *slots;
static size_t slot_count;

static void *handle_of(size_t index) {
    return (void *)((slots[index].generation << INDEX_BITS) | index);
}

static struct handle_slot *slot_of(const void *handle) {
    size_t index = (uintptr_t)handle & ((1u << INDEX_BITS) - 1);
    uintptr_t generation = (uintptr_t)handle >> INDEX_BITS;
    if (index >= slot_count || slots[index].generation != generation) return NULL;
    return &slots[index];
}

static bool grow(void) {
    size_t count = slot_count == 0 ? 64 : slot_count * 2;
    if (count > (1u << INDEX_BITS)) return false;
    struct handle_slot *grown = realloc(slots, count * sizeof *grown);
    if (grown == NULL) return false;
    for (size_t i = slot_count; i < count; i++) grown[i] = (struct handle_slot){.generation = 0};
    slots = grown;
    slot_count = count;
    return true;
}

void *cpu_handle_create(enum cpu_handle_kind kind, void *object) {
    size_t index = 0;
    while (index < slot_count && slots[index].kind != CPU_HANDLE_NONE) index++;
    if (index == slot_count && !grow()) return NULL;
    struct handle_slot *slot = &slots[index];
    *slot =
        (struct handle_slot){.kind = kind, .generation = slot->generation + 1, .object = object};
    return handle_of(index);
}

void *cpu_handle_find(enum cpu_handle_kind kind, const void *handle) {
    struct handle_slot *slot = slot_of(handle);
    return slot != NULL && slot->kind == kind ? slot->object : NULL;
}

void cpu_handle_drop(const void *handle) {
    struct handle_slot *slot = slot_of(handle);
    if (slot != NULL) slot->kind = CPU_HANDLE_NONE;
}

void *cpu_handle_next(enum cpu_handle_kind kind, size_t *cursor) {
    while (*cursor < slot_count) {
        size_t index = (*cursor)++;
        if (slots[index].kind == kind) return handle_of(index);
    }
    return NULL;
}
