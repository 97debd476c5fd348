/**
 * Streams: a thread with a queue each. A thread begins an operation when somebody asks for a result
 * at or behind it, or when it has been due for some time: late, and in no order across streams.
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

/** Slots are used again; `issued` and `done` go on counting, so that old points stay true. */
struct cpu_stream {
    enum cpu_stream_state state;
    unsigned slot;
    bool has_conditions; /* initialised once, kept while the slot is used again */
    struct cpu_device *device;
    pthread_t thread;
    pthread_cond_t work;     /* to its thread: an operation, a hurry, the end */
    pthread_cond_t progress; /* from its thread: `done` has grown */
    struct cpu_operation *first, **end;
    uint64_t issued, done, hurried; /* numbers of operations */
    uint64_t known[CPU_STREAMS_MAX];
};

CUresult cpu_stream_create(struct cpu_device *device, unsigned flags, CUstream *ret);

/** Waits for nothing; queued work still runs. */
void cpu_stream_destroy(CUstream handle);

/** The stream of this device, or NULL. */
struct cpu_stream *cpu_stream_find(const struct cpu_device *device, CUstream handle);

/** Takes the operation; what it uses must have been said before. Returns its point. */
struct cpu_point cpu_stream_enqueue(struct cpu_stream *stream, struct cpu_operation *operation);

/** Waits until everything enqueued so far is done, or the context is lost. */
CUresult cpu_stream_synchronize(struct cpu_stream *stream);

bool cpu_point_is_done(struct cpu_point point);

/** Asks the stream to get there without dawdling. */
void cpu_point_hurry(struct cpu_point point);

/** Hurries it and waits, until `device` is lost at most. */
CUresult cpu_point_wait(struct cpu_point point, const struct cpu_device *device);

/** Wakes everybody who waits, to look again at what has become of the world. */
void cpu_streams_wake(void);

/** Waits for the device's destroyed streams to end: for ever where one hangs, but for a reset. */
void cpu_streams_drain(const struct cpu_device *device);

#endif
