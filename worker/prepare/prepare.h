/**
 * All cold work, away from the lanes: it fetches blobs, uploads statics and loads modules, so that
 * a lane never waits for a disk or for another job's upload, but for the parts of an array's blobs
 * and outputs, which are larger than memory (blobs/blob.h, blobs/spool.h). A job goes to a lane
 * only when everything that it names is at hand.
 *
 * A job whose inputs are all warm comes back to the caller at once. Other jobs wait in a queue for
 * a preparation thread. A job that names a static which a job ahead of it provides waits for that
 * job first (providers.h).
 *
 * Threads: prepare_submit() from any thread that is bound to the device. on_ready comes from a
 * preparation thread, the other callbacks from that or from the caller's thread.
 */
#ifndef PREPARE_PREPARE_H
#define PREPARE_PREPARE_H

#include "blobs/blob.h"
#include "blobs/blobs.h"
#include "gpu/modules.h"
#include "gpu/residents.h"
#include "gpu/statics.h"
#include "job/job.h"
#include "plan/plan.h"
#include "prepare/tenant.h"

struct providers;

struct prepare_options {
    const struct device *device;
    struct providers *providers;
    struct statics *statics;
    struct residents *residents; /* NULL unless the plans' limits have key order */
    struct blobs *blobs;         /* NULL: there is no store */
    enum isolation isolation;
    uint32_t threads;      /* for jobs that wait for the store, and as many for the others */
    uint32_t queue_length; /* at least as many as jobs can be in flight: submit never waits */
    /** Asked before cold work: an error where the job must not run any more. */
    enum err (*still_wanted)(void *context, const struct job *job, struct error *err);
    /** Called before and after a preparation thread works on a job; afterwards the job may be gone.
     */
    void (*on_begin)(void *context, const struct job *job);
    void (*on_end)(void *context);
    /** A job that was cold may run; the callee owns `job` from here on. */
    void (*on_ready)(void *context, struct job *job);
    /** The job failed; the callee owns `job` from here on. */
    void (*on_failed)(void *context, struct job *job, const struct error *err);
    /** A job begins or ends to wait for one ahead of it. While it waits, it holds nothing. The
     * callee does not own it. */
    void (*on_waiting)(void *context, struct job *job);
    void (*on_resumed)(void *context, struct job *job);
    /** A submitted job is not prepared any more, since the run ends. The callee owns it. */
    void (*on_dropped)(void *context, struct job *job);
    /** A static's payload could not be stored: after a restart its sender must send it again. */
    void (*on_not_stored)(void *context, const struct error *err);
    void *context;
};

struct prepare;

MUST_CHECK enum err prepare_create(
    const struct prepare_options *options, struct prepare **ret, struct error *err);

/** Finishes submitted jobs and ends the threads; prepare_again() still works. NULL is fine. */
void prepare_finish(struct prepare *prepare);

/** Drops the jobs that still wait for others. Call it after prepare_finish(), when no more jobs
 * end. NULL is fine. */
void prepare_drop_waiting(struct prepare *prepare);

/** After prepare_drop_waiting(). NULL is fine. */
void prepare_destroy(struct prepare *prepare);

/**
 * ERR_OK: `job` is taken. It may run, and comes back as `ret`, owned by the caller; or `ret` is
 * NULL, and on_ready or on_failed is called exactly once, now or later. From then on job->plan is
 * set. Other codes: the job is still the caller's. `modules` outlives the job.
 */
MUST_CHECK enum err prepare_submit(struct prepare *prepare, struct job *job,
    const struct plan *plan, const struct module_set *modules, struct job **ret, struct error *err);

/**
 * The same for a job that was prepared before and then released with prepare_release(). Returns the
 * job if it may run now, else NULL.
 */
MUST_CHECK struct job *prepare_resubmit(struct prepare *prepare, struct job *job);

/**
 * Jobs that waited for one ahead of them (providers.h) start again; linked by `next_waiting`. Not
 * after prepare_destroy(), which leaves none. Any thread.
 */
void prepare_wake(struct prepare *prepare, struct job *woken);

/**
 * Fetches and pins again what prepare_release() gave back, on the calling thread, which may wait.
 * After an error it may hold a part of it.
 */
MUST_CHECK enum err prepare_again(struct prepare *prepare, struct job *job, struct error *err);

/** Gives back what a prepared job holds on the device and in the store, but not the job itself. */
void prepare_release(struct job *job, struct statics *statics, struct residents *residents);

/**
 * Whether this run of the job does a planned fill or write of a buffer. It does not if the resident
 * has its start value already, or if the job was applied before.
 */
bool prepare_wants(const struct job *job, size_t buffer, bool is_init);

#endif
