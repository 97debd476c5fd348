/**
 * The plan of a job: sizes, copies, fills and launches, all checked against the programs and the
 * device before any GPU work. Planning is pure: no I/O, no GPU, no clock.
 *
 * Groups. Each of a job's own buffers belongs to one of four groups, so that a batch needs one copy
 * up, one clear and one copy back, however many jobs and buffers it has:
 *
 *     group      INPUT    INOUT    OUTPUT   SCRATCH
 *     uploaded   [----------------]
 *     cleared                     [----------------]
 *     read back           [----------------]
 *
 * Some bytes are unpacked: each piece has a copy of its own. These are writes into a filled buffer
 * or a resident, and outputs that are a small part of a large buffer or are in a static or a
 * resident. They use the staging areas behind the groups. The initial value of a resident is
 * planned as a fill or a write; whether this job creates the resident is known only later.
 *
 * Arrays. Of an array job the groups hold the shared buffers and the parameter blocks; the `each`
 * buffers lie behind them, as many instances as a slice has (extent.h). Instances of a buffer lie
 * one behind the other, as in the message, so that a slice is staged with one copy for each buffer.
 * Shared inputs stand first, so that they stay in a slab for the array's next slice. A resident has
 * the parts of all instances side by side, so that a single job finds them as the bytes of one
 * buffer; each slice fills, writes and reads back its own.
 *
 * Units: bytes. Buffers start at multiples of 256 in their group. Lifetime: everything is in the
 * job's arena. Threads: pure; any number of jobs at once.
 */
#ifndef PLAN_PLAN_H
#define PLAN_PLAN_H

#include "gpu/limits.h"
#include "job/job.h"
#include "program/program.h"

enum {
    PLAN_ALIGNMENT = 256,
    /* What a result needs beyond its outputs: telemetry, source, worker, map keys. */
    PLAN_RESULT_OVERHEAD_BYTES = 2048
};

/** Padded to where the next one may start. */
static inline uint64_t plan_aligned(uint64_t bytes) {
    return (bytes + PLAN_ALIGNMENT - 1) & ~(uint64_t)(PLAN_ALIGNMENT - 1);
}

enum plan_group {
    GROUP_INPUT,
    GROUP_INOUT,
    GROUP_OUTPUT,
    GROUP_SCRATCH,
    GROUP_COUNT,
    GROUP_NONE /* a static or a resident, or empty */
};

/* Indexed like the job's buffers. */
struct plan_buffer {
    enum plan_group group;
    uint64_t offset; /* in its group; of a shared buffer or a single job */
    uint64_t bytes;  /* of one instance */
    uint64_t stride; /* from one instance to the next, aligned for any type; 0: it is shared */
    bool is_update;  /* a resident that the job changes, by a write or in a kernel */
};

/** A device memset: `value` over the whole buffer, after the clear. */
struct plan_fill {
    size_t buffer;
    uint8_t value;
    bool is_init; /* only where the job creates the resident */
};

/** An upload of its own, after clear and fills; extent.h says what a slice has of it. */
struct plan_write {
    size_t buffer;
    uint32_t instance; /* of an `each` buffer */
    uint64_t offset;   /* in the buffer, or in the instance's part of it */
    struct slice data; /* of an `each` resident that is created: the data of all instances */
    bool is_init;      /* only where the job creates the resident */
};

struct plan_launch {
    const struct program *program;
    const struct entry *entry;
    const struct digest *image; /* the program's image that the job pins; NULL: any */
    const struct job_arg *args; /* as many as the entry has arguments */
    uint32_t grid[3], block[3];
    uint32_t shared_bytes;
    uint32_t iterations;
    bool cooperative; /* its blocks wait for each other, or it is launched in phases */
    /* entry->params_in_buffer: where its parameter block is in GROUP_INPUT, unless instances have
     * their own; these are `stride` apart, behind the `each` buffers; 0: all have the same */
    uint64_t param_block_offset, param_block_stride;
};

/* Indexed like the job's outputs. */
struct plan_output {
    bool is_stored;   /* it goes to the blob store */
    bool is_spooled;  /* so does one of an array, slice by slice, and no memory has all of it */
    bool is_unpacked; /* it has a place in the job's part of the readback's staging area */
};

struct plan {
    const struct job *job;
    const struct plan_buffer *buffers;
    size_t resident_count;
    uint64_t group_bytes[GROUP_COUNT];
    size_t fill_count;
    const struct plan_fill *fills;
    size_t write_count;
    const struct plan_write *writes;
    uint64_t write_staging_bytes; /* at most, without the start values of `each` residents */
    size_t launch_count;          /* of the steps, without the job's `repeat` */
    const struct plan_launch *launches;
    const struct plan_output *outputs;
    uint64_t output_staging_bytes; /* of one instance */
    /* the job's own buffers are small, each of their bytes is used once, and only they are read
     * back: its kernel may work in host memory */
    bool is_streamed;
    uint64_t signature;        /* plan/signature.h */
    uint64_t result_bytes_max; /* of the encoded result, also of an error */

    /* exactly what the job asks for, with all instances, as its telemetry reports it */
    uint64_t h2d_bytes; /* own uploads and writes, without cold statics and initial values */
    uint64_t d2h_bytes;
    uint64_t param_bytes;
    uint64_t kernel_launches;
};

#endif
