#include "supervise/health.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"

enum {
    WHY_BYTES = 320,
    /* Longer than the intake can wait for brokers during a rebalance. */
    LATE_S = 15,
    /* How long a rebalance may take, beyond the drain of the members. */
    REBALANCE_S = 30
};

/* What a check is given about one GPU. */
struct question {
    const struct executor *executor;
    struct state_summary summary; /* of its running life; empty if there is none */
    uint64_t now_ns;
};

static uint64_t seconds_since(const struct question *question, uint64_t ns) {
    return question->now_ns > ns ? (question->now_ns - ns) / 1000000000 : 0;
}

/* ---- the checks: each is true, or says why not ---- */

static bool check_device(const struct question *question, char why[static WHY_BYTES]) {
    const struct executor *executor = question->executor;
    switch (executor->standing) {
    case STANDING_UNHEALTHY:
        text_format(why, WHY_BYTES,
            "it is unhealthy (%s) and gets no executor any more; mend it, then start the worker "
            "again",
            executor->unhealthy);
        return false;
    case STANDING_ENDED:
        text_format(why, WHY_BYTES, "its executor has ended; the log says why");
        return false;
    case STANDING_WAITING:
    case STANDING_KILLED:
        text_format(why, WHY_BYTES,
            "it has no executor at the moment; another one will be started; if that goes on, "
            "look in the log for the reason");
        return false;
    case STANDING_RUNNING: break;
    }
    if (executor->watched != NULL) return true;
    text_format(why, WHY_BYTES,
        "its executor has been starting for %" PRIu64
        " s; if that takes long, look in the log for the reason",
        seconds_since(question, executor->started_ns));
    return false;
}

static bool check_executor(const struct question *question, char why[static WHY_BYTES]) {
    uint64_t age_s = seconds_since(question, question->summary.heartbeat_ns);
    if (age_s < LATE_S) return true;
    text_format(why, WHY_BYTES,
        "it has not moved for %" PRIu64
        " s; look for a disk or a driver that hangs (it is started again after %" PRIu32 " s)",
        age_s, question->executor->options->settings->executors.stall_ms / 1000);
    return false;
}

static bool check_programs(const struct question *question, char why[static WHY_BYTES]) {
    if (question->summary.programs > 0) return true;
    text_format(why, WHY_BYTES, "they are not loaded yet; nothing needs to be done");
    return false;
}

static bool check_group(const struct question *question, char why[static WHY_BYTES]) {
    const struct settings *settings = question->executor->options->settings;
    uint64_t for_s = seconds_since(question, question->summary.group_ns);
    switch (question->summary.group) {
    case STATE_GROUP_NOT_ASKED:
    case STATE_GROUP_MEMBER: return true;
    case STATE_GROUP_AWAY:
        if (for_s <= settings->drain_timeout_ms / 1000 + REBALANCE_S) return true;
        text_format(why, WHY_BYTES,
            "it has been out of its group for %" PRIu64
            " s; check that the brokers can be reached, and that no other member holds up the "
            "group",
            for_s);
        return false;
    case STATE_GROUP_JOINING:
        text_format(why, WHY_BYTES,
            "it has been joining its group for %" PRIu64
            " s; if that takes long, check its rights to the group and to topics.jobs",
            for_s);
        return false;
    case STATE_GROUP_NO_BROKER:
        text_format(why, WHY_BYTES,
            "no broker has answered yet; check kafka.bootstrap_servers, and that the brokers can "
            "be reached from here");
        return false;
    case STATE_GROUP_UNKNOWN: break;
    }
    text_format(why, WHY_BYTES,
        "it does not take jobs yet; if that takes long, look in the log for the reason");
    return false;
}

static bool check_jobs(const struct question *question, char why[static WHY_BYTES]) {
    if (question->summary.trouble[0] == 0) return true;
    text_format(why, WHY_BYTES,
        "they wait because of a problem of the worker itself (%s); the log says how to correct it",
        question->summary.trouble);
    return false;
}

static const struct check {
    const char *name;
    bool (*is_well)(const struct question *question, char why[static WHY_BYTES]);
    const char *reason; /* where it fails; NULL: the summary has one */
} checks[] = {{"device", check_device, "no_executor"}, {"executor", check_executor, "silent"},
    {"programs", check_programs, "no_programs"}, {"group", check_group, "group"},
    {"jobs", check_jobs, NULL}};
enum { CHECK_COUNT = sizeof checks / sizeof checks[0] };

/* The first check that fails; NULL: all pass. The checks after a failed one mean nothing. */
static const struct check *find_fault(const struct question *question, char why[static WHY_BYTES]) {
    for (size_t i = 0; i < CHECK_COUNT; i++)
        if (!checks[i].is_well(question, why)) return &checks[i];
    return NULL;
}

static struct question question_of(const struct executor *executor, uint64_t now_ns) {
    return (struct question){
        .executor = executor, .summary = state_summary(executor->watched), .now_ns = now_ns};
}

static struct question question_about(const struct health *health, size_t index) {
    return question_of(&health->executors[index], health->now_ns);
}

static size_t count_ready(const struct health *health) {
    char why[WHY_BYTES];
    size_t count = 0;
    for (size_t i = 0; i < health->count && !health->is_stopping; i++) {
        struct question question = question_about(health, i);
        count += find_fault(&question, why) == NULL;
    }
    return count;
}

/* Whether the supervisor or an executor refused the last reload. */
static bool is_reload_refused(const struct health *health) {
    bool ret = health->is_reload_refused;
    for (size_t i = 0; i < health->count; i++)
        ret = ret || question_about(health, i).summary.is_reload_refused;
    return ret;
}

/* ---- pages ---- */

static void write_executor(const struct question *question, bool is_verbose, FILE *page) {
    char why[WHY_BYTES];
    const char *name = question->executor->name;
    const struct check *fault = find_fault(question, why);
    for (const struct check *check = checks; check < checks + CHECK_COUNT && check != fault;
         check++)
        if (is_verbose) fprintf(page, "%s, %s: ok\n", name, check->name);
    if (fault != NULL) fprintf(page, "%s, %s: %s\n", name, fault->name, why);
}

bool health_write(const struct health *health, bool is_verbose, FILE *page) {
    bool is_ready = count_ready(health) > 0;
    fprintf(page, "%s\n", is_ready ? "ready" : "not ready");
    if (health->is_stopping) {
        fprintf(page,
            "stop: the worker finishes what it has begun and ends; nothing needs to be done\n");
        return is_ready;
    }
    if (is_verbose) fprintf(page, "stop: ok\n");
    if (is_reload_refused(health))
        fprintf(page,
            "reload: the last one was refused, and the worker goes on with what it read before; "
            "correct what the log names, then send SIGHUP again\n");
    for (size_t i = 0; i < health->count; i++) {
        struct question question = question_about(health, i);
        write_executor(&question, is_verbose, page);
    }
    return is_ready;
}

void health_reason(
    const struct executor *executor, uint64_t now_ns, char ret[static HEALTH_REASON_BYTES]) {
    char why[WHY_BYTES];
    struct question question = question_of(executor, now_ns);
    const struct check *fault = find_fault(&question, why);
    const char *reason = fault == NULL           ? ""
                         : fault->reason != NULL ? fault->reason
                                                 : question.summary.trouble;
    text_format(ret, HEALTH_REASON_BYTES, "%s", reason);
}

void health_describe(const struct health *health, char *text, size_t size) {
    char why[WHY_BYTES];
    size_t ready = count_ready(health);
    if (health->is_stopping) {
        text_format(text, size, "stopping: it finishes the jobs that it has, then ends");
    } else if (ready > 0 || health->count == 0) {
        text_format(text, size, "ready: %zu of %zu GPUs take jobs%s", ready, health->count,
            is_reload_refused(health) ? "; the last reload was refused" : "");
    } else {
        struct question question = question_about(health, 0);
        const struct check *fault = find_fault(&question, why);
        text_format(text, size, "not ready: %s, %s: %s", question.executor->name,
            fault != NULL ? fault->name : "", fault != NULL ? why : "");
    }
}
