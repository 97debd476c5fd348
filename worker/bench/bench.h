/** The benches of gpu-worker bench. Each prints its table to standard output. */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include "base/error.h"
#include "bench/table.h"
#include "settings/settings.h"

enum {
    BENCH_INSTANCES_MAX = 65536,
    BENCH_LAUNCHES_MAX = 10000,
    BENCH_EPOCHS_MAX = 1000, /* what logreg_adam's manifest allows */
    BENCH_DEVICES_MAX = 64,
    BENCH_MANY_STEP = 100, /* from few to many, and the least there are of many */
    BENCH_MANY_MAX = 100000,
    BENCH_BYTES_MAX = 64 << 20
};

struct bench_options {
    struct settings *settings; /* the benches change limits to fit the work */
    struct bench_table table;  /* 1 to BENCH_ROUNDS_MAX rounds */
    uint32_t milliseconds;     /* about how long a round of the baseline takes */
    uint64_t messages;         /* messages in a round between topics */
    uint64_t bytes;            /* of buffers of jobs between topics; 0: these do nothing */
    uint32_t instances;        /* of an array; 1: between topics there are single jobs */
    uint32_t iterations;       /* launches of a job with many, or epochs of the main job */
    uint32_t many;             /* statics, keys, partitions and programs */
    const char *config;        /* a path that children can read; NULL: none */
    uint32_t devices;          /* at most so many of them; 0: all */
    /* of an executor that bench_scale() has started */
    int board_fd; /* 0: this is none */
    uint32_t device, work;
};

/**
 * The executor with a source and a sink in memory, against a baseline over the driver; and with
 * distinct messages against the message loop, which also reads them and encodes results.
 */
MUST_CHECK enum err bench_engine(const struct bench_options *options, struct error *err);

/** The executor with a state file, against the same without one. */
MUST_CHECK enum err bench_state(const struct bench_options *options, struct error *err);

/** The executor with each kind of isolation, against the same without. */
MUST_CHECK enum err bench_isolation(const struct bench_options *options, struct error *err);

/** Jobs that do nothing, from topic to topic, against a baseline over librdkafka. */
MUST_CHECK enum err bench_kafka(const struct bench_options *options, struct error *err);

/** Where the CPU time of a small job goes, against all that the baseline needs. */
MUST_CHECK enum err bench_cost(const struct bench_options *options, struct error *err);

/** Arrays, and the same work as single jobs, against the link to the device. */
MUST_CHECK enum err bench_arrays(const struct bench_options *options, struct error *err);

/** Long jobs: in chunks against one visit to the device, and arrays that end one after the other
 * against the least that takes. */
MUST_CHECK enum err bench_long(const struct bench_options *options, struct error *err);

/** How long a job takes from memory to its result, one at a time, against the baseline. */
MUST_CHECK enum err bench_latency(const struct bench_options *options, struct error *err);

/** 1, 2, 4 ... devices with an executor process each, against one. */
MUST_CHECK enum err bench_scale(const struct bench_options *options, struct error *err);

/** Small jobs with statics that are on the device, or are not, against jobs without. */
MUST_CHECK enum err bench_statics(const struct bench_options *options, struct error *err);

/** Small jobs over many statics, keys, partitions and programs, and over a hundredth of them,
 * against one of each. */
MUST_CHECK enum err bench_flat(const struct bench_options *options, struct error *err);

/** Jobs of many launches with graphs, against the same without. */
MUST_CHECK enum err bench_graphs(const struct bench_options *options, struct error *err);

/** The main job as single jobs, against the same as one array job. */
MUST_CHECK enum err bench_sweep(const struct bench_options *options, struct error *err);

/** Pools of device and pinned memory, against free lists behind mutexes. */
MUST_CHECK enum err bench_pools(const struct bench_options *options, struct error *err);

#endif
