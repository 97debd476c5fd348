/**
 * The configuration of a worker. One table (table.c) ties each YAML path to a field, its type,
 * range, default and help; the loader, `config defaults`, `config schema`, and the table of
 * config/README.md all come from it.
 *
 * Units: the name of a field says them: _ms milliseconds, _bytes bytes. Lifetime: settings_fini()
 * frees all strings. Threads: read-only after loading.
 */
#ifndef SETTINGS_SETTINGS_H
#define SETTINGS_SETTINGS_H

#include <stdint.h>
#include <stdio.h>

#include "base/log.h"
#include "base/problems.h"
#include "base/slice.h"

enum driver_choice { DRIVER_CUDA, DRIVER_CPU };
enum lane_wait_choice { LANE_WAIT_BLOCK, LANE_WAIT_SPIN };
enum isolation_choice { ISOLATE_NONE, ISOLATE_PROGRAM, ISOLATE_KEY };
enum stream_choice { STREAM_MAPPED, STREAM_COPIED };
enum graphs_choice { GRAPHS_NONE, GRAPHS_AUTO };
enum delivery_choice { AT_LEAST_ONCE, EXACTLY_ONCE };
enum ordering_choice { ORDERING_NONE, ORDERING_KEY };
enum core_dumps_choice { CORE_DUMPS_NONE, CORE_DUMPS_INHERIT };
enum numa_choice { NUMA_LOCAL, NUMA_ANY };
enum broker_choice { BROKER_KAFKA, BROKER_EMBEDDED };

struct string_list {
    char **items;
    size_t count;
};

/** Keys and values that are passed to librdkafka unchanged. */
struct string_map {
    char **keys;
    char **values;
    size_t count;
};

struct settings {
    /* where it runs */
    enum driver_choice driver;
    struct string_list devices; /* numbers and UUIDs; empty: all that the driver shows */
    uint32_t lanes;             /* threads with a CUDA stream each */
    uint32_t lane_depth;        /* batches that a lane has in flight */
    uint64_t
        lane_slab_bytes; /* of each batch: on the device, and pinned for uploads and for results */
    enum lane_wait_choice lane_wait;
    struct {
        uint32_t devices;
        uint64_t memory_bytes; /* of each device */
        char *faults;
    } cpu_driver;

    /* the processes that each own a device, and what they leave behind */
    struct {
        char *dir; /* "": settings_state_dir() says which */
    } state;
    struct {
        uint32_t deaths_max; /* without a job to blame, within ten minutes */
        uint32_t stall_ms;   /* how long a thread may work on one thing */
        enum core_dumps_choice core_dumps;
        enum numa_choice numa; /* which CPUs an executor's threads may use */
        bool spare;            /* a second process waits for each device, to take over */
    } executors;

    /* where jobs come from and results go */
    enum broker_choice broker;
    struct {
        char *address_file; /* where the embedded broker's address is written */
        uint32_t partitions;
    } embedded;
    struct {
        char *bootstrap_servers;
        char *group;
        char *instance_id; /* "": the name kept in the folder of state files */
        struct string_map consumer;
        struct string_map producer;
    } kafka;
    struct {
        struct string_list jobs;
        char *results;
        char *dead_letters;
        char *telemetry;
        char *progress;              /* "": none is published */
        char *control;               /* "": there is none */
        struct string_list reply_to; /* what jobs may name */
    } topics;
    enum ordering_choice ordering;
    enum delivery_choice delivery;
    uint32_t commit_interval_ms;
    uint32_t drain_timeout_ms;

    struct {
        uint32_t max_attempts;
        uint32_t base_ms, max_ms; /* longest first wait; longest wait of all */
    } retry;

    struct {
        uint32_t ids_max;
        uint32_t ttl_ms;
    } cancels;

    struct {
        uint32_t convictions; /* 0: nothing is suspended */
        uint32_t window_ms, for_ms;
    } suspend;

    /* what a job may name */
    struct {
        char *dir; /* "" means share/gpu-worker/programs beside the binary's folder */
    } programs;
    struct {
        char *dir;       /* "" unless the store is a folder */
        char *url;       /* "" unless the store is behind HTTP; may contain credentials */
        char *cache_dir; /* with `url`; each executor has a folder of its own in it */
        uint64_t cache_bytes;
        uint64_t bytes_max;     /* of one blob */
        uint32_t max_age_hours; /* 0: for ever */
        uint32_t timeout_ms;
    } blobs;
    struct {
        uint64_t inline_max_bytes; /* larger outputs become blobs; 0: none do */
    } results;

    /* bounds */
    struct {
        uint64_t message_bytes;
        uint32_t buffers_per_job;
        uint32_t steps_per_job;
        uint32_t launches_per_job;
        uint32_t instances_per_job;
        uint32_t convictions_per_job;
        uint64_t job_bytes;    /* device memory of one job's own buffers */
        uint64_t array_bytes;  /* of all instances of an array: of a buffer, and of its outputs */
        uint64_t result_bytes; /* of one encoded result */
        uint32_t jobs_in_flight;
        uint32_t jobs_per_key;                   /* 0: a share of jobs_in_flight */
        uint32_t timeout_ms;                     /* device time of a job that names none */
        uint32_t timeout_min_ms, timeout_max_ms; /* of jobs that name one */
        uint32_t long_jobs;                      /* that run at a time */
        uint32_t long_job_ms;                    /* of a long job, from its first round on */
        uint64_t bytes_in_flight;                /* host memory of taken, unfinished messages */
    } limits;
    struct {
        uint32_t jobs; /* most jobs that a lane runs together */
        uint32_t span_ms;
        enum isolation_choice isolation;
        enum stream_choice stream;
        enum graphs_choice graphs;
    } batch;
    struct {
        uint64_t device_bytes; /* 0: what the lanes and one large job need */
        uint64_t pinned_bytes;
    } pools;
    struct {
        uint64_t budget_bytes; /* device memory; 0 means 1/32 of the device */
        uint32_t entries_max;
    } statics;
    struct {
        uint32_t idle_timeout_ms;
        uint64_t bytes_max;     /* device memory; 0 means half of the device */
        uint64_t bytes_per_key; /* 0 means a quarter of what all may have, as below */
        uint32_t entries_max;
        uint32_t entries_per_key;
    } residents;
    struct {
        uint32_t threads;
    } admission;
    struct {
        uint32_t threads;
    } prepare;

    struct {
        char *listen;     /* empty: nowhere */
        char *token_file; /* empty: no secret is needed */
    } http;
    struct {
        char *otlp_url; /* "": no job is traced; may contain credentials */
    } tracing;
    struct {
        uint32_t interval_ms; /* 0: no telemetry is published */
    } telemetry;
    struct {
        enum log_level level;
        enum log_format format;
    } log;
    struct {
        char *nvtx_library; /* "": no ranges for profilers */
    } profile;
};

/** Fills in every default. */
void settings_init(struct settings *settings);
void settings_fini(struct settings *settings);

/**
 * Reads `path` ("-" is standard input, NULL stands for an empty file: all defaults) over the
 * defaults. Every problem is added to `problems`: unknown keys (with the nearest known one),
 * duplicates, wrong types, values out of range, unset variables, keys of the kafka maps that would
 * void a guarantee, combinations that cannot work. `settings` must be initialised; use it only if
 * there are none.
 */
void settings_load(struct settings *settings, const char *path, struct problems *problems);

/** As settings_load(), from text; `file` is the name used in problems. For tests and fuzzing. */
void settings_parse(
    struct settings *settings, const char *file, struct slice text, struct problems *problems);

/**
 * The folder of programs: programs.dir or its default. The caller frees it; NULL when memory is
 * short.
 */
char *settings_programs_dir(const struct settings *settings);

/** The number of the first of `devices`, 0 if it is `all`; false if only its UUID is known. */
MUST_CHECK bool settings_first_device(const struct settings *settings, uint32_t *ret);

/**
 * The least `max.poll.interval.ms` of kafka.consumer: the group waits for so long for a worker that
 * gives partitions back, which may take drain_timeout_ms, and hears of it with a heartbeat (3 s).
 */
uint64_t settings_poll_interval_ms(const struct settings *settings);

/**
 * The folder of state files: state.dir or its default. The caller frees it; NULL when memory is
 * short.
 */
char *settings_state_dir(const struct settings *settings);

/** Effective configuration as YAML that settings_load() accepts; secrets are masked as "***". */
void settings_print(const struct settings *settings, FILE *out);

/** Prints one JSON object in one line instead, which settings_load() accepts as well. */
void settings_print_json(const struct settings *settings, FILE *out);

/** All defaults as commented YAML; the JSON Schema of the file; the table of config/README.md
 * (Markdown). */
void settings_print_defaults(FILE *out);
void settings_print_schema(FILE *out);
void settings_print_table(FILE *out);

#endif
