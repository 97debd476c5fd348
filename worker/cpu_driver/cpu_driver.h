/**
 * The CUDA driver API on CPU threads, for machines without a GPU, and for failures that a GPU does
 * not produce on demand.
 *
 * Each stream has a thread that runs its queue, late on purpose: nothing happens inside the
 * enqueuing call, and a stream waits until its result is asked for or some microseconds have
 * passed. Device memory is host memory between guard bytes, filled with a pattern when it is
 * allocated and when it is freed. A range outside its allocation, memory freed while queued work
 * names it, and a kernel that writes over a guard each lose the context with an illegal address, as
 * on a GPU.
 *
 * The fault script makes calls fail. Its items are separated by ';' or ','; each is
 *
 *     FUNCTION:EFFECT[=DURATION]@WHEN     or     seed=NUMBER
 *
 *     cuMemAlloc:out_of_memory@3          the third call answers out of memory
 *     cuLaunchKernel:illegal_address@5    the fifth launch loses the context when it runs
 *     cuLaunchKernel:hang@2               the second launch never ends
 *     cuMemcpyHtoDAsync:slow=50ms@p0.01   every hundredth copy, drawn at random, takes 50 ms more
 *     cuMemAlloc:null@1                   success, but with a null pointer
 *     cuLaunchKernel:launch_failed@*      every launch
 *
 *     FUNCTION  a name of GPU_DRIVER_LIST
 *     EFFECT    of the call: out_of_memory, invalid_value, invalid_ptx, no_binary_for_gpu,
 *               launch_out_of_resources, not_supported, null (where a call returns a handle);
 *               of the work it enqueues: illegal_address, assert, launch_failed, launch_timeout,
 *               ecc_uncorrectable (these lose the context), hang, slow=DURATION (us, ms, s).
 *               Effects of the work strike when the stream comes to it, or inside the call where
 *               a function enqueues nothing.
 *     WHEN      the n-th call from 1, '*' for every call, or 'p' and a probability
 *
 * Units: bytes. Threads: any, unless a function says otherwise.
 */
#ifndef CPU_DRIVER_H
#define CPU_DRIVER_H

#include <stdint.h>

#include "gpu/driver.h"

/** The entry points: CPU_memory_alloc, CPU_launch ... */
enum cpu_entry {
#define X(field, function, version) CPU_##field,
    GPU_DRIVER_LIST(X)
#undef X
        CPU_ENTRY_COUNT
};

/** What happened since the last reset. Names that end with "live" are gauges. */
struct cpu_driver_counters {
    uint64_t calls[CPU_ENTRY_COUNT];
    uint64_t bytes_to_device;
    uint64_t bytes_to_host;
    uint64_t bytes_filled;
    uint64_t copies_pageable; /* copies whose host side is not pinned */
    uint64_t launches;        /* that ran */
    uint64_t faults;          /* items of the fault script that struck */

    uint64_t allocations_live;
    uint64_t device_bytes_live; /* in multiples of 512, as they count against the device's memory */
    uint64_t pinned_bytes_live;
    uint64_t registered_bytes_live;
    uint64_t streams_live;
    uint64_t events_live;
    uint64_t modules_live;
    uint64_t graphs_live; /* and executable ones */

    /* mistakes of the caller; all zero in a correct worker */
    uint64_t hazards; /* conflicting use of an allocation by unordered streams */
    uint64_t
        freed_in_use; /* allocations and modules released while queued work or a graph names them */
    uint64_t writes_after_free; /* found when freed memory leaves its quarantine */
    uint64_t guards_broken;
};

/** Fills the table. It needs cpu_driver_configure() before its first call. */
void cpu_driver_table(struct gpu_driver *ret);

/**
 * Sets what the driver simulates: 1 to 16 devices of `memory_bytes` each, and the fault script
 * (NULL for none), whose calls are counted from now on. Not while calls are under way. Errors:
 * ERR_CONFIG.
 */
MUST_CHECK enum err cpu_driver_configure(
    int device_count, size_t memory_bytes, const char *faults, struct error *err);

/** Checks a fault script. Errors: ERR_CONFIG, with the position. */
MUST_CHECK enum err cpu_driver_check_faults(const char *faults, struct error *err);

struct cpu_driver_counters cpu_driver_counters(void);

/** Checks the guards of everything allocated and freed so far; broken ones are counted. */
void cpu_driver_check_memory(void);

/**
 * For tests: ends all streams (hung ones too), frees everything, forgets faults, errors, counters
 * and the configuration. No other thread may be inside a call, but for one that waits for a hung
 * stream: that wait ends.
 */
void cpu_driver_reset(void);

#endif
