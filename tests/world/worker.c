#include "world/worker.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/pulse.h"
#include "cpu_driver/cpu_driver.h"
#include "pipeline/connect.h"
#include "pipeline/executor.h"
#include "pipeline/fitness.h"
#include "state/crash.h"
#include "world/cluster.h"
#include "world/leaks.h"
#include "world/memory.h"
#include "world/scheduler.h"
#include "world/versions.h"

enum {
    STATE_LOCK_MS = 1000,
    CONFIG_SIZE = 2048,
    JOBS_MAX = 256,
    POLL_INTERVAL_MS = 300000 /* librdkafka's own */
};

/* As small as they can be, since each life begins with filling its memory. */
static const char config[] =
    "driver: cpu\n"
    "cpu_driver: {memory_bytes: 64MiB, faults: '%s'}\n"
    "lanes: 2\n"
    "lane_depth: 1\n"
    "lane_slab_bytes: 64KiB\n"
    "admission: {threads: 1}\n"
    "prepare: {threads: 1}\n"
    "batch: {stream: copied, jobs: %" PRIu32 "}\n"
    "limits: {jobs_in_flight: %" PRIu32
    ", job_bytes: 1MiB, array_bytes: 1MiB, bytes_in_flight: %s}\n"
    "retry: {base_ms: %s}\n"
    "log: {level: %s}\n"
    "programs: {dir: '%s'}\n"
    "blobs: {dir: '%s'}\n"
    "delivery: %s\n"
    "ordering: %s\n"
    "drain_timeout_ms: %" PRIu32 "ms\n"
    "telemetry: {interval_ms: %s}\n"
    "topics: {jobs: [" WORLD_JOBS "], results: " WORLD_RESULTS ", dead_letters: " WORLD_DEAD_LETTERS
    ", telemetry: " WORLD_TELEMETRY ", control: " WORLD_CONTROL "}\n"
    "kafka:\n"
    "  bootstrap_servers: world:1\n"
    "  group: workers\n"
    "  consumer: {auto.offset.reset: %s, max.poll.interval.ms: %" PRIu32 "}\n";

/* Each worker of a world is on a machine of its own. */
static const struct worker *worker;
static struct connection connection;
static struct state *own_state;

int __wrap_gethostname(char *name, size_t size);
int __wrap_gethostname(char *name, size_t size) {
    snprintf(name, size, "%s", worker->name);
    return 0;
}

/* An edition that is broken ends in the middle of a line. */
static struct slice write_config(
    const struct worker *of, enum worker_edition edition, char text[static CONFIG_SIZE]) {
    struct settings defaults;
    settings_init(&defaults);
    bool is_first = edition == EDITION_FIRST;
    uint32_t drain_ms = of->drain_timeout_ms, poll_ms = of->poll_interval_ms;
    int size = snprintf(text, CONFIG_SIZE, config, of->faults,
        of->batch_jobs != 0 ? of->batch_jobs : defaults.batch.jobs,
        of->jobs_max != 0 ? of->jobs_max : JOBS_MAX, is_first ? "256MiB" : "4MiB",
        is_first ? "200ms" : "1s", of->tells || of->log != NULL ? "warn" : "off",
        is_first ? of->programs : of->other_programs, of->blobs,
        of->exactly_once ? "exactly_once" : "at_least_once", of->in_order ? "key" : "none",
        drain_ms != 0 ? drain_ms : defaults.drain_timeout_ms, of->tells_telemetry ? "10s" : "0s",
        of->reads_latest ? "latest" : "earliest", poll_ms != 0 ? poll_ms : POLL_INTERVAL_MS);
    settings_fini(&defaults);
    if (edition == EDITION_BROKEN) size -= (int)strlen("}\n");
    return slice_of(text, (size_t)size);
}

static void save_config(const struct worker *of, enum worker_edition edition) {
    char text[CONFIG_SIZE];
    struct slice written = write_config(of, edition, text);
    FILE *file = fopen(of->config, "w");
    if (file == NULL || fwrite(written.data, written.size, 1, file) != 1 || fclose(file) != 0)
        abort();
}

static void configure(struct settings *settings) {
    char text[CONFIG_SIZE];
    struct problems problems;
    settings_init(settings);
    problems_init(&problems);
    if (worker->config != NULL) save_config(worker, worker->edition);
    settings_parse(settings, worker->name, write_config(worker, worker->edition, text), &problems);
    problems_print(&problems, worker->name);
    if (problems.count > 0) abort();
    problems_fini(&problems);
}

static enum err begin(void *context, struct executor_life *ret, struct error *err) {
    const struct settings *settings = context;
    const struct membership membership = {
        .instance_id = worker->is_static ? worker->name : "", .owner = worker->owner};
    struct error set_aside;
    enum err code = state_open(worker->state, STATE_LOCK_MS, &own_state, &set_aside, err);
    if (code != ERR_OK) return code;
    crash_watch(own_state);
    pulse_keep(state_pulses(own_state));
    code = connect_kafka(settings, 0, &membership, NULL, &connection, err);
    if (code != ERR_OK) return code;
    if (worker->may_lack_memory) {
        memory_watch_source(connection.source);
        memory_watch_sink(connection.sink);
        memory_watch_sink(connection.telemetry);
    }
    *ret = (struct executor_life){.source = connection.source,
        .sink = connection.sink,
        .telemetry = connection.telemetry,
        .control = connection.control,
        .state = own_state};
    return ERR_OK;
}

static void leave(const struct error *err) {
    scheduler_exit(WORKER_LOST_GPU);
}

/* What it had of the device is given back, and it never wrote where it should not. So is all else,
 * unless there was no memory to end a client with. */
static bool has_left_nothing(void) {
    struct cpu_driver_counters counters = cpu_driver_counters();
    uint64_t live = counters.allocations_live + counters.device_bytes_live +
                    counters.pinned_bytes_live + counters.registered_bytes_live +
                    counters.streams_live + counters.events_live + counters.modules_live +
                    counters.graphs_live;
    uint64_t mistakes = counters.hazards + counters.freed_in_use + counters.writes_after_free +
                        counters.guards_broken;
    if (live + mistakes > 0)
        fprintf(stderr, "%s leaves %llu things of its device, and made %llu mistakes\n",
            worker->name, (unsigned long long)live, (unsigned long long)mistakes);
    return live + mistakes == 0 && (worker->may_lack_memory || leaks_end() == 0);
}

/* cmocka has handlers of its own, after which the process would go on. */
static void let_crashes_kill(void) {
    for (int number = 1; number < SIGRTMIN; number++)
        if (crash_is_signal(number)) (void)signal(number, SIG_DFL);
}

static int run(void *context) {
    worker = context;
    let_crashes_kill();
    struct settings settings;
    struct executor_summary summary;
    struct error err;
    if (worker->is_cooperative) versions_be_new();
    if (worker->log != NULL && freopen(worker->log, "a", stderr) == NULL) abort();
    configure(&settings);
    log_init(worker->tells || worker->log != NULL ? LOG_WARN : LOG_OFF, LOG_TEXT);
    const struct fitness_source reloads = {.config = worker->config, .is_sandboxed = true};
    const struct executor_options options = {.settings = &settings,
        .reloads = worker->config != NULL ? &reloads : NULL,
        .begin = begin,
        .context = &settings,
        .on_lost = leave,
        .board = worker->board,
        .stop = worker->stop};
    leaks_begin();
    enum err code = executor_run(&options, &summary, &err);
    if (code == ERR_TIMEOUT) return WORKER_IS_LATE;
    connection_fini(&connection);
    state_close(own_state);
    if (code == ERR_OK && worker->summary != NULL) {
        worker->summary->ok += summary.ok;
        worker->summary->errors += summary.errors;
    }
    if (code == ERR_OK) return has_left_nothing() ? 0 : 1;
    if (code == ERR_IO && err.native == ENOSPC) return WORKER_LACKS_DISK;
    if (worker->tells || (code != ERR_BROKER && code != ERR_NO_MEMORY))
        fprintf(stderr, "    %s ended: %s\n", worker->name, err.message);
    if (code == ERR_NO_MEMORY) return WORKER_LACKS_MEMORY;
    return code == ERR_BROKER ? WORKER_IS_REFUSED : 1;
}

void worker_make_topics(int32_t partitions) {
    cluster_make_topic(WORLD_JOBS, partitions);
    cluster_make_topic(WORLD_RESULTS, 1);
    cluster_make_topic(WORLD_DEAD_LETTERS, 1);
    cluster_make_topic(WORLD_TELEMETRY, 1);
    cluster_make_topic(WORLD_CONTROL, 1);
}

void worker_note_crash(const struct worker *dead, int status) {
    struct state_death death = {.kind = STATE_DEATH_SIGNAL, .native = WTERMSIG(status)};
    struct state *state;
    struct error err;
    snprintf(death.message, sizeof death.message, "signal %d", WTERMSIG(status));
    enum err code = state_amend(dead->state, STATE_LOCK_MS, &state, &err);
    if (code == ERR_OK) {
        state_record_death(state, &death);
        code = state_save(state, &err);
        state_close(state);
    }
    if (code != ERR_OK && err.native != ENOSPC) abort(); /* a full disk keeps the cause unknown */
}

void worker_reload(struct worker *reloaded, enum worker_edition edition) {
    int status;
    if (edition != EDITION_BROKEN) reloaded->edition = edition;
    save_config(reloaded, edition);
    if (!scheduler_has_ended(reloaded->process, &status)) kill(reloaded->process, SIGHUP);
}

void worker_start(struct worker *started) {
    atomic_store(started->stop, false);
    started->process = scheduler_fork(run, started);
    if (started->tells)
        fprintf(stderr, "    %s is process %d\n", started->name, (int)started->process);
}
