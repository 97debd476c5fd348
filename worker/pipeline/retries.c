#include "pipeline/retries.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/condition.h"
#include "base/crew.h"
#include "base/hash.h"
#include "base/log_limit.h"
#include "base/pulse.h"
#include "base/timers.h"
#include "pipeline/job_fields.h"

enum {
    /* A job that met trouble so often, while what it needs worked for others between all its tries,
     * is about its own blob. */
    TROUBLE_ALONE_MAX = 20
};

struct retries {
    struct stages *stages;
    struct retries_options options;
    struct crew *crew;
    pthread_mutex_t lock;   /* guards what follows */
    pthread_cond_t changed; /* something is to be looked at before the next one is due */
    struct timers *waiting; /* of struct job */
    bool is_check_due;      /* some may not be wanted any more */
    bool is_closed;
    bool hands_back; /* nothing is tried again here any more */
};

/* --- what is worth another try --- */

/* A run that failed on the way has cost the job its residents: only the sender can seed them again.
 */
static bool has_spoilt_residents(const struct job *job) {
    return job->plan != NULL && job->plan->resident_count > 0 && job->run == RUN_STARTED;
}

static bool is_worth_it(const struct job *job, enum err code) {
    uint32_t attempts_max = edition_of(job)->settings.retry.max_attempts;
    return err_retry(code) == RETRY_WORKER && job->retry_count + 1 < attempts_max &&
           !has_spoilt_residents(job);
}

/* The job is not to blame: it waits for as long as the trouble lasts. */
static bool is_own_trouble(
    const struct retries *retries, struct job *job, const struct error *err) {
    if (err->trouble == NULL || has_spoilt_residents(job)) return false;
    uint64_t answers = blobs_answers(retries->stages->blobs);
    if (job->trouble_count++ > 0 && answers != job->trouble_answers) job->trouble_alone_count++;
    job->trouble_answers = answers;
    return job->trouble_alone_count < TROUBLE_ALONE_MAX;
}

static uint64_t wait_ms(const struct job *job) {
    const struct settings *settings = &edition_of(job)->settings;
    const uint64_t seed[] = {clock_ns(), (uint64_t)job->delivery->position.offset};
    return backoff_ms(settings->retry.base_ms, settings->retry.max_ms,
        job->retry_count + job->trouble_count + 1,
        hash_more(HASH_START, slice_of(seed, sizeof seed)));
}

/* False, and *err says so, where the next try would come after the deadline. */
static bool is_in_time(const struct job *job, struct error *err) {
    uint64_t due_ms = clock_unix_ms() + job->retry_wait_ms;
    if (job->deadline_unix_ms == 0 || due_ms <= job->deadline_unix_ms) return true;
    struct error last = *err;
    error_conceal(&last);
    error_set(err, ERR_DEADLINE_EXCEEDED, last.native,
        "send it with a later deadline, or correct what the message says",
        "the next try would come after the deadline; try %" PRIu32 " failed with %s: %.200s",
        job->retry_count + job->trouble_count + 1, err_code(last.code), last.message);
    return false;
}

static bool is_unwanted(void *context, const void *job) {
    struct error ignored;
    const struct retries *retries = context;
    return retries->options.still_wanted(retries->stages, job, &ignored) != ERR_OK;
}

/* However many jobs meet it. */
static void log_trouble(const struct error *err) {
    static struct log_limit limit = LOG_LIMIT_ONCE_A_MINUTE;
    if (!log_limit_take(&limit, clock_ns(), NULL)) return;
    log_error_event(
        LOG_WARN, LOG_EVENT("trouble"), "jobs are waiting on a problem in this worker", err);
}

bool retries_want(struct retries *retries, struct job *job) {
    struct error *err = &job->outcome.err;
    bool is_ours = is_own_trouble(retries, job, err);
    if (is_ours) log_trouble(err);
    job->retry_wait_ms = wait_ms(job);
    bool is_wanted = (is_ours || is_worth_it(job, err->code)) && is_in_time(job, err);
    job->outcome.code = err->code;
    if (!is_wanted) {
        error_conceal(err);
        return false;
    }
    if (log_is_on(LOG_DEBUG)) {
        const struct log_fields fields = job_fields(job, "job_retried");
        log_error_event(LOG_DEBUG, &fields, "job failed, and is tried again", err);
    }
    if (!is_ours) job->retry_count++;
    return true;
}

bool retries_add(struct retries *retries, struct job *job) {
    pthread_mutex_lock(&retries->lock);
    bool is_kept = !retries->hands_back;
    if (is_kept) {
        /* A cancel that came while it ran has been looked for already: it goes at once. */
        bool is_at_once = is_unwanted(retries, job);
        job_move(job, JOB_RETRYING);
        timers_add(retries->waiting, is_at_once ? 0 : clock_ns_in(job->retry_wait_ms), job);
        pthread_cond_signal(&retries->changed);
    }
    pthread_mutex_unlock(&retries->lock);
    return is_kept;
}

/* --- the thread --- */

/* With the lock held. NULL: none yet. */
static struct job *take_next(struct retries *retries) {
    struct job *job = NULL;
    if (retries->is_check_due) job = timers_take_any(retries->waiting, is_unwanted, retries);
    retries->is_check_due = job != NULL; /* there may be more */
    return job != NULL ? job : timers_take_due(retries->waiting, clock_ns());
}

static void wait_for_next(struct retries *retries) {
    (void)condition_wait_until(&retries->changed, &retries->lock, timers_next_ns(retries->waiting));
}

/* NULL once there is nothing more to wait for. */
static struct job *await_next(struct retries *retries) {
    struct job *job = NULL;
    pthread_mutex_lock(&retries->lock);
    while (!retries->is_closed && (job = take_next(retries)) == NULL) wait_for_next(retries);
    pthread_mutex_unlock(&retries->lock);
    return job;
}

static void run_retries(void *context, uint32_t index) {
    struct retries *retries = context;
    struct error err;
    struct job *job;
    if (device_bind(&retries->stages->device, &err) != ERR_OK) stages_fail(retries->stages, &err);
    while (pulse_idle(), (job = await_next(retries)) != NULL) {
        pulse_busy();
        job_move(job, JOB_DECODED);
        if (stages_has_failed(retries->stages))
            retries->options.on_handed_back(retries->stages, job);
        else retries->options.on_due(retries->stages, &job, 1);
    }
}

/* --- handing back --- */

struct partition {
    const char *topic;
    int32_t number;
};

static bool is_of_partition(void *context, const void *item) {
    const struct partition *partition = context;
    const struct position *position = &((const struct job *)item)->delivery->position;
    return position->partition == partition->number &&
           strcmp(position->topic, partition->topic) == 0;
}

static bool is_any(void *context, const void *item) {
    return true;
}

static size_t hand_back(
    struct retries *retries, bool (*is_wanted)(void *context, const void *item), void *context) {
    for (size_t count = 0;; count++) {
        pthread_mutex_lock(&retries->lock);
        struct job *job = timers_take_any(retries->waiting, is_wanted, context);
        pthread_mutex_unlock(&retries->lock);
        if (job == NULL) return count;
        retries->options.on_handed_back(retries->stages, job);
    }
}

void retries_hand_back(struct retries *retries, const char *topic, int32_t partition) {
    struct partition which = {.topic = topic, .number = partition};
    (void)hand_back(retries, is_of_partition, &which);
}

size_t retries_hand_back_all(struct retries *retries) {
    pthread_mutex_lock(&retries->lock);
    retries->hands_back = true;
    pthread_mutex_unlock(&retries->lock);
    return hand_back(retries, is_any, NULL);
}

/* --- the rest --- */

void retries_check_wanted(struct retries *retries) {
    pthread_mutex_lock(&retries->lock);
    retries->is_check_due = true;
    pthread_cond_signal(&retries->changed);
    pthread_mutex_unlock(&retries->lock);
}

bool retries_are_over(struct retries *retries) {
    pthread_mutex_lock(&retries->lock);
    bool are_over = retries->hands_back;
    pthread_mutex_unlock(&retries->lock);
    return are_over;
}

size_t retries_count(struct retries *retries) {
    pthread_mutex_lock(&retries->lock);
    size_t count = timers_count(retries->waiting);
    pthread_mutex_unlock(&retries->lock);
    return count;
}

enum err retries_start(struct stages *stages, const struct retries_options *options,
    struct retries **ret, struct error *err) {
    struct retries *retries = calloc(1, sizeof *retries);
    if (retries != NULL) retries->waiting = timers_create(stages_jobs_max(stages));
    if (retries == NULL || retries->waiting == NULL) {
        free(retries);
        return error_no_memory(err, "no memory for jobs that are tried again");
    }
    retries->stages = stages;
    retries->options = *options;
    pthread_cond_init(&retries->changed, NULL);
    pthread_mutex_init(&retries->lock, NULL);
    const struct crew_options crew = {
        .name = "retries", .count = 1, .run = run_retries, .context = retries};
    enum err code = crew_start(&crew, &retries->crew, err);
    if (code == ERR_OK) *ret = retries;
    else retries_destroy(retries);
    return code;
}

void retries_finish(struct retries *retries) {
    if (retries == NULL) return;
    pthread_mutex_lock(&retries->lock);
    retries->is_closed = true;
    pthread_cond_signal(&retries->changed);
    pthread_mutex_unlock(&retries->lock);
    crew_join(&retries->crew);
    (void)retries_hand_back_all(retries);
}

void retries_destroy(struct retries *retries) {
    if (retries == NULL) return;
    timers_destroy(retries->waiting);
    pthread_cond_destroy(&retries->changed);
    pthread_mutex_destroy(&retries->lock);
    free(retries);
}
