/**
 * What became of a job: its outputs or its error, and what it cost.
 *
 * Units: bytes and nanoseconds. Lifetime: outputs point into pinned memory of a lane and are valid
 * until its batch is recycled. Threads: plain values.
 */
#ifndef JOB_OUTCOME_H
#define JOB_OUTCOME_H

#include "base/error.h"
#include "base/slice.h"

/** The bytes that really moved for a batch, padding included. The same for all of its jobs. An
 * array's has the sums of its slices, and the id of the last. */
struct batch_telemetry {
    uint64_t id; /* unique in this process; 0: the job reached no batch */
    uint64_t jobs;
    uint64_t uploads, readbacks;   /* copies */
    uint64_t h2d_bytes, d2h_bytes; /* of a mapped batch, without copies: as the jobs ask for */
    uint64_t launches;             /* coalesced ones included, each once */
    uint64_t coalesced_launches;
    uint64_t graph_launches; /* of graphs, whose kernels count as launches */
    uint64_t graphs_refused; /* by the driver */
    uint64_t sync_points;
};

/** What the job asked for, exactly, and where its time went. */
struct job_telemetry {
    uint64_t h2d_bytes, d2h_bytes, param_bytes, kernel_launches;
    uint64_t static_hits, static_misses, static_bytes_saved;
    uint64_t queue_ns; /* ready, waiting for a lane */
    uint64_t decode_ns, prepare_ns;
    uint64_t stage_ns, enqueue_ns, wait_ns;
    uint64_t wall_ns;           /* from arrival until its outputs were on the host */
    uint64_t instances, slices; /* of an array; 0: a single job */
    bool is_sum;                /* `batch` has the sums of several: of slices, or of chunks */
    bool is_timed;
    uint64_t device_ns; /* timed jobs: elapsed on the stream around the job's launches */
    struct batch_telemetry batch;
};

/** An instance of an array that ended an executor by itself; its outputs are zeros. */
struct failed_instance {
    uint32_t instance;
    enum err code;
    const char *message;
};

struct outcome {
    enum err code;
    const struct slice *outputs; /* by index as the job's outputs, where it has any */
    /* with ERR_INSTANCES_FAILED, in the order of instances */
    const struct failed_instance *failed;
    size_t failed_count;
    /* of residents, after the job, by index as its buffers; NULL: with an error, or none */
    const uint64_t *generations;
    struct job_telemetry telemetry;
    struct error err; /* unless code is ERR_OK */
};

/** The outcome of a try that begins; telemetry is set when it ends. The error, which is most of it,
 * is left as it is. */
static inline void outcome_begin(struct outcome *outcome) {
    outcome->code = ERR_OK;
    outcome->outputs = NULL;
    outcome->failed = NULL;
    outcome->failed_count = 0;
    outcome->generations = NULL;
}

/** Adds what one of a job's batches took to what those before it did: of a slice, or of a chunk of
 * a long job. Times on the host and waits are each one's. */
void telemetry_merge(struct job_telemetry *total, const struct job_telemetry *part);

/** An array some of whose instances have failed has outputs, and an error. */
static inline bool outcome_has_outputs(const struct outcome *outcome) {
    return outcome->code == ERR_OK || outcome->code == ERR_INSTANCES_FAILED;
}

#endif
