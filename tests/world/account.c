#include "world/account.h"

#include <inttypes.h>
#include <msgpack.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker/commit_metadata.h"
#include "support/jobs.h"
#include "world/cluster.h"
#include "world/scheduler.h"
#include "world/worker.h"

enum {
    JOBS_MAX = 4096,
    YOUNG_MS = 3000 /* worker/README.md: what a new topic gets first may be answered twice */
};

struct sent_job {
    int32_t partition;
    int64_t offset;
    bool is_excused, may_double;
    size_t answers, wrong;
};

struct account {
    bool exactly_once;
    uint64_t since_ns;
    size_t count;
    struct sent_job jobs[JOBS_MAX];
    int64_t read[CLUSTER_PARTITIONS];    /* results up to there are counted */
    int64_t excused[CLUSTER_PARTITIONS]; /* jobs that come below it */
};

struct account *account_create(bool exactly_once) {
    struct account *account = calloc(1, sizeof *account);
    if (account == NULL) abort();
    account->exactly_once = exactly_once;
    account->since_ns = scheduler_now_ns();
    return account;
}

static bool is_young_again(const struct account *account, const struct topic *topic) {
    return topic->made_ns > account->since_ns &&
           scheduler_now_ns() - topic->made_ns < YOUNG_MS * 1000000ull;
}

void account_send(struct account *account, int32_t partition) {
    char yaml[512];
    size_t number = account->count++;
    if (number == JOBS_MAX) abort();
    snprintf(yaml, sizeof yaml,
        "id: job-%zu\nbuffers: {x: {data: {f32: [%zu, 1]}}, y: {data: {f32: [1, 1]}}}\n"
        "steps: [{program: saxpy, args: [{f32: 2}, x, y, {u32: 2}], elements: 2}]\n"
        "outputs: [{buffer: y}]\n",
        number, number);
    struct slice bytes = test_job_bytes(yaml);
    struct log *log = cluster_find_log(WORLD_JOBS, partition);
    const struct log_record record = {.payload = bytes.data, .payload_size = bytes.size};
    account->jobs[number] = (struct sent_job){.partition = partition,
        .offset = cluster_append(log, &record),
        .may_double = is_young_again(account, cluster_find_topic(WORLD_JOBS))};
    account->jobs[number].is_excused = account->jobs[number].offset < account->excused[partition];
    free((void *)(uintptr_t)bytes.data);
}

void account_excuse(struct account *account, int32_t partition, int64_t end, int64_t before) {
    if (before == 0 || before > account->excused[partition]) account->excused[partition] = before;
    for (size_t i = 0; i < account->count; i++)
        if (account->jobs[i].partition == partition && account->jobs[i].offset >= end)
            account->jobs[i].is_excused = true;
}

/* ---- results ---- */

static const msgpack_object *get(const msgpack_object *map, const char *key) {
    for (uint32_t i = 0; map != NULL && map->type == MSGPACK_OBJECT_MAP && i < map->via.map.size;
         i++) {
        const msgpack_object_kv *pair = &map->via.map.ptr[i];
        if (pair->key.via.str.size == strlen(key) &&
            memcmp(pair->key.via.str.ptr, key, strlen(key)) == 0)
            return &pair->val;
    }
    return NULL;
}

static bool is_right(const msgpack_object *result, size_t number) {
    const msgpack_object *outputs = get(result, "outputs");
    if (outputs == NULL || outputs->type != MSGPACK_OBJECT_ARRAY || outputs->via.array.size != 1)
        return false;
    const msgpack_object *data = get(&outputs->via.array.ptr[0], "data");
    const float expected[] = {2 * (float)number + 1, 3};
    return data != NULL && data->type == MSGPACK_OBJECT_BIN &&
           data->via.bin.size == sizeof expected &&
           memcmp(data->via.bin.ptr, expected, sizeof expected) == 0;
}

static void count_result(struct account *account, const struct log_record *record) {
    msgpack_unpacked unpacked;
    size_t number = SIZE_MAX;
    char id[64] = "";
    msgpack_unpacked_init(&unpacked);
    if (msgpack_unpack_next(&unpacked, record->payload, record->payload_size, NULL) ==
        MSGPACK_UNPACK_SUCCESS) {
        const msgpack_object *text = get(&unpacked.data, "id");
        if (text != NULL && text->type == MSGPACK_OBJECT_STR)
            snprintf(id, sizeof id, "%.*s", (int)text->via.str.size, text->via.str.ptr);
        (void)!sscanf(id, "job-%zu", &number);
        if (number < account->count) {
            account->jobs[number].answers++;
            account->jobs[number].wrong += !is_right(&unpacked.data, number);
        }
    }
    if (number >= account->count) fprintf(stderr, "a result of no job: '%s'\n", id);
    msgpack_unpacked_destroy(&unpacked);
}

/* Those that readers of what is committed can see, or `ahead`, those that are committed behind an
 * open transaction, too. */
static void count_results(struct account *account, bool ahead) {
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
    count_results(account, false);
    for (size_t i = 0; i < account->count; i++)
        count += account->jobs[i].answers == 0 && !account->jobs[i].is_excused;
    return count;
}

/* ---- promises ---- */

static bool tell(size_t number, const struct sent_job *job, const char *what) {
    fprintf(stderr, "job-%zu, of partition %" PRId32 " at %" PRId64 ": %s; %zu answers\n", number,
        job->partition, job->offset, what, job->answers);
    return false;
}

bool account_is_right(struct account *account) {
    bool ret = true;
    count_results(account, false);
    for (size_t i = 0; i < account->count; i++) {
        const struct sent_job *job = &account->jobs[i];
        if (job->answers == 0 && !job->is_excused) ret = tell(i, job, "it was not answered");
        if (job->answers > 1 && account->exactly_once && !job->may_double)
            ret = tell(i, job, "it was answered more than once");
        if (job->wrong > 0) ret = tell(i, job, "an answer is wrong");
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
    count_results(&ahead, true);
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
