/*
 * The linker puts these in the place of the C library's functions (CMakeLists.txt). The world's own
 * code calls other names, since it has no use for an allocation that fails.
 */
#include "world/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "world/leaks.h"
#include "world/scheduler.h"

enum { ODDS = 100, SINKS_MAX = 2 };

static uint64_t *failing_until_ns;   /* in the region */
static _Thread_local unsigned depth; /* of calls into worker/broker */

void memory_begin(void) {
    failing_until_ns = scheduler_alloc(sizeof *failing_until_ns);
}

void memory_fail_until(uint64_t until_ns) {
    *failing_until_ns = until_ns;
}

static bool fails(void) {
    return depth > 0 && failing_until_ns != NULL && scheduler_now_ns() < *failing_until_ns &&
           scheduler_draw(ODDS) == 0;
}

/* ---- in the place of what the code calls ---- */

#define FAILING(name, parameters, arguments)                                                       \
    void *__real_##name parameters;                                                                \
    void *__wrap_##name parameters;                                                                \
    void *world_##name parameters;                                                                 \
    void *__wrap_##name parameters {                                                               \
        return fails() ? NULL : leaks_note(__real_##name arguments, __builtin_return_address(0));  \
    }                                                                                              \
    void *world_##name parameters {                                                                \
        return __real_##name arguments;                                                            \
    }

FAILING(malloc, (size_t size), (size))
FAILING(calloc, (size_t count, size_t size), (count, size))
FAILING(strdup, (const char *text), (text))

void *__real_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void *world_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size) {
    void *ret = fails() ? NULL : __real_realloc(memory, size);
    if (ret != NULL) leaks_forget(memory);
    return leaks_note(ret, __builtin_return_address(0));
}

void *world_realloc(void *memory, size_t size) {
    return __real_realloc(memory, size);
}

/* ---- where worker/broker is called ---- */

static const struct source_operations *source_calls;

static enum err watched_poll(
    struct source *source, int timeout_ms, struct delivery **ret, bool *at_end, struct error *err) {
    depth++;
    enum err code = source_calls->poll(source, timeout_ms, ret, at_end, err);
    depth--;
    return code;
}

static void watched_pause(struct source *source, bool paused) {
    depth++;
    source_calls->pause(source, paused);
    depth--;
}

static enum err watched_close(struct source *source, int timeout_ms, struct error *err) {
    depth++;
    enum err code = source_calls->close(source, timeout_ms, err);
    depth--;
    return code;
}

void memory_watch_source(struct source *source) {
    static struct source_operations watched;
    source_calls = source->operations;
    watched = *source_calls;
    watched.poll = watched_poll;
    watched.pause = watched_pause;
    watched.close = watched_close;
    source->operations = &watched;
}

static struct {
    const struct sink *sink;
    const struct sink_operations *calls;
    struct sink_operations watched;
} sinks[SINKS_MAX];

static const struct sink_operations *calls_of(const struct sink *sink) {
    size_t i = 0;
    while (sinks[i].sink != sink) i++;
    return sinks[i].calls;
}

static void watched_send(struct sink *sink, struct record *record) {
    depth++;
    calls_of(sink)->send(sink, record);
    depth--;
}

static void watched_serve(struct sink *sink, int timeout_ms) {
    depth++;
    calls_of(sink)->serve(sink, timeout_ms);
    depth--;
}

static enum err watched_flush(struct sink *sink, int timeout_ms, struct error *err) {
    depth++;
    enum err code = calls_of(sink)->flush(sink, timeout_ms, err);
    depth--;
    return code;
}

void memory_watch_sink(struct sink *sink) {
    static size_t count;
    if (sink == NULL) return;
    sinks[count].sink = sink;
    sinks[count].calls = sink->operations;
    sinks[count].watched = *sink->operations;
    sinks[count].watched.send = watched_send;
    sinks[count].watched.serve = watched_serve;
    sinks[count].watched.flush = watched_flush;
    sink->operations = &sinks[count++].watched;
}
