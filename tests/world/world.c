#include "world/world.h"

#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "quarantine/attribution.h"
#include "world/account.h"
#include "world/boards.h"
#include "world/cluster.h"
#include "world/disk.h"
#include "world/memory.h"
#include "world/scheduler.h"
#include "world/store.h"
#include "world/worker.h"

enum {
    WORKERS_MAX = 3,
    TWIN = WORKERS_MAX, /* behind the others */
    TWIN_MS_MAX = 60000,
    BACK_OFF_MS = 100, /* of a supervisor (supervise/deaths.c) */
    BACK_OFF_DOUBLINGS = 8,
    PARTITIONS_MAX = 4,
    JOBS_A_STEP_MAX = 20,
    SMALL_BATCH_BYTES = 2000,
    FEW_JOBS = 8,
    LAUNCHES_MAX = 40, /* before a GPU is lost */
    PAUSE_MS_MAX = 4000,
    SILENCE_MS_MAX = 40000,
    BACK_S_MAX = 86400, /* of wall clocks */
    AHEAD_S_MAX = 30 * 86400,
    LOOK_MS = 100,
    CONTROL_AWAY_MS = 5000,
    DEATHS_MAX = 100,
    /* All of it is the world's time, so no machine is too slow; twice what was ever seen. */
    ANSWERS_MS = 1800000, /* for the last answer, with all time-outs and slow copies */
    REST_MS = ANSWERS_MS, /* until all workers show that nothing is left, of excused jobs, too */
    COMMITS_MS = 120000,  /* for the last commit behind it, and behind jobs that are excused */
    STOP_MS = 120000,
    CALM_ANSWER_MS = 10000, /* where nothing happens, while a group comes together */
    CALM_STOP_MS = 2000
};

struct world {
    const struct world_options *options;
    struct account *account;
    struct worker workers[WORKERS_MAX + 1];
    struct worker_summary *summary; /* of all of them */
    struct {
        unsigned count;
        uint64_t again_ns; /* when it is started again; 0: it was not refused */
    } refusals[WORKERS_MAX + 1];
    uint64_t twin_until_ns; /* 0: there was none */
    char states[WORKERS_MAX + 1][512], configs[WORKERS_MAX + 1][512];
    char programs[512], other_programs[512], blobs[512], log[512];
    size_t worker_count, deaths, kills;
    uint32_t events; /* those that this one may have */
    bool exactly_once, in_order, is_cooperative;
};

/* Nothing happens in it. */
static bool is_calm(const struct world *world) {
    return world->events == 0;
}

static bool is_orderly(const struct world *world) {
    return (world->events & ~(uint32_t)WORLD_ORDERLY) == 0;
}

__attribute__((format(printf, 2, 3))) static void tell(
    const struct world *world, const char *format, ...) {
    if (!world->options->tells) return;
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%10.3f ", (double)scheduler_now_ns() / 1e9);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
}

static void sleep_up_to_ms(uint64_t ms) {
    scheduler_sleep_ns(1 + scheduler_draw(ms * 1000000u));
}

/* ---- events ---- */

static struct worker *any_worker(struct world *world) {
    return &world->workers[scheduler_draw(world->worker_count)];
}

static struct topic *jobs_topic(void) {
    return cluster_find_topic(WORLD_JOBS);
}

static int32_t any_partition(void) {
    return (int32_t)scheduler_draw((uint64_t)jobs_topic()->partition_count);
}

static void send_jobs(struct world *world) {
    size_t count = 1 + scheduler_draw(JOBS_A_STEP_MAX);
    tell(world, "%zu jobs are sent", count);
    for (size_t i = 0; i < count; i++) account_send(world->account, any_partition());
}

/* Who runs alone each time that a worker dies is convicted in the end, though nobody knows why it
 * dies. */
static void kill_worker(struct world *world) {
    if (world->kills == ATTRIBUTION_TRIES_MAX) return;
    world->kills++;
    struct worker *worker = any_worker(world);
    tell(world, "%s is killed", worker->name);
    scheduler_kill(worker->process);
    sleep_up_to_ms(PAUSE_MS_MAX);
    worker_start(worker);
}

/* A GPU is lost once in a worker's life, and no job is to blame; for this crash one is. */
static bool may_die(const struct world *world, int status) {
    bool is_short = (world->events & WORLD_SHORTAGES) != 0 &&
                    (status == WORKER_LACKS_MEMORY << 8 || status == WORKER_IS_REFUSED << 8);
    bool has_trapped = WIFSIGNALED(status) && WTERMSIG(status) == SIGILL;
    return world->deaths < DEATHS_MAX && (is_short || status == WORKER_LOST_GPU << 8 ||
                                             (has_trapped && account_has_poison(world->account)));
}

/* The supervisor's part. */
static void restart_the_dead(struct world *world) {
    int status;
    for (size_t i = 0; i < world->worker_count; i++) {
        struct worker *worker = &world->workers[i];
        if (!scheduler_has_ended(worker->process, &status) || !may_die(world, status)) continue;
        tell(world, "%s has died with %#x", worker->name, (unsigned)status);
        if (WIFSIGNALED(status)) worker_note_crash(worker, status);
        worker->faults[0] = 0;
        world->deaths++;
        account_allow_repeats(world->account);
        worker_start(worker);
    }
}

/* Of two of one name, the earlier is; and whoever begins while the disk is full. */
static bool may_be_refused(const struct world *world, int status) {
    bool has_full_disk = (world->events & WORLD_FULL_DISKS) != 0;
    return (world->twin_until_ns != 0 && status == WORKER_IS_REFUSED << 8) ||
           (has_full_disk && status == WORKER_LACKS_DISK << 8);
}

/* Starts again those that were refused, after growing waits. */
static void restart_refused(struct world *world, size_t i) {
    int status;
    uint64_t *again_ns = &world->refusals[i].again_ns;
    bool has_ended = scheduler_has_ended(world->workers[i].process, &status);
    if (!has_ended || !may_be_refused(world, status)) {
        *again_ns = 0;
        return;
    }
    if (*again_ns == 0) {
        unsigned doublings = world->refusals[i].count++;
        if (doublings > BACK_OFF_DOUBLINGS) doublings = BACK_OFF_DOUBLINGS;
        *again_ns = scheduler_now_ns() + ((uint64_t)BACK_OFF_MS << doublings) * 1000000u;
        tell(world, "%s was refused", world->workers[i].name);
    }
    if (scheduler_now_ns() < *again_ns) return;
    *again_ns = 0;
    worker_start(&world->workers[i]);
}

static bool has_twin(const struct world *world) {
    return scheduler_now_ns() < world->twin_until_ns;
}

static void supervise(struct world *world) {
    restart_the_dead(world);
    for (size_t i = 0; i < world->worker_count; i++) restart_refused(world, i);
    if (has_twin(world)) restart_refused(world, TWIN);
    else if (world->twin_until_ns != 0) atomic_store(world->workers[TWIN].stop, true);
}

static void pass_time(struct world *world) {
    supervise(world);
    scheduler_sleep_ns(LOOK_MS * 1000000u);
}

/* Whoever does not run, or waits for a slow copy, for longer than a drain may take. */
static bool may_be_late(const struct world *world, const struct worker *worker, int status) {
    bool may_be = strstr(worker->faults, "slow") != NULL ||
                  (world->events & (WORLD_FREEZES | WORLD_OUTAGES)) != 0;
    return status == WORKER_IS_LATE << 8 && may_be;
}

/* While no broker answers it cannot commit, and says so. */
static bool await_end(const struct world *world, const struct worker *worker, uint64_t since_ns) {
    int status;
    uint64_t limit_ms = is_calm(world) ? CALM_STOP_MS : STOP_MS;
    uint64_t until_ns = scheduler_now_ns() + limit_ms * 1000000u;
    while (!scheduler_has_ended(worker->process, &status) && scheduler_now_ns() < until_ns)
        scheduler_sleep_ns(LOOK_MS * 1000000u);
    bool has_ended = scheduler_has_ended(worker->process, &status);
    if (has_ended && (status == 0 || may_be_late(world, worker, status) || may_die(world, status) ||
                         may_be_refused(world, status) || cluster_down_until_ns() > since_ns))
        return true;
    fprintf(stderr, "%s was asked to stop, and ended with %#x\n", worker->name, (unsigned)status);
    return false;
}

static bool stop_worker(struct world *world) {
    struct worker *worker = any_worker(world);
    tell(world, "%s is asked to stop", worker->name);
    atomic_store(worker->stop, true);
    if (!await_end(world, worker, scheduler_now_ns())) return false;
    worker->faults[0] = 0;
    worker_start(worker);
    return true;
}

static void freeze_worker(struct world *world) {
    const struct worker *worker = any_worker(world);
    uint64_t ms = 1 + scheduler_draw(SILENCE_MS_MAX);
    tell(world, "%s is frozen for %" PRIu64 " ms", worker->name, ms);
    scheduler_freeze(worker->process, scheduler_now_ns() + ms * 1000000u);
}

static void go_down(struct world *world) {
    uint64_t ms = 1 + scheduler_draw(SILENCE_MS_MAX / 2);
    tell(world, "the brokers are away for %" PRIu64 " ms", ms);
    cluster_go_down_until(scheduler_now_ns() + ms * 1000000u);
}

/* False: it has as many as it may have. */
static bool add_partition(struct world *world, const char *topic) {
    int32_t count = cluster_find_topic(topic)->partition_count + 1;
    if (count > PARTITIONS_MAX) return false;
    tell(world, "%s has %" PRId32 " partitions", topic, count);
    cluster_add_partitions(topic, count);
    return true;
}

/* As a tool does that mirrors the group's offsets: an earlier offset, and the text of the last. */
static void move_commit(struct world *world) {
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    int32_t partition = any_partition();
    rd_kafka_topic_partition_list_add(list, WORLD_JOBS, partition);
    group_fetch(list, false);
    rd_kafka_topic_partition_t *p = &list->elems[0];
    if (p->offset > jobs_topic()->logs[partition].low) {
        int64_t back = 1 + (int64_t)scheduler_draw((uint64_t)p->offset);
        tell(world, "%s [%" PRId32 "]: the commit moves from %" PRId64 " back by %" PRId64,
            WORLD_JOBS, partition, p->offset, back);
        p->offset -= back;
        (void)group_commit(list, NULL);
    }
    rd_kafka_topic_partition_list_destroy(list);
}

static void truncate_log(struct world *world) {
    int32_t partition = any_partition();
    struct log *log = cluster_find_log(WORLD_JOBS, partition);
    if (log->end <= log->low) return;
    int64_t end = log->end - 1 - (int64_t)scheduler_draw((uint64_t)(log->end - log->low) / 2 + 1);
    if (end < log->low) end = log->low;
    tell(world, "%s [%" PRId32 "] is cut from %" PRId64 " to %" PRId64, WORLD_JOBS, partition,
        log->end, end);
    account_excuse(world->account, partition, end, log->end);
    account_doubt(world->account, partition, log->end);
    cluster_truncate(log, end);
}

static void expire_log(struct world *world) {
    int32_t partition = any_partition();
    struct log *log = cluster_find_log(WORLD_JOBS, partition);
    int64_t low = log->low + (int64_t)scheduler_draw((uint64_t)(log->end - log->low) + 1);
    tell(world, "%s [%" PRId32 "] expires up to %" PRId64, WORLD_JOBS, partition, low);
    account_excuse(world->account, partition, log->low, low);
    log->low = low;
}

static void recreate_topic(struct world *world) {
    int32_t count = 1 + (int32_t)scheduler_draw(PARTITIONS_MAX);
    for (int32_t p = 0; p < PARTITIONS_MAX; p++) {
        account_excuse(world->account, p, 0, INT64_MAX);
        account_doubt(world->account, p, 0);
    }
    tell(world, "the job topic is made anew, with %" PRId32 " partitions", count);
    cluster_delete_topic(WORLD_JOBS);
    scheduler_sleep_ns(1 + scheduler_draw(3000000000u));
    cluster_make_topic(WORLD_JOBS, count);
}

static void send_poison(struct world *world) {
    tell(world, "a job is sent that ends its executor");
    account_send_poison(world->account, any_partition());
}

/* Workers that are frozen, or have no brokers, hear of it late. A cancel may expire meanwhile, by
 * the clock on the wall. */
static bool are_cancels_prompt(const struct world *world) {
    return (world->events & (WORLD_FREEZES | WORLD_OUTAGES | WORLD_CLOCKS)) == 0;
}

static void cancel_job(struct world *world) {
    tell(world, "a job is cancelled");
    account_cancel(world->account, are_cancels_prompt(world));
}

static void add_control_partition(struct world *world) {
    if (add_partition(world, WORLD_CONTROL))
        account_cancel_next(world->account, are_cancels_prompt(world));
}

/* For so long that workers see it, also where topics have no ids. */
static void recreate_control(struct world *world) {
    tell(world, "the control topic is made anew");
    cluster_delete_topic(WORLD_CONTROL);
    account_forget_cancels(world->account);
    scheduler_sleep_ns(CONTROL_AWAY_MS * 1000000ull);
    cluster_make_topic(WORLD_CONTROL, 1 + (int32_t)scheduler_draw(2));
    account_cancel_next(world->account, are_cancels_prompt(world));
}

static void fail_store(struct world *world) {
    uint64_t ms = 1 + scheduler_draw(SILENCE_MS_MAX);
    tell(world, "the blob store fails for %" PRIu64 " ms", ms);
    store_fail_until(scheduler_now_ns() + ms * 1000000u);
}

static void shift_clocks(struct world *world) {
    bool is_back = scheduler_draw(2) == 0;
    int64_t s = 1 + (int64_t)scheduler_draw(is_back ? BACK_S_MAX : AHEAD_S_MAX);
    tell(world, "wall clocks are set %s by %" PRId64 " s", is_back ? "back" : "ahead", s);
    scheduler_shift_wall((is_back ? -s : s) * 1000000000);
}

static void reload_worker(struct world *world) {
    static const char *const names[] = {"its first configuration", "another one", "a broken one"};
    struct worker *worker = any_worker(world);
    enum worker_edition edition = (enum worker_edition)scheduler_draw(EDITION_BROKEN + 1);
    tell(world, "%s is to read %s", worker->name, names[edition]);
    worker_reload(worker, edition);
}

static void lack_memory(struct world *world) {
    uint64_t ms = 1 + scheduler_draw(SILENCE_MS_MAX / 2);
    tell(world, "memory is short for %" PRIu64 " ms", ms);
    memory_fail_until(scheduler_now_ns() + ms * 1000000u);
}

static void fill_disks(struct world *world) {
    uint64_t ms = 1 + scheduler_draw(SILENCE_MS_MAX / 2);
    tell(world, "disks are full for %" PRIu64 " ms", ms);
    disk_fill_until(scheduler_now_ns() + ms * 1000000u);
}

static const char *name_config(struct world *world, size_t index) {
    char *path = world->configs[index];
    snprintf(path, sizeof world->configs[index], "%s/config-%zu", world->options->folder, index);
    return path;
}

/* On another machine, which somebody gave the same name. One at a time. */
static void start_twin(struct world *world) {
    int status;
    struct worker *twin = &world->workers[TWIN];
    if (world->twin_until_ns != 0 && !scheduler_has_ended(twin->process, &status)) return;
    const struct worker *like = any_worker(world);
    uint64_t ms = 1 + scheduler_draw(TWIN_MS_MAX);
    tell(world, "another %s runs for %" PRIu64 " ms", like->name, ms);
    *twin = *like;
    snprintf(
        world->states[TWIN], sizeof world->states[TWIN], "%s/state-twin", world->options->folder);
    twin->state = world->states[TWIN];
    if (twin->config != NULL) twin->config = name_config(world, TWIN);
    twin->owner = 1 + scheduler_draw(UINT64_MAX);
    twin->faults[0] = 0;
    twin->stop = scheduler_alloc(sizeof *twin->stop);
    twin->board = scheduler_alloc(sizeof *twin->board);
    world->refusals[TWIN].count = 0;
    world->refusals[TWIN].again_ns = 0;
    world->twin_until_ns = scheduler_now_ns() + ms * 1000000u;
    worker_start(twin);
}

/* One of those that this world may have; none, in one that is spared. */
static bool let_happen(struct world *world) {
    if (world->events == 0) return true;
    uint32_t event;
    bool are_drawn = world->events >> WORLD_DRAWN_EVENTS == 0;
    do event = 1u << scheduler_draw(are_drawn ? WORLD_DRAWN_EVENTS : WORLD_EVENTS);
    while ((world->events & event) == 0);
    switch (event) {
    case WORLD_KILLS: kill_worker(world); break;
    case WORLD_STOPS: return stop_worker(world);
    case WORLD_FREEZES: freeze_worker(world); break;
    case WORLD_OUTAGES: go_down(world); break;
    case WORLD_PARTITIONS: (void)add_partition(world, WORLD_JOBS); break;
    case WORLD_MOVES:
        if (!world->exactly_once) move_commit(world);
        break;
    case WORLD_TRUNCATIONS: truncate_log(world); break;
    case WORLD_RECREATIONS: recreate_topic(world); break;
    case WORLD_EXPIRIES: expire_log(world); break;
    case WORLD_POISONS: send_poison(world); break;
    case WORLD_CANCELS: cancel_job(world); break;
    case WORLD_STORE_FAULTS: fail_store(world); break;
    case WORLD_TWINS: start_twin(world); break;
    case WORLD_CLOCKS: shift_clocks(world); break;
    case WORLD_RELOADS: reload_worker(world); break;
    case WORLD_SHORTAGES: lack_memory(world); break;
    case WORLD_FULL_DISKS: fill_disks(world); break;
    case WORLD_CONTROL_PARTITIONS: add_control_partition(world); break;
    case WORLD_CONTROL_RECREATIONS: recreate_control(world); break;
    }
    return true;
}

/* ---- a life ---- */

/* All workers of a world are configured alike. A group that starts at the end of a topic cannot
 * know that the topic is another one, if all of its members start again. */
static void configure(struct world *world, struct worker *worker) {
    const struct worker *like = worker > world->workers ? world->workers : NULL;
    if (like != NULL) {
        worker->is_static = like->is_static;
        worker->reads_latest = like->reads_latest;
        worker->poll_interval_ms = like->poll_interval_ms;
        worker->drain_timeout_ms = like->drain_timeout_ms;
        worker->tells_telemetry = like->tells_telemetry;
    } else {
        worker->is_static = scheduler_draw(3) == 0;
        worker->reads_latest = scheduler_draw(4) == 0 && (world->events & WORLD_RECREATIONS) == 0;
        bool is_short = scheduler_draw(3) == 0;
        worker->poll_interval_ms = is_short ? 21000 : 0;
        worker->drain_timeout_ms = is_short ? 10000 : 0;
        worker->tells_telemetry = scheduler_draw(4) == 0 || is_orderly(world);
    }
    if (is_calm(world)) return;
    /* whoever loses its GPU while it runs a suspect alone convicts that */
    switch (scheduler_draw((world->events & WORLD_POISONS) != 0 ? 3 : 5)) {
    case 0:
    case 1:
        snprintf(worker->faults, sizeof worker->faults, "seed=%d;cuMemcpyDtoHAsync:slow=%ds@p0.1",
            (int)scheduler_draw(1000), 1 + (int)scheduler_draw(30));
        account_allow_repeats(world->account); /* it may take longer than a drain may */
        break;
    case 2: /* so seldom that no job fails as often as it may be tried */
        snprintf(worker->faults, sizeof worker->faults,
            "seed=%d;cuMemcpyDtoHAsync:invalid_value@p0.01", (int)scheduler_draw(1000));
        break;
    case 3:
        snprintf(worker->faults, sizeof worker->faults, "cuLaunchKernel:illegal_address@%d",
            1 + (int)scheduler_draw(LAUNCHES_MAX));
        break;
    }
}

/* What is sent before they have their partitions is nobody's promise with auto.offset.reset:
 * latest. */
static void await_first(struct world *world) {
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    bool are_placed = !world->workers[0].reads_latest;
    for (int32_t p = 0; p < jobs_topic()->partition_count; p++)
        rd_kafka_topic_partition_list_add(list, WORLD_JOBS, p);
    while (!are_placed) {
        pass_time(world);
        group_fetch(list, false);
        are_placed = true;
        for (int i = 0; i < list->cnt; i++) are_placed = are_placed && list->elems[i].offset >= 0;
    }
    rd_kafka_topic_partition_list_destroy(list);
}

static void link_to(const char *folder, const char *name, const char *target) {
    char path[2048];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (symlink(target, path) != 0) abort();
}

/* The manifest has one more line, so it is taken for another program. */
static void change_manifest(const char *folder) {
    char path[2048], text[4096];
    FILE *from = fopen(GPU_WORKER_PROGRAMS_DIR "/saxpy/program.yaml", "r");
    snprintf(path, sizeof path, "%s/program.yaml", folder);
    FILE *to = fopen(path, "w");
    if (from == NULL || to == NULL) abort();
    size_t size = fread(text, 1, sizeof text, from);
    if (fwrite(text, 1, size, to) != size || fputs("# another edition\n", to) < 0) abort();
    if (fclose(to) != 0 || fclose(from) != 0) abort();
}

/* Links the programs that jobs name, and the same as another edition has them. */
static void link_programs(struct world *world) {
    char saxpy[1024];
    snprintf(world->programs, sizeof world->programs, "%s/programs", world->options->folder);
    snprintf(world->other_programs, sizeof world->other_programs, "%s/other-programs",
        world->options->folder);
    snprintf(saxpy, sizeof saxpy, "%s/saxpy", world->other_programs);
    if (mkdir(world->programs, 0700) != 0 || mkdir(world->other_programs, 0700) != 0 ||
        mkdir(saxpy, 0700) != 0)
        abort();
    link_to(world->programs, "saxpy", GPU_WORKER_PROGRAMS_DIR "/saxpy");
    link_to(world->programs, "poison", GPU_WORKER_POISON_DIR);
    link_to(world->other_programs, "poison", GPU_WORKER_POISON_DIR);
    link_to(saxpy, "saxpy.so", GPU_WORKER_PROGRAMS_DIR "/saxpy/saxpy.so");
    link_to(saxpy, "saxpy.ptx", GPU_WORKER_PROGRAMS_DIR "/saxpy/saxpy.ptx");
    change_manifest(saxpy);
}

/* Bits that depend on the seed alone: whatever is drawn is the same with them and without. */
static uint64_t undrawn(uint64_t seed) {
    return (seed * 0x9e3779b97f4a7c15u) >> 32;
}

static bool is_cooperative(uint64_t seed) {
    return undrawn(seed) >> 31 != 0;
}

/* Each in a quarter of all worlds. SIGHUP waits until a worker looks for it. */
static uint32_t undrawn_events(uint64_t seed) {
    sigset_t hangup;
    uint32_t ret = (undrawn(seed) >> 2 & 3) == 0 ? WORLD_SHORTAGES : 0;
    if ((undrawn(seed) >> 7 & 3) == 0) ret |= WORLD_FULL_DISKS;
    if ((undrawn(seed) >> 11 & 3) == 0) ret |= WORLD_CONTROL_PARTITIONS;
    if ((undrawn(seed) >> 13 & 3) == 0) ret |= WORLD_CONTROL_RECREATIONS;
    if ((undrawn(seed) & 3) != 0) return ret;
    sigemptyset(&hangup);
    sigaddset(&hangup, SIGHUP);
    if (pthread_sigmask(SIG_BLOCK, &hangup, NULL) != 0) abort();
    return ret | WORLD_RELOADS;
}

/* One world in eight is calm, and in one nobody dies. */
static uint32_t allowed_events(uint64_t seed) {
    switch (undrawn(seed) >> 4 & 7) {
    case 0: return 0;
    case 1: return WORLD_ORDERLY;
    default: return WORLD_ALL;
    }
}

/* In a quarter of all worlds a worker is often full. */
static uint32_t jobs_max(uint64_t seed) {
    return (undrawn(seed) >> 9 & 3) == 0 ? FEW_JOBS : 0;
}

/* In a quarter of all worlds brokers tell no ids of topics, as old ones do. Without them nobody
 * knows for sure that the job topic was made anew. */
static bool hides_ids(const struct world *world) {
    return (undrawn(world->options->seed) >> 15 & 3) == 0 &&
           (world->events & WORLD_RECREATIONS) == 0;
}

/* In some worlds the topic of results takes no more than three of them or so at once. */
static bool has_small_batches(const struct world *world) {
    return (undrawn(world->options->seed) >> 17 & 3) == 0 && !is_calm(world);
}

/* In half of those where no other trouble is with transactions: a producer that is fenced twice in
 * a row takes it that another worker has its name. */
static bool loses_answers(const struct world *world) {
    return (undrawn(world->options->seed) >> 19 & 1) == 0 && !is_calm(world) && is_orderly(world);
}

/* Where brokers refuse answers that came together, later ones may be there before them. */
static struct account *promise(const struct world *world) {
    const struct account_promises promises = {.exactly_once = world->exactly_once,
        .in_order = world->in_order && (world->exactly_once || !has_small_batches(world)),
        .once = is_orderly(world),
        .wait_ms = is_calm(world) ? CALM_ANSWER_MS : 0};
    return account_create(&promises);
}

static void begin(struct world *world) {
    cluster_begin();
    group_begin(world->options->tells);
    uint32_t drawn = (uint32_t)scheduler_draw(1 << WORLD_DRAWN_EVENTS);
    world->events = world->options->events & allowed_events(world->options->seed) &
                    (drawn | undrawn_events(world->options->seed));
    world->exactly_once = scheduler_draw(2) == 0;
    world->worker_count = 1 + scheduler_draw(WORKERS_MAX);
    world->in_order = scheduler_draw(3) == 0;
    world->is_cooperative = is_cooperative(world->options->seed);
    world->account = promise(world);
    if (hides_ids(world)) cluster_hide_ids();
    if (loses_answers(world)) producer_ids_lose_answers();
    worker_make_topics(1 + (int32_t)scheduler_draw(PARTITIONS_MAX));
    if (has_small_batches(world))
        cluster_find_topic(WORLD_RESULTS)->message_bytes_max = SMALL_BATCH_BYTES;
    link_programs(world);
    snprintf(world->blobs, sizeof world->blobs, "%s/blobs", world->options->folder);
    store_make(world->blobs);
    snprintf(world->log, sizeof world->log, "%s/log", world->options->folder);
    world->summary = scheduler_alloc(sizeof *world->summary);
    memory_begin();
    disk_begin();
    for (size_t i = 0; i < world->worker_count; i++) {
        struct worker *worker = &world->workers[i];
        snprintf(
            world->states[i], sizeof world->states[i], "%s/state-%zu", world->options->folder, i);
        *worker = (struct worker){.state = world->states[i],
            .programs = world->programs,
            .may_lack_memory = (world->events & WORLD_SHORTAGES) != 0,
            .other_programs = world->other_programs,
            .blobs = world->blobs,
            .config = (world->events & WORLD_RELOADS) != 0 ? name_config(world, i) : NULL,
            .owner = 1 + scheduler_draw(UINT64_MAX),
            .exactly_once = world->exactly_once,
            .in_order = world->in_order,
            .is_cooperative = world->is_cooperative,
            .jobs_max = jobs_max(world->options->seed),
            .tells = world->options->tells,
            .log = !world->options->tells ? world->log : NULL,
            .stop = scheduler_alloc(sizeof *worker->stop),
            .board = scheduler_alloc(sizeof *worker->board),
            .summary = world->summary};
        snprintf(worker->name, sizeof worker->name, "worker-%zu", i);
        configure(world, worker);
        worker_start(worker);
    }
    tell(world, "%zu workers, %s%s%s", world->worker_count,
        world->exactly_once ? "exactly once" : "at least once",
        world->in_order ? ", in the order of keys" : "",
        world->is_cooperative ? ", in a cooperative group" : "");
    await_first(world);
}

static bool await_answers(struct world *world) {
    uint64_t until_ns = scheduler_now_ns() + ANSWERS_MS * 1000000ull;
    while (account_count_unanswered(world->account) > 0 && scheduler_now_ns() < until_ns)
        pass_time(world);
    return account_is_right(world->account) && account_commits_are_right(world->account);
}

/* Nothing is left to read, also not by the next worker; where nobody changed what is committed, or
 * what was read. */
static bool await_commits(struct world *world) {
    const uint32_t changes = WORLD_MOVES | WORLD_TRUNCATIONS | WORLD_RECREATIONS;
    uint64_t until_ns = scheduler_now_ns() + COMMITS_MS * 1000000ull;
    if ((world->events & changes) != 0) return true;
    while (account_find_lag() >= 0 && scheduler_now_ns() < until_ns) pass_time(world);
    if (account_find_lag() < 0) return true;
    fprintf(stderr, "partition %" PRId32 " is not committed to its end\n", account_find_lag());
    return false;
}

/* Each has the memory of what it has read, and no more; nobody reads what another one reads. */
static bool await_rest(struct world *world) {
    uint64_t since_ns = scheduler_now_ns(), until_ns = since_ns + REST_MS * 1000000ull;
    const struct worker *workers = world->workers;
    while (!boards_show_rest(workers, world->worker_count, since_ns, false) &&
           scheduler_now_ns() < until_ns)
        pass_time(world);
    return boards_show_rest(workers, world->worker_count, since_ns, true);
}

/* Telemetry may be off. */
static bool are_all_told(const struct world *world) {
    size_t counted = boards_count_answers(world->workers, world->worker_count);
    return account_is_all_told(world->account, counted, "boards") &&
           account_is_summed_up(world->account, world->summary->ok, world->summary->errors) &&
           (!world->workers[0].tells_telemetry ||
               account_is_all_told(world->account, account_count_reported(), "reports"));
}

static bool end(struct world *world) {
    bool ret = true;
    uint64_t since_ns = scheduler_now_ns();
    tell(world, "all stop");
    if (world->twin_until_ns != 0) {
        atomic_store(world->workers[TWIN].stop, true);
        ret = await_end(world, &world->workers[TWIN], since_ns);
    }
    for (size_t i = 0; i < world->worker_count; i++) atomic_store(world->workers[i].stop, true);
    for (size_t i = 0; i < world->worker_count; i++)
        ret = await_end(world, &world->workers[i], since_ns) && ret;
    return account_is_right(world->account) && account_commits_are_right(world->account) &&
           account_letters_are_right(world->account) && are_all_told(world) && ret;
}

/* A calm world warns of nothing but messages that cannot be decoded, and no world of success. */
static bool may_be_said(const struct world *world, const char *line) {
    bool is_of_letter = strstr(line, " warn dead letter: " WORLD_JOBS "/") != NULL;
    return (!is_calm(world) || is_of_letter) && strstr(line, "Success") == NULL;
}

static bool is_all_said_with_reason(const struct world *world) {
    char line[1024];
    FILE *log = !world->options->tells ? fopen(world->log, "r") : NULL;
    if (log == NULL) return true;
    bool ret = true;
    while (fgets(line, sizeof line, log) != NULL) {
        if (may_be_said(world, line)) continue;
        ret = false;
        fprintf(stderr, "for no reason: %s", line);
    }
    (void)fclose(log);
    return ret;
}

bool world_run(const struct world_options *options) {
    struct world world = {.options = options};
    bool ret = true;
    scheduler_begin(options->seed);
    begin(&world);
    size_t steps = 1 + scheduler_draw(WORLD_STEPS_MAX), most = options->steps_max;
    for (steps = most > 0 && most < steps ? most : steps; steps > 0 && ret; steps--) {
        send_jobs(&world);
        sleep_up_to_ms(PAUSE_MS_MAX);
        supervise(&world);
        ret = let_happen(&world) && account_commits_are_right(world.account);
        sleep_up_to_ms(scheduler_draw(2) == 0 ? PAUSE_MS_MAX : PAUSE_MS_MAX / 100);
    }
    send_jobs(&world); /* what happened last may change what becomes of later jobs */
    ret = ret && await_answers(&world) && await_commits(&world) && await_rest(&world);
    ret = ret && end(&world) && is_all_said_with_reason(&world);
    for (size_t i = 0; i < world.worker_count; i++) scheduler_kill(world.workers[i].process);
    if (world.twin_until_ns != 0) scheduler_kill(world.workers[TWIN].process);
    return ret;
}
