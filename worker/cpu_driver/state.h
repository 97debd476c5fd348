/**
 * What the driver remembers, under one lock: calls hold it, work on the streams (copies, kernels)
 * runs without it. A driver for tests and laptops has no need of finer locks.
 *
 * Everything declared in this folder's inner headers is called with the lock held unless it says
 * otherwise.
 */
#ifndef CPU_DRIVER_STATE_H
#define CPU_DRIVER_STATE_H

#include <pthread.h>

#include "cpu_driver/cpu_driver.h"
#include "cpu_driver/faults.h"

enum { CPU_DEVICES_MAX = 16, CPU_STREAMS_MAX = 256 };

/** A device and its primary context: a CUcontext points to it. */
struct cpu_device {
    CUdevice ordinal;
    unsigned retained;
    CUresult lost;      /* the sticky error, CUDA_SUCCESS while the context lives */
    size_t memory_used; /* in multiples of 512 */
};

struct cpu_state {
    pthread_mutex_t lock;
    pthread_cond_t stopping; /* is_stopping was set, or a wait has ended since */
    bool is_initialised;
    bool is_stopping;           /* a reset is under way: nobody waits any more */
    unsigned waits;             /* of threads that look at is_stopping when they wake */
    void (*wake_streams)(void); /* cpu_streams_wake() once there is a stream; else NULL */
    int device_count;
    size_t memory_bytes; /* of each device */
    struct cpu_device devices[CPU_DEVICES_MAX];
    struct cpu_faults faults;
    struct cpu_driver_counters counters;
};

extern struct cpu_state cpu;

/** Frames a wait that a reset ends; the reset goes on when all have ended. */
void cpu_wait_begin(void);
void cpu_wait_end(void);

/** From now on every call answers `result`, and every wait ends with it. The first loss counts. */
void cpu_device_lose(struct cpu_device *device, CUresult result);

#endif
