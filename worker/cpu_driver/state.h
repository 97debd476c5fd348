/**
 * The driver's state, under one lock. Calls hold the lock; work on the streams (copies, kernels)
 * runs without it. A driver for tests and laptops needs no finer locks.
 *
 * Functions of this folder's inner headers are called with the lock held, unless they say
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
    bool is_stopping;           /* a reset is under way: all waits end */
    unsigned waits;             /* threads that check is_stopping when they wake */
    void (*wake_streams)(void); /* cpu_streams_wake() once there is a stream; else NULL */
    int device_count;
    size_t memory_bytes; /* of each device */
    struct cpu_device devices[CPU_DEVICES_MAX];
    struct cpu_faults faults;
    struct cpu_driver_counters counters;
};

extern struct cpu_state cpu;

/**
 * Call these around a wait that a reset must end. The reset continues when all such waits have
 * ended.
 */
void cpu_wait_begin(void);
void cpu_wait_end(void);

/** From now on every call answers `result`, and every wait ends with it. The first loss counts. */
void cpu_device_lose(struct cpu_device *device, CUresult result);

#endif
