/** A job with all that it holds on the device and in the store, as prepare.h makes it. */
#ifndef PREPARE_PREPARED_H
#define PREPARE_PREPARED_H

#include "blobs/blob.h"
#include "gpu/modules.h"
#include "gpu/residents.h"
#include "gpu/statics.h"
#include "plan/plan.h"

/** How far a job's run came; set by batch/, for its residents. */
enum run { RUN_NONE, RUN_STARTED, RUN_DONE };

/** What a planned launch runs. */
struct prepared_launch {
    struct module *module;
    const struct kernel *kernel;
    bool is_in_phases; /* kernel->phases in its place: its grid cannot run at once here */
};

struct prepared;

/** Where a job stands while it waits for a lane; set by batch/. */
struct ready_place {
    struct prepared *next;       /* in the queue, or in its group */
    struct prepared *last;       /* of the group whose first job this is */
    struct prepared *next_group; /* the first job of it */
};

/** A planned job with all that it holds. Owned by one stage at a time. */
struct prepared {
    struct job *job; /* owned */
    const struct plan *plan;
    const struct module_set *modules; /* of the programs that it was planned with */
    struct slice tenant;              /* whose job it is; in its arena */
    /* by index as the job's buffers; in the job's arena */
    struct static_entry **statics;
    struct blob *blobs;
    struct resident **residents;
    uint64_t *generations;            /* of residents, once the job has ended well */
    struct prepared_launch *launches; /* by index as the plan's; in the job's arena */
    /* by index as the job's outputs; filled by the lane */
    struct slice *outputs;
    enum run run;
    /* while it waits for another job's static, and after (prepare/carriers.h) */
    struct prepared *next_waiting;
    size_t awaited;  /* index of the buffer */
    bool is_woken;   /* it waits no longer, and starts again */
    bool is_left;    /* the job that it waited for was left to another worker */
    bool is_applied; /* redelivered: only its outputs are read */
    struct ready_place place;
    /* for the job's telemetry */
    uint64_t static_hits, static_misses;
    uint64_t static_bytes_saved;    /* warm statics: bytes that did not move */
    uint64_t static_bytes_uploaded; /* cold ones: bytes that moved for this job */
    uint64_t init_bytes_uploaded;   /* start values of residents that the job creates */
    uint64_t submitted_ns, ready_ns;
};

#endif
