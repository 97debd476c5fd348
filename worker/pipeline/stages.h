/**
 * What the files of pipeline/ share: all stages (lifecycle.h starts them) and what is in flight.
 * Private to pipeline/.
 */
#ifndef PIPELINE_STAGES_H
#define PIPELINE_STAGES_H

#include <stdatomic.h>

#include "batch/lane.h"
#include "blobs/blobs.h"
#include "broker/offsets.h"
#include "broker/reader.h"
#include "key_order/key_order.h"
#include "metrics/collector.h"
#include "pipeline/edition.h"
#include "pipeline/flight.h"
#include "pipeline/options.h"
#include "publish/publisher.h"
#include "quarantine/refusals.h"

/* So many messages that wait for others of their key count as in flight by their bytes alone
 * (ordering.h): as many as the windows of four partitions hold (broker/offsets.h). */
enum { ASIDE_MAX = 4 * OFFSETS_WINDOW };

/* Jobs move in groups of up to so many, so that each lock is taken once for a group. */
enum { STAGES_GROUP_MAX = 64 };

struct control;
struct meter;
struct admission;
struct providers;
struct serial;
struct reload;
struct reporter;
struct retries;
struct suspects;
struct tracer;

/* Who uses the pools besides lanes. */
enum pool_user { POOL_USER_SERIAL, POOL_USER_ROOMS, POOL_USER_STOP, POOL_USER_COUNT };

struct stages {
    const struct settings *settings;          /* as at the start; those that reload: see editions */
    const atomic_bool *stop;                  /* as pipeline/options.h has it */
    void (*on_lost)(const struct error *err); /* as pipeline/options.h has it */
    const struct executor_options *options;   /* while it starts */
    uint32_t device_index;
    const char *sysfs;   /* as pipeline/options.h has it */
    struct state *state; /* NULL: none is kept */
    struct source *source;
    struct sink *sink; /* until the publisher owns it */

    struct device device;
    struct modules *modules;
    struct editions *editions;            /* what jobs go by */
    struct reload *reload;                /* NULL where nothing reloads */
    const struct fitness_source *reloads; /* what it reads again; NULL: nothing */
    bool is_supervised;
    struct statics *statics;
    struct residents *residents; /* NULL with `ordering: none` */
    struct blobs *blobs;         /* NULL: there is no store */
    struct budget device_budget, pinned_budget;
    struct pool *device_pool, *pinned_pool;
    /* the pools' counters, one for each lane, then for each enum pool_user */
    size_t pool_user_count;
    struct pool_counters *device_counters, *pinned_counters;
    struct board *board, *own_board; /* the second where the options bring none */
    struct collector collector;
    struct lease_pool *leases;
    struct tenancy *tenancy; /* NULL with `batch.isolation: none` */
    struct admission *admission;
    struct ready *ready;
    struct providers *providers;
    struct prepare *prepare;
    struct lanes *lanes;
    struct serial *serial;
    struct suspects *suspects; /* NULL: no state is kept */
    struct refusals refusals;
    struct key_order *key_order;
    struct retries *retries;
    struct reader *control_reader; /* until the control owns it */
    struct control *control;       /* NULL where no control topic is read */
    struct publisher *publisher;
    struct tracer *tracer;  /* NULL: no job is traced */
    struct sink *telemetry; /* until the reporter owns it */
    struct sink *progress;  /* until the feed owns it */
    struct feed *feed;      /* NULL where no progress is published */
    struct meter *meter;
    struct reporter *reporter; /* NULL where no telemetry is published */
    char host[128];
    struct identity identity;

    struct flight flight;
    pthread_mutex_t rooms_lock; /* of ends.h, which gives them back to the pool */
    atomic_bool hands_back;     /* the worker stops: no job begins any more. Intake sets it */
};

/** How many jobs can be in hand at a time: room for a queue of them. */
uint32_t stages_jobs_max(const struct stages *stages);

/** Ends the run: the intake stops at once. The first failure is the one reported. */
void stages_fail(struct stages *stages, const struct error *err);
bool stages_has_failed(const struct stages *stages);

/** A signal has asked the worker to drain and stop. */
bool stages_must_stop(const struct stages *stages);

/** Lets go of a message without an answer: it is read again. */
void stages_drop(struct stages *stages, struct delivery *delivery);

#endif
