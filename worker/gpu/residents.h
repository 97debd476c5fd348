/**
 * Residents: named, mutable device buffers that live across the jobs of one key. A resident's name
 * counts within its scope: topic, partition and key.
 *
 * Generation. A resident is created with generation 0 by the first job that names it with `init`;
 * each job that updates it (by a write, or as an argument that its kernel writes) and succeeds adds
 * 1. Reading adds nothing. A job that creates and updates leaves generation 1. `expect` is compared
 * with the generation that the job finds, which is 0 if it creates the resident. `init` is ignored
 * if the resident exists.
 *
 * Redelivery. A resident remembers the offset of the job that updated it last. If the same job runs
 * again, it changes nothing, and reads what its update left. A job with a lower offset is refused.
 *
 * Gone. A job that fails after it may have changed a resident leaves unknown bytes: the resident
 * is dropped. So is every resident of a partition that is revoked, and one that no job has used for
 * a while. The next job that names it without `init` gets an error.
 *
 * Budget. All residents together stay within `bytes_max`, those of a scope within
 * `key_bytes_max`, and a new one within 9/10 of what the device pool has not taken of the device.
 * Their blocks come from the pool, whose limit they raise by their own size while they live, so
 * residents and jobs take no memory from each other.
 *
 * Host memory. There are at most `entries_max` residents, of a scope `key_entries_max`. Each keeps
 * its name and each scope its key, whose size is therefore bounded. No resident is dropped to make
 * room for another, so no sender can drive out what others keep.
 *
 * Units: bytes; nanoseconds of clock_ns(). Lifetime: detach all before residents_destroy().
 * Threads: any bound one. Jobs of a scope run one at a time, because of key order, so an attached
 * resident belongs to one job. No driver call happens under the lock that jobs wait for.
 */
#ifndef GPU_RESIDENTS_H
#define GPU_RESIDENTS_H

#include "base/slice.h"
#include "gpu/statics.h"

enum { RESIDENT_KEY_BYTES_MAX = 1024 };

struct residents;
struct resident;

struct residents_options {
    const struct device *device;
    struct pool *pool;       /* of device memory */
    struct statics *statics; /* evicted to make room in the pool */
    struct budget *budget;   /* the pool's */
    uint64_t idle_ns;        /* a resident that is unused for longer is dropped */
    uint64_t bytes_max;      /* of the blocks of all */
    uint64_t key_bytes_max;  /* of those of one scope; not more than bytes_max */
    uint64_t entries_max;    /* whatever their size */
    uint64_t key_entries_max;
};

MUST_CHECK enum err residents_create(
    const struct residents_options *options, struct residents **ret, struct error *err);

/** Drops all residents. NULL is fine. */
void residents_destroy(struct residents *residents);

/** How one job uses one resident. */
struct resident_use {
    const char *topic; /* lives as long as the residents */
    int32_t partition;
    struct slice key, name;
    uint64_t bytes;
    bool is_each;    /* they are those of all instances of an array */
    bool can_create; /* the job has an `init` */
    bool has_expect;
    uint64_t expect;
    bool is_update;       /* the job changes it */
    int64_t offset;       /* of the job */
    uint64_t received_ns; /* when the job was taken */
};

/**
 * Finds or creates a resident and makes it the job's until residents_detach().
 *
 * ERR_RESIDENT_GONE: it does not exist.
 * ERR_REVOKED: it does not exist, and the job's partition was revoked since the job came in.
 * ERR_RESIDENT_SIZE: it has another size.
 * ERR_RESIDENT_GENERATION: it is at another generation than expected, or beyond this job's update.
 * ERR_RESIDENTS_FULL: there is no room for it beside those that are kept.
 * ERR_DEVICE_MEMORY, ERR_TOO_LARGE, ERR_NO_MEMORY: it cannot be created, now, or at all.
 */
MUST_CHECK enum err residents_attach(struct residents *residents, const struct resident_use *use,
    uint64_t now_ns, struct resident **ret, struct error *err);

enum resident_verdict {
    RESIDENT_UNTOUCHED, /* no work was enqueued */
    RESIDENT_APPLIED,   /* the job succeeded */
    RESIDENT_SPOILT     /* the job failed after it was enqueued */
};

/** Ends the job's use, after its fence. */
void residents_detach(struct residents *residents, struct resident *resident,
    enum resident_verdict verdict, uint64_t now_ns);

/** Drops residents that no job has used for `idle_ns`; residents_attach() does the same. */
void residents_drop_idle(struct residents *residents, uint64_t now_ns);

/**
 * Drops all residents of a partition; those in use are dropped when they are detached. Jobs that
 * were taken before `now_ns` get none any more. `topic` is copied.
 */
void residents_revoke(
    struct residents *residents, const char *topic, int32_t partition, uint64_t now_ns);

/* Of an attached resident. */
CUdeviceptr resident_address(const struct resident *resident); /* 0 for an empty one */
bool resident_is_fresh(const struct resident *resident);       /* this job creates it */
bool resident_has_applied(
    const struct resident *resident); /* this job's update was applied by an earlier run */
uint64_t resident_generation_after(const struct resident *resident); /* if the job ends well */

struct residents_counts {
    uint64_t count;
    uint64_t bytes; /* of their blocks */
};

struct residents_counts residents_read_counts(struct residents *residents);

/** The residents' counters of the pool. */
struct pool_books residents_pool_books(const struct residents *residents);

#endif
