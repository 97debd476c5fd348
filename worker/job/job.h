/**
 * A job: one message, from when it is taken until its answer is acknowledged. Only jobs travel
 * between the stages. A job holds its message, what the message says, its plan, what it holds on
 * the device, its outcome, its answers, and its places in queues.
 *
 * Each part of the struct names the folder that fills it in; later stages read it. The state says
 * which parts are filled in. Only job_move() changes the state.
 *
 * Units: bytes and nanoseconds. Lifetime: job_create() to job_destroy(), which pipeline/ends.h
 * calls; what a job points to lives in its arena or its delivery, unless a comment says otherwise.
 * Threads: one stage owns a job at a time.
 */
#ifndef JOB_JOB_H
#define JOB_JOB_H

#include "base/arena.h"
#include "base/hash_table.h"
#include "base/list.h"
#include "base/shared.h"
#include "broker/delivery.h"
#include "job/long_job.h"
#include "job/outcome.h"
#include "job/request.h"

/**
 * X(symbol, name, the states that a job may move to from here). job.c says what IN() is. A state is
 * where a job is, and who owns it.
 */
#define JOB_STATE_LIST(X)                                                                          \
    /* in the hands of the thread that admits it; nothing is known of it */                        \
    X(TAKEN, "taken", IN(DECODED) | IN(ANSWERED) | IN(OVER))                                       \
    /* in the hands of one thread; holds nothing on the device */                                  \
    X(DECODED, "decoded",                                                                          \
        IN(WAITING_FOR_KEY) | IN(PREPARING) | IN(RETRYING) | IN(ANSWERED) | IN(OVER))              \
    /* in the queue of its key */                                                                  \
    X(WAITING_FOR_KEY, "waiting for its key", IN(DECODED) | IN(OVER))                              \
    /* with prepare/: fetches, loads, uploads; or waits for a static that another job brings */    \
    X(PREPARING, "preparing", IN(READY) | IN(RETRYING) | IN(ANSWERED) | IN(OVER))                  \
    /* waits for a lane, or for memory; a long job also between two chunks */                      \
    X(READY, "ready", IN(ON_DEVICE) | IN(RETRYING) | IN(ANSWERED) | IN(OVER))                      \
    /* in a batch */                                                                               \
    X(ON_DEVICE, "on the device",                                                                  \
        IN(READY) | IN(UPLOADING) | IN(RETRYING) | IN(ANSWERED) | IN(OVER))                        \
    /* its outputs go to the blob store */                                                         \
    X(UPLOADING, "uploading", IN(RETRYING) | IN(ANSWERED) | IN(OVER))                              \
    /* waits for its next try */                                                                   \
    X(RETRYING, "retrying", IN(DECODED) | IN(OVER))                                                \
    /* with the publisher, until its answer is acknowledged */                                     \
    X(ANSWERED, "answered", IN(OVER))                                                              \
    X(OVER, "over", 0)

enum job_state {
#define X(symbol, name, next) JOB_##symbol,
    JOB_STATE_LIST(X)
#undef X
        JOB_STATE_COUNT
};

/** How far a job has run; batch/ sets it, and its residents depend on it. */
enum run_state { RUN_NONE, RUN_STARTED, RUN_DONE };

/** What a planned launch runs. */
struct job_kernel {
    struct module *module;
    const struct kernel *kernel;
    bool is_in_phases; /* kernel->phases in its place: its grid cannot run at once here */
};

/** Which count a job stands in. */
enum job_count {
    COUNT_NONE,
    COUNT_HOLDING,           /* those that may hold device memory */
    COUNT_WAITING_FOR_MEMORY /* those that wait until there is memory for them, and hold none */
};

/** Where a job stands while it waits for a lane (batch/ready.h). */
struct ready_place {
    struct job *next; /* in the queue, or in its group */
    /* of the first job of a group (batch/slow_groups.h) */
    struct job *last;
    struct list_node by_turn;
    struct hash_node by_signature;
};

/** Instances of an array that one lane runs together. */
struct array_slice {
    uint32_t first, count;
};

/** How far an array is (batch/array.h); the queue of ready jobs guards it. */
struct array_progress {
    uint64_t run;          /* its number among all runs of arrays; 0: it has none yet */
    uint32_t taken;        /* instances that a lane has, or had */
    uint32_t in_flight;    /* slices */
    uint32_t running;      /* of those: nothing is before them in their lanes */
    bool is_stopped;       /* a slice failed, or was refused: no more are taken */
    uint64_t used_ns;      /* what slices had of the device, less the starts of those that run */
    uint64_t instances_ok; /* whose outputs are assembled */
};

/**
 * Memory that a result is encoded in around its outputs, which are read back or assembled to their
 * places in it: nothing copies them again (publish/message.h). Arrays and large jobs have it.
 */
struct result_room {
    uint64_t bytes;   /* 0: none; the outputs are copied into the result */
    uint64_t *places; /* where the data of each output begins; by index as the outputs */
    uint8_t *data; /* of an array: of its arena. Else pinned memory; NULL: not before it has run */
    size_t pinned_bytes; /* the size of that block of the pool, which pipeline/ends.h gives back */
};

struct job {
    enum job_state state;

    /* the message that it came in */
    struct delivery *delivery; /* owned */
    struct shared *edition;    /* a reference (pipeline/edition.h); NULL: none */
    struct arena arena;

    /* what is said of it: publish/. These stand together, since the publisher's thread is the one
     * that all jobs pass. */
    struct publisher *publisher;
    const char *counted_as; /* its program's name, or "" */
    struct message *result; /* NULL: no room for one is reserved yet */
    struct result_room room;
    struct message *unsent[2];    /* a result, a dead letter */
    struct output_upload *upload; /* its outputs on their way to the blob store; NULL: none */
    uint32_t unsettled_count;     /* answers on their way; these are the publisher's thread's */
    bool has_letter;              /* sent, or about to be */
    bool is_dropped;              /* others answer it by now */
    bool is_lost;                 /* an answer of it found no taker */
    bool has_started;             /* in its source (broker/source.h), as far as this job knows */

    /* what the message says: decode/ */
    struct slice id; /* empty: the message cannot be decoded and gets only a dead letter */
    size_t buffer_count;
    const struct job_buffer *buffers;
    size_t step_count;
    const struct job_step *steps;
    uint32_t repeat;           /* >= 1; of a long job: at most so many rounds */
    struct long_job *long_job; /* NULL: it runs in one visit to the device */
    uint32_t instances;        /* of an array; 0: a single job */
    size_t output_count;
    const struct job_output *outputs;
    bool timing;
    uint64_t deadline_unix_ms; /* 0: none */
    uint32_t timeout_ms;       /* that it may be on the device */
    struct slice reply_to;     /* empty: the configured result topic */
    uint64_t decode_ns;        /* time that decoding took */

    struct job_trace *trace; /* job/trace.h; NULL: the job is not traced */

    /* what is to be done: plan/ */
    const struct plan *plan;          /* NULL: it is not planned yet */
    const struct module_set *modules; /* of the programs that it was planned with; not its own */
    struct slice tenant;              /* the owner of the job (prepare/tenant.h) */

    /* what it holds on the device and in the store: prepare/; by index as the buffers */
    struct static_entry **statics;
    struct blob *blobs;
    struct resident **residents;
    uint64_t *generations;      /* of residents, once the job has ended well */
    struct job_kernel *kernels; /* by index as the plan's launches */
    bool is_applied;            /* redelivered: only its outputs are read */
    uint64_t static_hits, static_misses;
    uint64_t static_bytes_saved;    /* warm statics: bytes that did not move */
    uint64_t static_bytes_uploaded; /* cold ones: bytes that moved for this job */
    uint64_t init_bytes_uploaded;   /* start values of residents that the job creates */
    uint64_t submitted_ns, ready_ns;

    /* what became of it: batch/, or the stage that refuses it */
    enum run_state run;
    struct slice *found; /* where its outputs are: what outcome.outputs points to */
    struct outcome outcome;

    /* an array: batch/array.h */
    /* by index as the outputs: those that go to the blob store while it runs; NULL: others, whose
     * instances have their places in the result's room */
    struct spool **spools;
    struct array_progress progress;
    struct job *array; /* of a slice, which is a copy of its array; else NULL */
    struct array_slice slice;
    bool is_uneven;  /* its time may be any up to its time-out (batch/composition.h) */
    bool is_running; /* of a slice: it counts among those of its array that run */

    /* tries: pipeline/retries.h */
    uint32_t retry_count; /* tries that failed before this one */
    /* Tries that met trouble of the worker's own; how often what it needs had worked for others
     * since the try before; and the count of its answers at the last of them. */
    uint32_t trouble_count, trouble_alone_count;
    uint64_t trouble_answers;
    uint64_t retry_wait_ms; /* before the next one */

    /* where it waits */
    struct key_queue *key_queue; /* key_order/; NULL: the job stands in none */
    struct job *next_in_key_queue;
    struct provided *provided; /* prepare/providers.h; by buffer, or NULL */
    struct job *next_waiting;
    size_t awaited; /* index of the buffer whose static another job brings */
    bool is_woken;  /* it waits no longer, and starts again */
    bool is_left;   /* the job that it waited for was left to another worker */
    struct ready_place place;
    enum job_count count; /* which count it stands in (pipeline/flight.h) */

    /* of the job's block: what the arena uses first */
    uint8_t *memory;
    size_t memory_size;
};

/** What a job takes, its memory included: enough for a small job with its message and result, of
 * two inputs and an output of 4 KiB say, which then needs no other block. */
enum { JOB_BYTES = 20480 };

/** Of jobs that are created or destroyed together. */
enum { JOBS_GROUP_MAX = 64 };

/**
 * Makes a job of each delivery, in order, which owns the delivery from then on and keeps its bytes
 * (broker/delivery.h). Blocks of jobs that are over are used again. Returns how many were made:
 * fewer than `count`, which is at most JOBS_GROUP_MAX, when memory is short. The deliveries of the
 * others are the caller's as they were.
 */
size_t jobs_create(struct delivery *const *deliveries, size_t count, struct job **ret);

/** Of one delivery; NULL when memory is short. */
struct job *job_create(struct delivery *delivery);

/** The jobs are over and hold only their messages, and their editions. */
void jobs_destroy(struct job *const *jobs, size_t count);
void job_destroy(struct job *job); /* NULL is fine */

/** Starts the arena, which has held nothing yet. */
void job_init_arena(struct job *job, size_t reserved_max);

/** Whether a batch runs instances of an array: a slice, or all of a long one. */
static inline bool job_is_slice(const struct job *job) {
    return job->slice.count > 0;
}

/** How many instances a batch runs of it: those of the slice, 1 of a single job. */
static inline uint32_t job_slice_count(const struct job *job) {
    return job_is_slice(job) ? job->slice.count : 1;
}

/** Of an array; a single job counts as one. */
static inline uint32_t job_instances(const struct job *job) {
    return job->instances > 0 ? job->instances : 1;
}

/* Of all instances: they fit 64 bits, as decoding has found. */
static inline uint64_t job_buffer_bytes(const struct job *job, const struct job_buffer *buffer) {
    return buffer->is_each ? buffer->bytes * job->instances : buffer->bytes;
}

static inline uint64_t job_output_bytes(const struct job *job, size_t output) {
    return job->outputs[output].bytes * job_instances(job);
}

/** Where an output's data is in the result's room. */
static inline uint8_t *job_output_place(const struct job *job, size_t output) {
    return job->room.data + job->room.places[output];
}

/** Moves the job to another state. Ends the process if the table does not allow it. */
void job_move(struct job *job, enum job_state to);

/** For messages. */
const char *job_state_name(enum job_state state);

#endif
