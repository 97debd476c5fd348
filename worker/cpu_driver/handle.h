/**
 * Handles that are not pointers: a stale or foreign one is detected, never dereferenced. Units: an
 * opaque number, never 0. Lifetime: from cpu_handle_create() to cpu_handle_drop().
 */
#ifndef CPU_DRIVER_HANDLE_H
#define CPU_DRIVER_HANDLE_H

#include <stddef.h>
#include <stdint.h>

enum cpu_handle_kind {
    CPU_HANDLE_NONE,
    CPU_HANDLE_STREAM,
    CPU_HANDLE_EVENT,
    CPU_HANDLE_MODULE,
    CPU_HANDLE_FUNCTION,
    CPU_HANDLE_GRAPH,
    CPU_HANDLE_GRAPH_EXEC
};

/** NULL when memory is short. */
void *cpu_handle_create(enum cpu_handle_kind kind, void *object);

/** The object, or NULL if `handle` is not a live handle of this kind. */
void *cpu_handle_find(enum cpu_handle_kind kind, const void *handle);

void cpu_handle_drop(const void *handle);

/** The next live handle of this kind from `*cursor` (0 at first) on, or NULL. For clean-up. */
void *cpu_handle_next(enum cpu_handle_kind kind, size_t *cursor);

#endif
