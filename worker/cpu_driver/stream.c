#include "cpu_driver/stream.h"

#include <string.h>

#include "base/clock.h"
#include "base/condition.h"
#include "cpu_driver/handle.h"
#include "cpu_driver/hazard.h"

static struct cpu_stream streams[CPU_STREAMS_MAX];

/* The delay differs between operations, so that streams overtake each other. */
static uint64_t dawdle_ns(const struct cpu_stream *stream) {
    uint64_t mixed = (stream->issued * CPU_STREAMS_MAX + stream->slot) * 0x9e3779b97f4a7c15u;
    return 20000 + (mixed >> 48);
}

/* Keeps the thread of `stream` busy for `ns`, or for ever with UINT64_MAX, until a reset. */
static void stall(struct cpu_stream *stream, uint64_t ns) {
    uint64_t until = ns == UINT64_MAX ? UINT64_MAX : clock_ns() + ns;
    while (!cpu.is_stopping && clock_ns() < until) {
        (void)condition_wait_until(&stream->work, &cpu.lock, until);
    }
}

/* Waits for the next operation and its time; NULL: the thread has to end. */
static struct cpu_operation *next_operation(struct cpu_stream *stream) {
    while (!cpu.is_stopping) {
        struct cpu_operation *first = stream->first;
        if (first == NULL) {
            if (stream->state == CPU_STREAM_CLOSING) return NULL;
            pthread_cond_wait(&stream->work, &cpu.lock);
        } else if (first->number > stream->hurried && clock_ns() < first->due_ns) {
            (void)condition_wait_until(&stream->work, &cpu.lock, first->due_ns);
        } else {
            return first;
        }
    }
    return NULL;
}

bool cpu_point_is_done(struct cpu_point point) {
    return streams[point.slot].done >= point.number;
}

void cpu_point_hurry(struct cpu_point point) {
    struct cpu_stream *stream = &streams[point.slot];
    if (stream->hurried >= point.number) return;
    stream->hurried = point.number;
    pthread_cond_signal(&stream->work);
}

CUresult cpu_point_wait(struct cpu_point point, const struct cpu_device *device) {
    cpu_wait_begin();
    while (!cpu_point_is_done(point) && device->lost == CUDA_SUCCESS && !cpu.is_stopping) {
        cpu_point_hurry(point);
        pthread_cond_wait(&streams[point.slot].progress, &cpu.lock);
    }
    CUresult result = cpu.is_stopping ? CUDA_ERROR_DEINITIALIZED : device->lost;
    cpu_wait_end();
    return result;
}

static void run_copy(const struct cpu_copy *copy, uint64_t *moved) {
    pthread_mutex_unlock(&cpu.lock);
    memcpy(copy->to, copy->from, copy->bytes);
    pthread_mutex_lock(&cpu.lock);
    *moved += copy->bytes;
    if (copy->is_pageable) cpu.counters.copies_pageable++;
}

static void run_fill(const struct cpu_fill *fill) {
    pthread_mutex_unlock(&cpu.lock);
    memset(fill->to, fill->value, fill->bytes);
    pthread_mutex_lock(&cpu.lock);
    cpu.counters.bytes_filled += fill->bytes;
}

static CUresult run_launch(const struct cpu_operation *operation, struct cpu_engine *engine) {
    pthread_mutex_unlock(&cpu.lock);
    CUresult result = cpu_launch_run(operation->launch, engine);
    pthread_mutex_lock(&cpu.lock);
    cpu.counters.launches++;
    for (unsigned i = 0; i < operation->use_count; i++)
        cpu_block_check_guards(operation->uses[i].block);
    return result;
}

/* Whether the operation names memory that was freed while it was queued. */
static bool names_freed_memory(const struct cpu_operation *operation) {
    for (unsigned i = 0; i < operation->use_count; i++)
        if (operation->uses[i].block->is_freed) return true;
    return false;
}

static CUresult suffer(const struct cpu_fault *fault, struct cpu_stream *stream) {
    if (fault->effect == CPU_EFFECT_HANG) stall(stream, UINT64_MAX);
    if (fault->effect == CPU_EFFECT_SLOW) stall(stream, fault->delay_ns);
    return fault->effect == CPU_EFFECT_LOSE ? fault->result : CUDA_SUCCESS;
}

/* Releases the lock while it copies, computes or waits. */
static CUresult run_operation(
    struct cpu_operation *operation, struct cpu_stream *stream, struct cpu_engine *engine) {
    CUresult result = suffer(&operation->fault, stream);
    if (result != CUDA_SUCCESS || cpu.is_stopping) return result;
    if (names_freed_memory(operation)) return CUDA_ERROR_ILLEGAL_ADDRESS;
    switch (operation->kind) {
    case CPU_OPERATION_TO_DEVICE:
        run_copy(&operation->copy, &cpu.counters.bytes_to_device);
        return CUDA_SUCCESS;
    case CPU_OPERATION_TO_HOST:
        run_copy(&operation->copy, &cpu.counters.bytes_to_host);
        return CUDA_SUCCESS;
    case CPU_OPERATION_FILL: run_fill(&operation->fill); return CUDA_SUCCESS;
    case CPU_OPERATION_LAUNCH: return run_launch(operation, engine);
    case CPU_OPERATION_RECORD:
        cpu_event_pass(operation->event,
            (struct cpu_point){.slot = stream->slot, .number = operation->number});
        return CUDA_SUCCESS;
    case CPU_OPERATION_WAIT: return cpu_point_wait(operation->wait, stream->device);
    }
    return CUDA_ERROR_UNKNOWN;
}

static void remove_first(struct cpu_stream *stream) {
    struct cpu_operation *operation = stream->first;
    stream->first = operation->next;
    if (stream->first == NULL) stream->end = &stream->first;
    cpu_operation_destroy(operation);
}

static void *stream_main(void *argument) {
    struct cpu_stream *stream = argument;
    struct cpu_engine engine;
    cpu_engine_init(&engine);
    pthread_setname_np(pthread_self(), "cpu-stream");
    pthread_mutex_lock(&cpu.lock);
    struct cpu_operation *operation;
    while ((operation = next_operation(stream)) != NULL) {
        if (stream->device->lost == CUDA_SUCCESS) {
            CUresult result = run_operation(operation, stream, &engine);
            if (result != CUDA_SUCCESS) cpu_device_lose(stream->device, result);
        }
        stream->done = operation->number;
        remove_first(stream);
        pthread_cond_broadcast(&stream->progress);
    }
    while (stream->first != NULL) remove_first(stream);
    stream->done = stream->issued;
    stream->state = CPU_STREAM_ENDED;
    pthread_cond_broadcast(&stream->progress);
    pthread_mutex_unlock(&cpu.lock);
    cpu_engine_fini(&engine);
    return NULL;
}

/*
 * A thread that has ended does not need the lock any more, so it can be joined with the lock held.
 */
static void join_if_ended(struct cpu_stream *stream) {
    if (stream->state != CPU_STREAM_ENDED) return;
    pthread_join(stream->thread, NULL);
    stream->state = CPU_STREAM_FREE;
}

static struct cpu_stream *find_free(void) {
    for (unsigned slot = 0; slot < CPU_STREAMS_MAX; slot++) {
        join_if_ended(&streams[slot]);
        if (streams[slot].state != CPU_STREAM_FREE) continue;
        streams[slot].slot = slot;
        return &streams[slot];
    }
    return NULL;
}

/* A destroyed stream without work, whose thread is ending. */
static struct cpu_stream *find_ending(void) {
    for (unsigned slot = 0; slot < CPU_STREAMS_MAX; slot++)
        if (streams[slot].state == CPU_STREAM_CLOSING && streams[slot].first == NULL)
            return &streams[slot];
    return NULL;
}

static struct cpu_stream *take_slot(void) {
    struct cpu_stream *free_slot, *ending;
    while ((free_slot = find_free()) == NULL && (ending = find_ending()) != NULL)
        pthread_cond_wait(&ending->progress, &cpu.lock);
    return free_slot;
}

static void create_conditions(struct cpu_stream *stream) {
    pthread_cond_init(&stream->work, NULL);
    pthread_cond_init(&stream->progress, NULL);
    stream->has_conditions = true;
}

static bool stream_start(struct cpu_stream *stream, struct cpu_device *device) {
    if (!stream->has_conditions) create_conditions(stream);
    stream->device = device;
    stream->end = &stream->first;
    memset(stream->known, 0, sizeof stream->known);
    if (pthread_create(&stream->thread, NULL, stream_main, stream) != 0) return false;
    stream->state = CPU_STREAM_OPEN;
    return true;
}

CUresult cpu_stream_create(struct cpu_device *device, unsigned flags, CUstream *ret) {
    if ((flags & ~(unsigned)CU_STREAM_NON_BLOCKING) != 0) return CUDA_ERROR_INVALID_VALUE;
    struct cpu_stream *stream = take_slot();
    if (stream == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    CUstream handle = cpu_handle_create(CPU_HANDLE_STREAM, stream);
    if (handle == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
    if (!stream_start(stream, device)) {
        cpu_handle_drop(handle);
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    cpu.wake_streams = cpu_streams_wake;
    cpu.counters.streams_live++;
    *ret = handle;
    return CUDA_SUCCESS;
}

void cpu_stream_destroy(CUstream handle) {
    struct cpu_stream *stream = cpu_handle_find(CPU_HANDLE_STREAM, handle);
    cpu_handle_drop(handle);
    cpu.counters.streams_live--;
    /* A reset may have ended the thread already. */
    if (stream->state == CPU_STREAM_OPEN) stream->state = CPU_STREAM_CLOSING;
    pthread_cond_signal(&stream->work);
}

struct cpu_stream *cpu_stream_find(const struct cpu_device *device, CUstream handle) {
    struct cpu_stream *stream = cpu_handle_find(CPU_HANDLE_STREAM, handle);
    return stream != NULL && stream->device == device ? stream : NULL;
}

struct cpu_point cpu_stream_enqueue(struct cpu_stream *stream, struct cpu_operation *operation) {
    operation->number = ++stream->issued;
    operation->due_ns = clock_ns() + dawdle_ns(stream);
    struct cpu_point here = {.slot = stream->slot, .number = operation->number};
    for (unsigned i = 0; i < operation->use_count; i++)
        cpu_hazard_note(&operation->uses[i], here, stream->known, cpu_point_is_done);
    bool was_idle = stream->first == NULL;
    *stream->end = operation;
    stream->end = &operation->next;
    if (was_idle) pthread_cond_signal(&stream->work);
    return here;
}

CUresult cpu_stream_synchronize(struct cpu_stream *stream) {
    struct cpu_point last = {.slot = stream->slot, .number = stream->issued};
    return cpu_point_wait(last, stream->device);
}

void cpu_streams_wake(void) {
    for (unsigned slot = 0; slot < CPU_STREAMS_MAX; slot++) {
        struct cpu_stream *stream = &streams[slot];
        if (stream->state == CPU_STREAM_FREE) continue;
        pthread_cond_broadcast(&stream->work);
        pthread_cond_broadcast(&stream->progress);
    }
}

static void wait_for_end(struct cpu_stream *stream) {
    cpu_point_hurry((struct cpu_point){.slot = stream->slot, .number = stream->issued});
    while (stream->state != CPU_STREAM_ENDED) pthread_cond_wait(&stream->progress, &cpu.lock);
    join_if_ended(stream);
}

void cpu_streams_drain(const struct cpu_device *device) {
    for (unsigned slot = 0; slot < CPU_STREAMS_MAX; slot++) {
        struct cpu_stream *stream = &streams[slot];
        if (stream->state != CPU_STREAM_FREE && stream->device == device) wait_for_end(stream);
    }
}
