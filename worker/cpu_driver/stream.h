/**
 * Streams, each a thread with a queue. A thread begins an operation when its result, or that of a
 * later one, is asked for, or after a delay. So work runs late, and in any order across streams.
 */
#ifndef CPU_DRIVER_STREAM_H
#define CPU_DRIVER_STREAM_H

#include "cpu_driver/operation.h"

enum cpu_stream_state {
    CPU_STREAM_FREE,
    CPU_STREAM_OPEN,
    CPU_STREAM_CLOSING, /* destroyed by its owner; what is queued still runs */
    CPU_STREAM_ENDED    /* its thread waits to be joined */
};

/** Slots are used again. `issued` and `done` are never reset, so that old points stay valid. */
struct cpu_stream {
    enum cpu_stream_state state;
    unsigned slot;
    bool has_conditions; /* initialised once, kept while the slot is used again */
    struct cpu_device *device;
    pthread_t thread;
    pthread_cond_t work;     /* wakes its thread: a new operation, a request to hurry, the end */
    pthread_cond_t progress; /* from its thread: `done` has grown */
    struct cpu_operation *first, **end;
    uint64_t issued, done, hurried; /* numbers of operations */
    uint64_t known[CPU_STREAMS_MAX];
};

CUresult cpu_stream_create(struct cpu_device *device, unsigned flags, CUstream *ret);

/** Does not wait; queued work still runs. */
void cpu_stream_destroy(CUstream handle);

/** The stream of this device, or NULL. */
struct cpu_stream *cpu_stream_find(const struct cpu_device *device, CUstream handle);

/** Takes the operation, whose uses must have been noted before. Returns its point. */
struct cpu_point cpu_stream_enqueue(struct cpu_stream *stream, struct cpu_operation *operation);

/** Waits until everything enqueued so far is done, or the context is lost. */
CUresult cpu_stream_synchronize(struct cpu_stream *stream);

bool cpu_point_is_done(struct cpu_point point);

/** Asks the stream to run up to this point without delay. */
void cpu_point_hurry(struct cpu_point point);

/** Hurries the stream and waits for the point, or until `device` is lost. */
CUresult cpu_point_wait(struct cpu_point point, const struct cpu_device *device);

/** Wakes all waiting threads, so that they check their conditions again. */
void cpu_streams_wake(void);

/** Waits for the device's destroyed streams to end. If one hangs, only a reset ends the wait. */
void cpu_streams_drain(const struct cpu_device *device);

#endif
