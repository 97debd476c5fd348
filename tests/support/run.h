/** One run of the whole worker, on the CPU driver, between two ends in memory. */
#ifndef TESTS_SUPPORT_RUN_H
#define TESTS_SUPPORT_RUN_H

#include <msgpack.h>

#include "pipeline/executor.h"
#include "support/jobs.h"
#include "support/memory_broker.h"

enum { RUN_JOBS_MAX = 16384 };

struct run {
    struct settings settings; /* change them before run_execute() */
    struct memory_broker broker;
    struct memory_broker telemetry; /* what the worker said of itself, decoded by the tests */
    struct memory_broker progress;  /* what long jobs have shown */
    struct slice jobs[RUN_JOBS_MAX];
    struct memory_place places[RUN_JOBS_MAX];
    size_t job_count;
    struct reader *control;           /* NULL: none; the run owns it */
    void (*on_poll)(struct run *run); /* NULL: nothing; on the thread that polls the source */
    /* 0: at the end of the jobs; else a signal to stop, after so many finished */
    size_t stop_after;
    struct state *state; /* NULL: none is kept */
    const char *sysfs;   /* as pipeline/options.h has it, and on_lost */
    void (*on_lost)(const struct error *err);
    atomic_bool stop;
    struct executor_summary summary;
    struct error err;
};

/** Set-up and tear-down of a cmocka test whose state is a struct run. */
int run_set_up(void **state);
int run_tear_down(void **state);
#define FLOW(name) cmocka_unit_test_setup_teardown(name, run_set_up, run_tear_down)

/** Replaces a text of the settings. */
void run_set_text(char **field, const char *text);

/** Jobs find others to share a batch with, however slow the machine: one lane, in whose first
 * launch the others get ready; and what jobs take that were seen once keeps nobody apart. Takes the
 * place of the driver's faults. */
void run_gather(struct run *run);

/** Ends what the last run left, as a new process would; settings and jobs stay. */
void run_restart(struct run *run);

/** Ends what the last run left, and its jobs, too; settings stay. */
void run_forget(struct run *run);

void run_add_job(struct run *run, const char *yaml);
/** Adds a job whose message has a key; its place may be changed until run_execute(). */
struct memory_place *run_add_keyed(struct run *run, const char *key, const char *yaml);
void run_add_bytes(struct run *run, const void *bytes, size_t size);

/** job-k: x = {k, 1}, y = {1, 1}, y' = 2x + y = {2k + 1, 3} */
void run_add_saxpy(struct run *run, int k);

enum err run_execute(struct run *run);

/** Of the messages of this run; while it runs, too. */
size_t run_finished_count(struct run *run);

/** The run must end well, with every message finished once. */
void run_execute_ok(struct run *run);

/* The results of run_execute(), by the job's id. */
void run_assert_output(
    struct run *run, const char *id, uint32_t index, const void *expected, size_t size);
void run_assert_error(struct run *run, const char *id, const char *code);
uint64_t run_telemetry(struct run *run, const char *id, const char *key);
uint64_t run_batch_telemetry(struct run *run, const char *id, const char *key);

/** The decoded result; ends with msgpack_unpacked_destroy(). */
msgpack_object run_unpack_result(struct run *run, const char *id, msgpack_unpacked *unpacked);

/** The value of a key; NULL if there is none. */
const msgpack_object *msgpack_get(const msgpack_object *map, const char *key);

#endif
