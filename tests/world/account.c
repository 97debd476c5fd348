#include "world/account.h"

#include <inttypes.h>
#include <msgpack.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/commit_metadata.h"
#include "broker/dead_letter.h"
#include "world/cluster.h"
#include "world/scheduler.h"
#include "world/worker.h"

enum {
    JOBS_MAX = 4096,
    KEYS = 3, /* of a partition */
    CANCELS_AROUND = 10,
    HEADERS_MAX = DELIVERY_HEADERS_MAX + 1, /* one too many */
    HEARD_MS = 10000                        /* after it, a worker that runs has heard of a cancel */
};

struct sent_job {
    enum job_kind kind;
    char key[32];
    uint64_t topic_id;
    int32_t partition;
    int64_t offset;
    bool is_excused, is_of_new_topic;
    bool may_be_cancelled, must_be_cancelled;
    uint64_t cancelled_ns; /* 0: it was not, or who knows when that was heard of */
    size_t answers, wrong, failures, successes, letters;
    size_t place;                 /* of its first answer among those of all jobs */
    int64_t sent_ms, waited_ms;   /* for its first answer */
    struct job_resident resident; /* as that says; zero: it has none */
};

struct account {
    struct account_promises promises;
    bool has_poison;
    uint64_t since_ns;
    size_t places;
    size_t count;
    struct sent_job jobs[JOBS_MAX];
    int64_t read[CLUSTER_PARTITIONS];    /* results up to there are counted */
    int64_t letters_read;                /* the same of dead letters */
    int64_t doubted[CLUSTER_PARTITIONS]; /* jobs that come below it are excused */
};

struct account *account_create(const struct account_promises *promises) {
    struct account *account = calloc(1, sizeof *account);
    if (account == NULL) abort();
    account->promises = *promises;
    account->since_ns = scheduler_now_ns();
    return account;
}

void account_allow_repeats(struct account *account) {
    account->promises.once = false;
}

/* Half of them are as simple as can be. */
static enum job_kind draw_kind(const struct account *account) {
    if (scheduler_draw(2) == 0) return JOB_SINGLE;
    enum job_kind kind = (enum job_kind)scheduler_draw(JOB_SENT_BY_CHANCE);
    return kind == JOB_OF_RESIDENT && !account->promises.in_order ? JOB_SINGLE : kind;
}

/* A job of this kind would have run. */
static bool may_run(enum job_kind kind) {
    return kind != JOB_OF_UNKNOWN_PROGRAM && kind != JOB_WITHOUT_TIME && kind != JOB_UNDECODABLE &&
           kind < JOB_SENT_BY_CHANCE;
}

/* A few have as many as are kept, or more. */
static size_t count_headers(size_t number) {
    return number % 16 < 2 ? DELIVERY_HEADERS_MAX + number % 16 : 1;
}

/* A few have one in a name of the worker's, which no dead letter repeats. */
static const struct log_header forged = {.name = "gpu-worker-source", .value = "me", .size = 2};

static bool speaks_for_worker(size_t number) {
    return number % 4 == 2;
}

void account_send_one(
    struct account *account, int32_t partition, enum job_kind kind, const char *key) {
    size_t number = account->count++;
    if (number == JOBS_MAX) abort();
    struct sent_job *job = &account->jobs[number];
    struct slice bytes = job_encode(kind, number);
    struct log *log = cluster_find_log(WORLD_JOBS, partition);
    const struct topic *topic = cluster_find_topic(WORLD_JOBS);
    bool is_new = topic->made_ns > account->since_ns;
    char text[32];
    struct log_header headers[HEADERS_MAX];
    size_t text_size = (size_t)snprintf(text, sizeof text, "%zu", number);
    for (size_t i = 0; i < count_headers(number); i++)
        headers[i] = (struct log_header){.name = "number", .value = text, .size = text_size};
    size_t header_count = count_headers(number);
    if (speaks_for_worker(number)) headers[header_count++] = forged;
    const struct log_record record = {.payload = bytes.data,
        .payload_size = bytes.size,
        .header_count = header_count,
        .headers = headers,
        .has_key = true,
        .key = key,
        .key_size = strlen(key)};
    job->kind = kind;
    job->topic_id = topic->id;
    job->partition = partition;
    job->offset = cluster_append(log, &record);
    job->sent_ms = log->records[job->offset]->time_ms;
    job->is_of_new_topic = is_new;
    job->is_excused = job->offset < account->doubted[partition];
    job->must_be_cancelled = job->cancelled_ns != 0 && may_run(kind) &&
                             scheduler_now_ns() - job->cancelled_ns > HEARD_MS * 1000000ull;
    snprintf(job->key, sizeof job->key, "%s", key);
    free((void *)(uintptr_t)bytes.data);
}

void account_send(struct account *account, int32_t partition) {
    char key[32];
    snprintf(key, sizeof key, "%" PRId32 "-%" PRIu64, partition, scheduler_draw(KEYS));
    account_send_one(account, partition, draw_kind(account), key);
}

void account_send_poison(struct account *account, int32_t partition) {
    account->has_poison = true;
    enum job_kind kind = scheduler_draw(3) == 0 ? JOB_WITH_POISON : JOB_OF_POISON;
    account_send_one(account, partition, kind, "poison");
}

bool account_has_poison(const struct account *account) {
    return account->has_poison;
}

static void cancel(struct account *account, size_t number, bool is_prompt) {
    if (number >= JOBS_MAX) return;
    struct slice bytes = job_encode_cancel(number);
    const struct log_record record = {.payload = bytes.data, .payload_size = bytes.size};
    int32_t count = cluster_find_topic(WORLD_CONTROL)->partition_count;
    /* of one partition none is drawn: a world whose topic does not grow stays what it was */
    int32_t partition = count > 1 ? (int32_t)scheduler_draw((uint64_t)count) : 0;
    (void)cluster_append(cluster_find_log(WORLD_CONTROL, partition), &record);
    account->jobs[number].may_be_cancelled = true;
    if (is_prompt) account->jobs[number].cancelled_ns = scheduler_now_ns();
    free((void *)(uintptr_t)bytes.data);
}

void account_cancel(struct account *account, bool is_prompt) {
    size_t first = account->count > CANCELS_AROUND ? account->count - CANCELS_AROUND : 0;
    cancel(account, first + scheduler_draw(2 * CANCELS_AROUND), is_prompt);
}

void account_cancel_next(struct account *account, bool is_prompt) {
    cancel(account, account->count, is_prompt);
    scheduler_sleep_ns(HEARD_MS * 1000000ull + 1);
}

void account_forget_cancels(struct account *account) {
    for (size_t i = 0; i < JOBS_MAX; i++) {
        account->jobs[i].must_be_cancelled = false;
        account->jobs[i].cancelled_ns = 0;
    }
}

void account_excuse(struct account *account, int32_t partition, int64_t begin, int64_t end) {
    for (size_t i = 0; i < account->count; i++)
        if (account->jobs[i].partition == partition && account->jobs[i].offset >= begin &&
            account->jobs[i].offset < end)
            account->jobs[i].is_excused = true;
}

void account_doubt(struct account *account, int32_t partition, int64_t end) {
    if (end == 0 || end > account->doubted[partition]) account->doubted[partition] = end;
}

/* ---- results ---- */

static bool is_right(const struct sent_job *job, size_t number, const msgpack_object *result) {
    if (job_is_cancelled_by(result) && job->may_be_cancelled) return true;
    if (job->must_be_cancelled) fprintf(stderr, "job-%zu was cancelled, and ran\n", number);
    return job_is_answered_by(job->kind, number, result) && !job->must_be_cancelled;
}

static void count_result(struct account *account, const struct log_record *record) {
    msgpack_unpacked unpacked;
    size_t number = SIZE_MAX;
    msgpack_unpacked_init(&unpacked);
    if (msgpack_unpack_next(&unpacked, record->payload, record->payload_size, NULL) ==
        MSGPACK_UNPACK_SUCCESS)
        number = job_number_of(&unpacked.data);
    if (number < account->count) {
        struct sent_job *job = &account->jobs[number];
        if (job->answers++ == 0) {
            job->place = account->places++;
            job->waited_ms = record->time_ms - job->sent_ms;
            (void)job_find_resident(&unpacked.data, &job->resident);
        }
        bool has_failed = job_has_failed(&unpacked.data);
        job->failures += has_failed;
        job->successes += !has_failed && !job_is_cancelled_by(&unpacked.data);
        job->wrong += !is_right(job, number, &unpacked.data);
    } else {
        fprintf(stderr, "a result of no job\n");
    }
    msgpack_unpacked_destroy(&unpacked);
}

static struct slice header_of(const struct log_record *record, const char *name) {
    for (size_t i = 0; i < record->header_count; i++)
        if (strcmp(record->headers[i].name, name) == 0)
            return slice_of(record->headers[i].value, record->headers[i].size);
    return slice_of_text("");
}

/* A letter says the same as its job, and why that has failed. */
static bool is_right_letter(
    const struct log_record *record, const struct sent_job *job, size_t number) {
    char code[64];
    size_t count = 0, most = count_headers(number);
    snprintf(code, sizeof code, "%.*s", SLICE_TEXT(header_of(record, DEAD_LETTER_CODE)));
    for (size_t i = 0; i < record->header_count; i++)
        count += strcmp(record->headers[i].name, "number") == 0;
    bool is_cut = most > DELIVERY_HEADERS_MAX;
    return job_may_fail_with(job->kind, code) && count == most - is_cut &&
           slice_is_text(header_of(record, DEAD_LETTER_TRUNCATED), is_cut ? "headers" : "") &&
           !slice_is_text(header_of(record, forged.name), forged.value);
}

/* The only answer to what has no id. */
static void count_letter(struct account *account, const struct log_record *record) {
    char text[32];
    snprintf(text, sizeof text, "%.*s", SLICE_TEXT(header_of(record, "number")));
    size_t number = strtoull(text, NULL, 10);
    if (text[0] == 0 || number >= account->count) {
        fprintf(stderr, "a dead letter of no job\n");
        return;
    }
    struct sent_job *job = &account->jobs[number];
    job->letters++;
    job->wrong += !is_right_letter(record, job, number);
    if (job->kind == JOB_UNDECODABLE && job->answers++ == 0)
        job->waited_ms = record->time_ms - job->sent_ms;
}

static void count_letters(struct account *account, bool ahead) {
    const struct log *log = cluster_find_log(WORLD_DEAD_LETTERS, 0);
    int64_t end = ahead ? log->end : cluster_stable_end(log);
    for (int64_t *next = &account->letters_read; *next < end; (*next)++)
        if (cluster_is_visible(log->records[*next])) count_letter(account, log->records[*next]);
}

/* Counts answers that readers of what is committed can see, or `ahead`, those that are committed
 * behind an open transaction, too. */
static void count_answers(struct account *account, bool ahead) {
    count_letters(account, ahead);
    const struct topic *topic = cluster_find_topic(WORLD_RESULTS);
    for (int32_t p = 0; p < topic->partition_count; p++) {
        const struct log *log = &topic->logs[p];
        int64_t end = ahead ? log->end : cluster_stable_end(log);
        for (int64_t *next = &account->read[p]; *next < end; (*next)++)
            if (cluster_is_visible(log->records[*next])) count_result(account, log->records[*next]);
    }
}

size_t account_count_unanswered(struct account *account) {
    size_t count = 0;
    count_answers(account, false);
    for (size_t i = 0; i < account->count; i++)
        count += account->jobs[i].answers == 0 && !account->jobs[i].is_excused;
    return count;
}

struct account_answers account_answers(struct account *account, int32_t partition, int64_t first) {
    struct account_answers ret = {0};
    count_answers(account, false);
    for (size_t i = 0; i < account->count; i++) {
        const struct sent_job *job = &account->jobs[i];
        if (job->partition != partition || job->offset < first) continue;
        ret.jobs += job->answers > 0;
        ret.answers += job->answers;
    }
    return ret;
}

/* ---- promises ---- */

static bool tell(size_t number, const struct sent_job *job, const char *what) {
    fprintf(stderr,
        "job-%zu, of kind %d and partition %" PRId32 " at %" PRId64 ": %s; %zu answers\n", number,
        (int)job->kind, job->partition, job->offset, what, job->answers);
    return false;
}

/* The one of its key that was sent before it, and was answered; NULL: there is none. */
static const struct sent_job *find_before(const struct account *account, size_t number) {
    const struct sent_job *job = &account->jobs[number];
    for (size_t i = number; i-- > 0;) {
        const struct sent_job *before = &account->jobs[i];
        if (before->topic_id == job->topic_id && before->partition == job->partition &&
            strcmp(before->key, job->key) == 0 && before->answers > 0 && !before->is_excused &&
            before->kind != JOB_UNDECODABLE)
            return before;
    }
    return NULL;
}

static bool is_in_order(const struct account *account, size_t number) {
    const struct sent_job *job = &account->jobs[number];
    /* Who reads on at an earlier topic's offset reads the start of the new one last. */
    bool may_begin_late = job->is_of_new_topic && !account->promises.exactly_once;
    bool is_letter = job->kind == JOB_UNDECODABLE; /* in another topic */
    if (!account->promises.in_order || job->answers == 0 || job->is_excused || may_begin_late ||
        is_letter)
        return true;
    const struct sent_job *before = find_before(account, number);
    return before == NULL || before->place < job->place;
}

/* The resident was created, or goes on from where the job before left it: nothing is applied twice.
 */
static bool is_applied_once(const struct account *account, size_t number) {
    const struct sent_job *job = &account->jobs[number], *before = NULL;
    if (!account->promises.exactly_once || job->resident.generation == 0) return true;
    for (size_t i = 0; i < number; i++)
        if (account->jobs[i].resident.generation > 0 &&
            account->jobs[i].topic_id == job->topic_id &&
            strcmp(account->jobs[i].key, job->key) == 0)
            before = &account->jobs[i];
    bool is_first = job->resident.generation == 1 || before == NULL;
    struct job_resident from = is_first ? (struct job_resident){0} : before->resident;
    return job->resident.generation == from.generation + 1 &&
           job->resident.sum == from.sum + number;
}

bool account_is_right(struct account *account) {
    bool ret = true;
    count_answers(account, false);
    for (size_t i = 0; i < account->count; i++) {
        const struct sent_job *job = &account->jobs[i];
        if (job->answers == 0 && !job->is_excused) ret = tell(i, job, "it was not answered");
        if (job->answers > 1 && (account->promises.exactly_once || account->promises.once))
            ret = tell(i, job, "it was answered more than once");
        if (account->promises.wait_ms > 0 && job->waited_ms > account->promises.wait_ms)
            ret = tell(i, job, "it waited for too long");
        if (job->wrong > 0) ret = tell(i, job, "an answer is wrong");
        if (!is_applied_once(account, i))
            ret = tell(i, job, "its resident is not what it was left");
        if (!is_in_order(account, i)) ret = tell(i, job, "one before it was answered later");
    }
    return ret;
}

bool account_letters_are_right(struct account *account) {
    bool ret = true;
    count_answers(account, false);
    for (size_t i = 0; i < account->count; i++) {
        const struct sent_job *job = &account->jobs[i];
        if (job->is_excused || job->kind == JOB_UNDECODABLE) continue;
        if (job->failures > 0 && job->letters == 0) ret = tell(i, job, "it has no dead letter");
        if (account->promises.exactly_once && job->letters > job->failures)
            ret = tell(i, job, "it has a dead letter, and has not failed");
    }
    return ret;
}

/* A commit that was on its way when the topic was deleted may arrive when another has its name. It
 * says so, and nothing is committed for this one then. */
static bool is_of_another_topic(const rd_kafka_topic_partition_t *p) {
    struct commit_metadata metadata;
    char id[TOPIC_ID_SIZE];
    const struct topic *topic = cluster_find_topic(p->topic);
    if (topic == NULL ||
        !commit_metadata_decode(slice_of(p->metadata, p->metadata_size), p->offset, &metadata))
        return false;
    snprintf(id, sizeof id, "topic-%" PRIu64 "@world", topic->id);
    return metadata.topic_id[0] != 0 && strcmp(metadata.topic_id, id) != 0;
}

bool account_commits_are_right(struct account *account) {
    static struct account ahead; /* of readers: an answer may be there, and wait for another one */
    bool ret = true;
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    ahead = *account;
    count_answers(&ahead, true);
    for (int32_t p = 0; p < CLUSTER_PARTITIONS; p++)
        rd_kafka_topic_partition_list_add(list, WORLD_JOBS, p);
    group_fetch(list, false);
    for (size_t i = 0; i < account->count; i++) {
        const struct sent_job *job = &ahead.jobs[i];
        const rd_kafka_topic_partition_t *p = &list->elems[job->partition];
        int64_t committed = is_of_another_topic(p) ? NO_OFFSET : p->offset;
        if (!job->is_excused && job->offset < committed && job->answers == 0)
            ret = tell(i, job, "it was committed before it was answered");
    }
    rd_kafka_topic_partition_list_destroy(list);
    return ret;
}

bool account_is_all_told(const struct account *account, size_t told, const char *by) {
    size_t answers = 0;
    for (size_t i = 0; i < account->count; i++) answers += account->jobs[i].answers;
    if (told == answers || !account->promises.once) return true;
    fprintf(stderr, "%s tell of %zu answers, and there are %zu\n", by, told, answers);
    return false;
}

bool account_is_summed_up(const struct account *account, size_t ok, size_t errors) {
    size_t answers = 0, successes = 0;
    for (size_t i = 0; i < account->count; i++) {
        answers += account->jobs[i].answers;
        successes += account->jobs[i].successes;
    }
    if (!account->promises.once || (ok == successes && ok + errors == answers)) return true;
    fprintf(stderr, "summaries tell of %zu successes and %zu errors, and there are %zu of %zu\n",
        ok, errors, successes, answers);
    return false;
}

size_t account_count_reported(void) {
    const struct log *log = cluster_find_log(WORLD_TELEMETRY, 0);
    size_t ret = 0;
    for (int64_t offset = 0; offset < log->end; offset++) {
        const struct log_record *record = log->records[offset];
        msgpack_unpacked unpacked;
        msgpack_unpacked_init(&unpacked);
        if (msgpack_unpack_next(&unpacked, record->payload, record->payload_size, NULL) ==
            MSGPACK_UNPACK_SUCCESS)
            ret += job_count_told(&unpacked.data);
        msgpack_unpacked_destroy(&unpacked);
    }
    return ret;
}

int32_t account_find_lag(void) {
    const struct topic *topic = cluster_find_topic(WORLD_JOBS);
    int32_t found = -1;
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    for (int32_t p = 0; p < topic->partition_count; p++)
        rd_kafka_topic_partition_list_add(list, WORLD_JOBS, p);
    group_fetch(list, false);
    for (int32_t p = 0; p < topic->partition_count; p++)
        if (topic->logs[p].end > 0 && list->elems[p].offset != topic->logs[p].end) found = p;
    rd_kafka_topic_partition_list_destroy(list);
    return found;
}
