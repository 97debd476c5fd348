#include "supervise/executors.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/log.h"
#include "process/child.h"
#include "quarantine/fetches.h"
#include "state/crash.h"
#include "state/folder.h"
#include "supervise/deaths.h"

enum {
    DEATHS_WINDOW_S = 600, /* within which deaths that no job caused count together */
    /*
     * How many looks in a row must find the same batch overdue. After a pause of the whole machine
     * this gives the executor time to notice that its batch has ended.
     */
    OVERDUE_LOOKS = 10,
    LONG_LIFE_S = 120, /* after which a refusal is a new one; more than two of the longest waits */
    REFUSALS_TOLD = 3,
    LOCK_TIMEOUT_MS = 1000
};

enum err executor_init(struct executor *executor, const struct supervise_options *options,
    const struct probed_device *device, struct error *err) {
    *executor = (struct executor){.options = options,
        .device = device,
        .unhealthy = "",
        .standing = STANDING_WAITING,
        .board_fd = -1};
    if (device->uuid[0] == 0)
        snprintf(executor->name, sizeof executor->name, "gpu %" PRIu32, device->index);
    else
        snprintf(executor->name, sizeof executor->name, "gpu %" PRIu32 " (%s)", device->index,
            device->uuid);
    executor->state_path = state_folder_file(options->state_dir, device->index);
    if (executor->state_path != NULL)
        return board_create(&executor->board, &executor->board_fd, err);
    return error_no_memory(err, "no memory for a path");
}

static void stop_watching(struct executor *executor) {
    state_close(executor->watched);
    executor->watched = NULL;
    executor->overdue_looks = 0;
    executor->stall_looks = 0;
    executor->waits = (struct state_waits){0};
}

void executor_fini(struct executor *executor) {
    stop_watching(executor);
    spare_drop(&executor->spare);
    board_destroy(executor->board);
    if (executor->board_fd >= 0) close(executor->board_fd);
    free(executor->state_path);
}

/* ---- how it stands ---- */

/* Jobs that failed in an earlier life count too, because the last life answered only the rest. */
static void end(struct executor *executor, int exit_code) {
    bool is_done = executor->options->is_finite && exit_code == CLI_OK;
    executor->standing = STANDING_ENDED;
    executor->exit_code = is_done && executor->has_failed_jobs ? CLI_JOBS_FAILED : exit_code;
}

/* If a process that hangs still has the file locked, the mark is not written. */
static void keep_fault(const struct executor *executor, const char *fault) {
    struct state *state;
    struct error err;
    if (state_amend(executor->state_path, 0, &state, &err) != ERR_OK) return;
    state_set_fault(state, fault);
    if (state_save(state, &err) != ERR_OK)
        log_error(LOG_WARN, "the state file does not say that the device is unhealthy", &err);
    state_close(state);
}

static void call_unhealthy(struct executor *executor, const char *reason, const char *why) {
    keep_fault(executor, why);
    executor->standing = STANDING_UNHEALTHY;
    executor->unhealthy = reason;
    executor->exit_code = CLI_DEVICE;
    log_event(LOG_ERROR, LOG_EVENT("device_unhealthy"),
        "%s is unhealthy and gets no executor any more: %s", executor->name, why);
}

bool executor_is_over(const struct executor *executor) {
    return executor->standing == STANDING_ENDED || executor->standing == STANDING_UNHEALTHY;
}

/* ---- deaths ---- */

/* What is known of a death, from the wait status and from what the process itself recorded. */
struct death {
    int status;
    bool has_begun;   /* it had begun its life; otherwise it left nothing */
    bool has_left;    /* it had messages in hand */
    bool is_of_trial; /* it counts against a partition on trial */
    uint64_t finished;
    struct state_death recorded;
};

/*
 * Records the death for the next executor, and reads back what is recorded, since an earlier record
 * stays.
 */
static void record(
    const struct executor *executor, const struct state_death *recorded, struct death *death) {
    struct state *state = NULL;
    struct error err;
    death->recorded = *recorded;
    enum err code = state_amend(executor->state_path, LOCK_TIMEOUT_MS, &state, &err);
    /* The file of another life stays untouched. */
    if (code == ERR_OK && state_summary(state).life == executor->life) {
        if (recorded->kind != STATE_DEATH_NONE) state_record_death(state, recorded);
        death->recorded = state_death(state);
        death->has_left = state_has_left(state);
        death->is_of_trial = fetches_has_evidence(state);
        code = state_save(state, &err);
    }
    if (code != ERR_OK) log_error(LOG_WARN, "the cause of the death could not be recorded", &err);
    state_close(state);
}

static struct state_death cause_of(const struct executor *executor, int status, bool is_stopping) {
    struct state_death death = {.kind = STATE_DEATH_NONE};
    if (executor->standing == STANDING_KILLED && executor->is_hung) {
        death.kind = STATE_DEATH_HANG;
        death.code = ERR_GPU_HANG;
        death.lane = executor->overdue.lane;
        death.batch = executor->overdue.batch;
        snprintf(death.message, sizeof death.message,
            "its batch was on the device for more than the %" PRIu64 " ms that its jobs may take",
            executor->overdue.limit_ns / 1000000);
    } else if (executor->standing == STANDING_KILLED && executor->is_stalled) {
        death.kind = executor->stall.is_evidence ? STATE_DEATH_STALL : STATE_DEATH_OWN;
        snprintf(death.message, sizeof death.message,
            "its thread %s had not moved for %" PRIu64 " s", executor->stall.name,
            executor->stall.for_ns / 1000000000);
    } else if (WIFSIGNALED(status) && crash_is_signal(WTERMSIG(status))) {
        death.kind = STATE_DEATH_SIGNAL;
        death.native = WTERMSIG(status);
        snprintf(death.message, sizeof death.message, "the worker died of signal %d (%s)",
            WTERMSIG(status), strsignal(WTERMSIG(status)));
    } else if (is_stopping) {
        death.kind = STATE_DEATH_STOP;
    }
    return death;
}

/* Reads its state file again. If that fails, the last copy stays. */
static bool take_look(struct executor *executor) {
    struct error err;
    if (executor->watched == NULL)
        return state_watch(executor->state_path, executor->life, &executor->watched, &err) ==
               ERR_OK; /* otherwise its life has not begun */
    enum err code = state_look(executor->watched, &err);
    if (code != ERR_OK && !executor->is_unseen)
        log_error(
            LOG_ERROR, "the state file cannot be read, so batches that hang go unnoticed", &err);
    executor->is_unseen = code != ERR_OK;
    return code == ERR_OK;
}

static struct death examine(struct executor *executor, int status, bool is_stopping) {
    struct death death = {.status = status};
    if (!take_look(executor) && executor->watched == NULL) return death;
    executor->left = state_summary(executor->watched);
    executor->has_failed_jobs = executor->has_failed_jobs || executor->left.errors > 0;
    stop_watching(executor);
    death.has_begun = true;
    death.finished = executor->left.ok + executor->left.errors;
    struct state_death cause = cause_of(executor, status, is_stopping);
    record(executor, &cause, &death);
    return death;
}

static void describe_status(int status, char *text, size_t size) {
    if (WIFSIGNALED(status))
        snprintf(text, size, "signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else snprintf(text, size, "it ended with code %d", WEXITSTATUS(status));
}

static void describe(const struct death *death, char *text, size_t size) {
    if (death->recorded.kind == STATE_DEATH_STALL || death->recorded.kind == STATE_DEATH_OWN)
        snprintf(text, size, "%s", death->recorded.message);
    else if (death->recorded.kind == STATE_DEATH_STICKY || death->recorded.kind == STATE_DEATH_HANG)
        snprintf(text, size, "%s: %s", err_code(death->recorded.code), death->recorded.message);
    else describe_status(death->status, text, size);
}

static bool has_culprit(const struct death *death) {
    return death->has_begun && state_is_evidence(death->recorded.kind);
}

/*
 * True if the process ended itself for a reason that another start would meet again: the
 * configuration, the end of a file, or anything before its life began, such as a broker that
 * refuses it. If it had begun and lost its brokers, it may only have waited for them for too long.
 */
static bool is_decision(const struct executor *executor, const struct death *death) {
    if (!WIFEXITED(death->status) || has_culprit(death)) return false;
    int code = WEXITSTATUS(death->status);
    return executor->options->is_finite || !death->has_begun ||
           (code != CLI_FAILED && code != CLI_DEVICE && code != CLI_BROKER);
}

/* The brokers refused it, which is no fault of the GPU. */
static bool is_refused(const struct death *death) {
    return WIFEXITED(death->status) && WEXITSTATUS(death->status) == CLI_BROKER;
}

/* ---- starting again ---- */

static void start_again(struct executor *executor, const char *cause, uint64_t delay_ms) {
    executor->standing = STANDING_WAITING;
    executor->start_ns = clock_ns_in(delay_ms);
    if (executor->spare.is_ready && !executor->spare.is_dropped)
        log_event(LOG_WARN, LOG_EVENT("executor_died"),
            "%s: the executor died: %s; its spare takes over", executor->name, cause);
    else if (delay_ms == 0)
        log_event(LOG_WARN, LOG_EVENT("executor_died"),
            "%s: the executor died: %s; starting it again", executor->name, cause);
    else
        log_event(LOG_WARN, LOG_EVENT("executor_died"),
            "%s: the executor died: %s; starting it again in %" PRIu64 " ms", executor->name, cause,
            delay_ms);
}

/*
 * Two workers of one name take it from each other for ever, and each answers jobs in between. So
 * what a life has answered does not count.
 */
static void count_refusal(struct executor *executor, const struct death *death) {
    if (clock_ns() - executor->started_ns > LONG_LIFE_S * 1000000000ull) executor->refusals = 0;
    if (!is_refused(death)) return;
    executor->refusals++;
    if (executor->refusals != REFUSALS_TOLD) return;
    log_event(LOG_ERROR, LOG_EVENT("executor_refused"),
        "%s: the brokers have refused the executor %d times in a row, so it waits longer each "
        "time; "
        "if its errors say FENCED, another worker has its name: give each worker of the group a "
        "kafka.instance_id, or a state.dir, of its own",
        executor->name, REFUSALS_TOLD);
}

static uint64_t wait_ms_of(const struct executor *executor) {
    uint32_t deaths = executor->deaths, refusals = executor->refusals;
    return death_back_off_ms(deaths > refusals ? deaths : refusals);
}

static void back_off(struct executor *executor, const struct death *death, const char *cause) {
    const struct settings *settings = executor->options->settings;
    uint64_t now_ns = clock_ns(), window_ns = DEATHS_WINDOW_S * 1000000000ull;
    bool has_progress = death->finished != executor->finished;
    if (has_progress || executor->deaths == 0 || now_ns - executor->first_death_ns > window_ns) {
        executor->deaths = 0;
        executor->first_death_ns = now_ns;
    }
    executor->deaths++;
    count_refusal(executor, death);
    if (executor->deaths >= settings->executors.deaths_max && is_refused(death)) {
        log_event(LOG_ERROR, LOG_EVENT("executor_died"),
            "%s: the executor died: %s; another start would fail in the same way", executor->name,
            cause);
        end(executor, CLI_BROKER);
        return;
    }
    if (executor->deaths >= settings->executors.deaths_max) {
        char why[512];
        snprintf(why, sizeof why,
            "%" PRIu32 " deaths within %" PRIu64 " s without a job's fault, the last: %s",
            executor->deaths, (now_ns - executor->first_death_ns) / 1000000000, cause);
        call_unhealthy(executor, "deaths", why);
        return;
    }
    start_again(executor, cause, wait_ms_of(executor));
}

/*
 * Ends a run whose input cannot be read again: jobs in flight are lost, and the caller must know.
 */
static void give_up(struct executor *executor, const struct death *death, const char *cause) {
    bool is_gpu = death->recorded.kind == STATE_DEATH_STICKY || executor->is_hung;
    log_event(LOG_ERROR, LOG_EVENT("executor_died"),
        "%s: the executor died: %s; %s, so the run ends here", executor->name, cause,
        executor->options->final_reason);
    end(executor, is_gpu ? CLI_DEVICE : CLI_FAILED);
}

/*
 * It was told to begin, and died before its life began, as its context was lost while it waited. A
 * new process shows whether anything is wrong with the device.
 */
static bool is_of_spare(const struct executor *executor, const struct death *death) {
    return executor->was_spare && !death->has_begun;
}

static void decide(struct executor *executor, const struct death *death) {
    char cause[STATE_MESSAGE_BYTES + 64]; /* with room for the name of a code */
    describe(death, cause, sizeof cause);
    if (is_of_spare(executor, death)) {
        start_again(executor, cause, 0);
    } else if (is_decision(executor, death)) {
        int code = WEXITSTATUS(death->status);
        if (code == CLI_DEVICE && executor->options->device_count > 1)
            call_unhealthy(executor, "no_start", "its executor could not start on it");
        else end(executor, code);
    } else if (state_is_fault_of_device(&death->recorded)) {
        call_unhealthy(executor, "uncorrectable", cause);
    } else if (executor->options->final_reason != NULL) {
        give_up(executor, death, cause);
    } else if ((has_culprit(death) && death->has_left) || death->is_of_trial) {
        start_again(
            executor, cause, 0); /* a suspect will be convicted, so this does not go on for ever */
    } else {
        back_off(executor, death, cause);
    }
    executor->finished = death->finished;
}

/* Of one whose life has not begun: only a run of files has jobs that are not done. */
static int exit_code_without_life(const struct executor *executor) {
    return executor->options->is_finite ? CLI_DRAIN : CLI_OK;
}

/* A signal to stop that comes before its life begins may end it at once. */
static int exit_code_stopped(const struct executor *executor, const struct death *death) {
    if (WIFEXITED(death->status)) return WEXITSTATUS(death->status);
    bool is_killed = death->has_begun || executor->standing == STANDING_KILLED;
    return is_killed ? CLI_DRAIN : exit_code_without_life(executor);
}

void executor_reap(struct executor *executor, int status, bool is_stopping) {
    struct death death = examine(executor, status, is_stopping);
    executor->pid = 0;
    bool is_death = !WIFEXITED(status) || WEXITSTATUS(status) != CLI_OK;
    if (is_of_spare(executor, &death)) executor->spare.deaths_total++;
    else executor->deaths_of[death.recorded.kind] += is_death;
    if (executor->standing == STANDING_UNHEALTHY) return; /* it was stuck, and has died after all */
    if (is_stopping) end(executor, exit_code_stopped(executor, &death));
    else decide(executor, &death);
    executor->is_hung = executor->is_stalled = false;
}

/* ---- running ---- */

static struct launch launch_of(const struct executor *executor) {
    return (struct launch){.options = executor->options,
        .device = executor->device->index,
        .state_path = executor->state_path,
        .board_fd = executor->board_fd,
        .life = state_draw_life(),
        .spare_fd = -1};
}

static void begin_watch(struct executor *executor, pid_t pid, uint64_t life, bool was_spare) {
    executor->pid = pid;
    executor->life = life;
    executor->was_spare = was_spare;
    executor->standing = STANDING_RUNNING;
    executor->started_ns = clock_ns();
    executor->starts++;
    log_event(LOG_DEBUG, LOG_EVENT("executor_started"), "%s: executor %s process %d",
        executor->name, was_spare ? "is what was its spare," : "started as", pid);
}

static void start(struct executor *executor) {
    struct launch launch = launch_of(executor);
    struct error err;
    pid_t pid;
    if (launch_executor(&launch, &pid, &err) == ERR_OK) {
        begin_watch(executor, pid, launch.life, false);
        return;
    }
    log_error(LOG_WARN, executor->name, &err);
    const struct death none = {.finished = executor->finished};
    back_off(executor, &none, err.message);
}

static void start_or_take_over(struct executor *executor, uint64_t now_ns) {
    pid_t pid = spare_begin(&executor->spare);
    if (pid != 0) begin_watch(executor, pid, executor->spare.life, true);
    else if (now_ns >= executor->start_ns) start(executor);
}

void executor_kill(struct executor *executor, uint64_t now_ns) {
    if (executor->standing != STANDING_RUNNING) return;
    executor->standing = STANDING_KILLED;
    executor->killed_ns = now_ns;
    kill(executor->pid, SIGKILL);
}

/* Longer than any wait for a blob, since those end by themselves. */
static uint64_t stall_limit_ns(const struct settings *settings) {
    uint64_t limit_ms = settings->executors.stall_ms, fetch_ms = 2ull * settings->blobs.timeout_ms;
    return (limit_ms > fetch_ms ? limit_ms : fetch_ms) * 1000000;
}

/* Before its life begins, an executor can wait long only for the driver and its disk. */
static bool find_stall(const struct executor *executor, uint64_t now_ns, struct state_stall *ret) {
    uint64_t limit_ns = stall_limit_ns(executor->options->settings);
    if (executor->standing != STANDING_RUNNING) return false;
    if (executor->watched != NULL)
        return state_find_stall(executor->watched, now_ns, limit_ns, ret);
    *ret = (struct state_stall){.name = "start", .for_ns = now_ns - executor->started_ns};
    return ret->for_ns > limit_ns;
}

/* Kills an executor if one of its threads hangs; its jobs would wait for ever. */
static void watch_stalls(struct executor *executor, uint64_t now_ns) {
    struct state_stall stall;
    if (!find_stall(executor, now_ns, &stall)) {
        executor->stall_looks = 0;
        return;
    }
    bool is_same = strcmp(stall.name, executor->stall.name) == 0;
    executor->stall_looks = is_same ? executor->stall_looks + 1 : 1;
    executor->stall = stall;
    if (executor->stall_looks < OVERDUE_LOOKS) return;
    log_event(LOG_WARN, LOG_EVENT("executor_stalled"),
        "%s: thread %s has not moved for %" PRIu64 " s: killing the executor", executor->name,
        stall.name, stall.for_ns / 1000000000);
    executor_kill(executor, now_ns);
    executor->is_stalled = true;
}

/*
 * Names the overdue batch. The serial fallback has a place after the lanes, and its numbers mean
 * nothing to readers.
 */
static void name_batch(const struct executor *executor, char ret[static 64]) {
    const struct state_overdue *overdue = &executor->overdue;
    if (overdue->lane < executor->options->settings->lanes)
        snprintf(ret, 64, "batch %" PRIu64 " of lane %" PRIu32, overdue->batch, overdue->lane);
    else snprintf(ret, 64, "the batch of the serial fallback");
}

/* Kills an executor whose batch does not end, because no call of the driver can end a batch. */
static void watch(struct executor *executor, uint64_t now_ns) {
    struct state_overdue overdue;
    if (!take_look(executor)) return;
    if (!state_find_overdue(executor->watched, now_ns, &executor->waits, &overdue)) {
        executor->overdue_looks = 0;
        return;
    }
    bool is_same =
        overdue.lane == executor->overdue.lane && overdue.batch == executor->overdue.batch;
    executor->overdue_looks = is_same ? executor->overdue_looks + 1 : 1;
    executor->overdue = overdue;
    if (executor->overdue_looks < OVERDUE_LOOKS) return;
    char name[64];
    name_batch(executor, name);
    log_event(LOG_WARN, LOG_EVENT("batch_overdue"),
        "%s: %s has been on the device for %" PRIu64 " ms longer than the %" PRIu64
        " ms that its jobs may take: killing the executor",
        executor->name, name, overdue.overdue_ns / 1000000, overdue.limit_ns / 1000000);
    executor_kill(executor, now_ns);
    executor->is_hung = true;
}

/* ---- the spare ---- */

static void start_spare(struct executor *executor) {
    struct launch launch = launch_of(executor);
    struct error err;
    if (spare_start(&executor->spare, &launch, &err) != ERR_OK)
        log_error(LOG_WARN, executor->name, &err);
}

/*
 * Where a death ends the run there is nothing to take over. The first executor starts alone, so
 * that what keeps it from starting is found once.
 */
static bool wants_spare(const struct executor *executor) {
    const struct supervise_options *options = executor->options;
    return options->settings->executors.spare && options->final_reason == NULL &&
           executor->standing == STANDING_RUNNING && executor->watched != NULL;
}

static void keep_spare(struct executor *executor, uint64_t now_ns, bool is_stopping) {
    struct spare *spare = &executor->spare;
    bool is_due = now_ns >= executor->start_ns && now_ns >= spare->start_ns;
    if (is_stopping || executor_is_over(executor)) spare_drop(spare);
    else if (spare->pid == 0 && is_due && wants_spare(executor)) start_spare(executor);
    spare_tend(spare, now_ns, stall_limit_ns(executor->options->settings));
}

void executor_reap_spare(struct executor *executor) {
    struct spare *spare = &executor->spare;
    int status;
    char cause[64];
    if (spare->pid == 0 || waitpid(spare->pid, &status, WNOHANG) != spare->pid) return;
    if (spare->is_hung) snprintf(cause, sizeof cause, "it hung before it was ready");
    else describe_status(status, cause, sizeof cause);
    if (!spare->is_dropped)
        log_event(LOG_WARN, LOG_EVENT("spare_died"),
            "%s: its spare died: %s; no job is lost; starting another", executor->name, cause);
    spare_reap(spare);
}

void executor_tend(struct executor *executor, uint64_t now_ns, bool is_stopping) {
    keep_spare(executor, now_ns, is_stopping);
    switch (executor->standing) {
    case STANDING_WAITING:
        if (is_stopping) end(executor, exit_code_without_life(executor));
        else if (executor->device->fault[0] != 0)
            call_unhealthy(executor, "reported", executor->device->fault);
        else start_or_take_over(executor, now_ns);
        break;
    case STANDING_RUNNING:
        watch(executor, now_ns);
        watch_stalls(executor, now_ns);
        break;
    case STANDING_KILLED:
        if (now_ns - executor->killed_ns > CHILD_DEATH_MS * 1000000ull)
            call_unhealthy(executor, "stuck", "its executor was killed and does not die");
        break;
    case STANDING_ENDED:
    case STANDING_UNHEALTHY: break;
    }
}

void executor_reload(struct executor *executor) {
    if (executor->standing == STANDING_RUNNING) kill(executor->pid, SIGHUP);
    spare_drop(&executor->spare);
}

void executor_stop(struct executor *executor) {
    if (executor->standing == STANDING_RUNNING) kill(executor->pid, SIGTERM);
}
