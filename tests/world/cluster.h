/**
 * Brokers of a world: topics with their logs, groups of the classic protocol with what they have
 * committed, and the coordinator of transactions. Requests of clients come through kafka_*.c, which
 * let time pass before and after; here everything happens at once.
 *
 * All of it lies in the region that the processes of a world share (scheduler.h), so that it
 * outlives its clients. Threads: the one that runs.
 */
#ifndef TESTS_WORLD_CLUSTER_H
#define TESTS_WORLD_CLUSTER_H

#include <librdkafka/rdkafka.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "broker/requests.h"

#define CLUSTER_ADDRESS "world:1"

enum {
    CLUSTER_TOPICS = 16,
    CLUSTER_PARTITIONS = 8,
    CLUSTER_MEMBERS = 64,
    CLUSTER_PRODUCERS = 256,
    CLUSTER_OFFSETS = 64,
    CLUSTER_NAME_SIZE = 256,
    NO_OFFSET = -1001
};

/** What a producer's transactional id stands for. */
enum txn_state { TXN_OPEN, TXN_COMMITTED, TXN_ABORTED };

struct txn {
    enum txn_state state;
    uint64_t began_ns;
};

struct log_header {
    const char *name;
    const void *value; /* NULL: none */
    size_t size;
};

struct log_record {
    bool has_key;
    const void *key, *payload;
    size_t key_size, payload_size;
    size_t header_count;
    struct log_header *headers;
    int64_t time_ms;
    const struct txn *txn; /* NULL: of none */
    bool is_marker;        /* of the end of a transaction; nobody reads it */
};

struct log {
    int64_t low, end;
    struct log_record **records; /* records[offset]; those below `low` are gone */
    size_t room;
};

struct topic {
    char name[CLUSTER_NAME_SIZE];
    uint64_t id;
    uint64_t made_ns;
    bool exists;
    int32_t partition_count;
    size_t message_bytes_max;
    struct log logs[CLUSTER_PARTITIONS];
};

/* ---- topics ---- */

/** Before all others. */
void cluster_begin(void);

struct topic *cluster_make_topic(const char *name, int32_t partition_count);
void cluster_delete_topic(const char *name); /* with what groups have committed for it */
void cluster_add_partitions(const char *name, int32_t partition_count);

/** NULL: there is none. */
struct topic *cluster_find_topic(const char *name);

/** NULL: there is none. */
struct log *cluster_find_log(const char *topic, int32_t partition);

/** Copies the record, and returns its offset. */
int64_t cluster_append(struct log *log, const struct log_record *record);

/** The end for readers of what is committed: the first record of an open transaction, or the end.
 */
int64_t cluster_stable_end(const struct log *log);

/** What a reader of what is committed skips. */
bool cluster_is_visible(const struct log_record *record);

/** Messages from `end` on are gone, as after an unclean election. */
void cluster_truncate(struct log *log, int64_t end);

/** What brokers tell of its id, which is another one each time that it is made. */
void cluster_tell_id(const struct topic *topic, char *ret, size_t size);

/** Makes brokers tell no ids, as old ones do: a zero. */
void cluster_hide_ids(void);

/* ---- outages ---- */

/** No request is answered before that; UINT64_MAX: before it comes up. */
void cluster_go_down_until(uint64_t until_ns);
void cluster_come_up(void);

/** Brokers let nobody in before they come up: they refuse what clients say who they are. */
void cluster_shut_out(void);
bool cluster_is_shut(void);
uint64_t cluster_down_until_ns(void);
uint64_t cluster_outage_count(void);

/** The next `count` requests of this kind are answered with this. */
void cluster_refuse(enum request request, rd_kafka_resp_err_t code, int count);
/** What this request is answered with; NO_ERROR: it is not refused. */
rd_kafka_resp_err_t cluster_refusal(enum request request);

/** Something changed: those that wait for cluster_key() look again. */
void cluster_changed(void);
const void *cluster_key(void);

/* ---- groups ---- */

/** Before any member. `tells`: each commit, to standard error. */
void group_begin(bool tells);

/** What follows and names no member is about this group from now on; at first, "workers". */
void group_use(const char *name);

struct member; /* of a client, from its joining until it has left or was expelled */

/** Joins as another member; the process keeps it alive. */
struct member *group_join(pid_t process, const char *instance, uint32_t session_ms,
    uint32_t poll_interval_ms, char *const *topics, size_t topic_count);
void group_leave(struct member *member);

/** As administrators remove a member, which does not hear of it before its next heartbeat. */
void group_remove(pid_t process);

/** A member's client has gone without a word: the group waits for it until its session is over. */
void group_abandon(struct member *member);

/** The client has called poll(). */
void group_polled(struct member *member);

/** Ends sessions and rebalances that are due. Every request begins with it. */
void group_serve(void);

enum group_standing {
    GROUP_GONE,    /* it is no member any more */
    GROUP_REJOIN,  /* it must call group_rejoin(), and give its partitions back before unless it is
                      cooperative */
    GROUP_WAITING, /* for the others */
    GROUP_MEMBER   /* of the current generation */
};
enum group_standing group_stands(const struct member *member);

/** Begins a rebalance where none goes on. */
void group_rejoin(struct member *member);

/** What a member of a cooperative group says when it joins: what it has, and since which
 * generation. */
void group_claim(
    struct member *member, const rd_kafka_topic_partition_list_t *owned, int32_t generation);

const char *group_member_id(const struct member *member);
int32_t group_member_generation(const struct member *member);

/** Of the group that is in use. */
int32_t group_generation(void);

/** Of the same: no rebalance goes on, and there are members. */
bool group_is_stable(void);

/** Of the same; NULL: there are no more. */
const struct member *group_member_at(size_t i);

/** What it has in the current generation. */
rd_kafka_topic_partition_list_t *group_assignment(const struct member *member);

/** Whether a commit as that member in that generation is taken. `member` "" and generation -1: a
 * client that is in no group, which commits beside members only within a transaction. */
rd_kafka_resp_err_t group_check(
    const char *member, const char *instance, int32_t generation, bool is_transactional);

/** Stores what is committed; with `txn`, once that is. */
rd_kafka_resp_err_t group_commit(
    const rd_kafka_topic_partition_list_t *partitions, const struct txn *txn);

/** What was committed: NO_OFFSET for nothing. `is_stable`: UNSTABLE_OFFSET_COMMIT for what an open
 * transaction may change. */
void group_fetch(rd_kafka_topic_partition_list_t *partitions, bool is_stable);

/* ---- producers with a transactional id ---- */

struct producer_id;

/** Takes the id over: whoever had it is fenced, and what it left open is aborted. */
struct producer_id *producer_id_take(const char *name, uint32_t timeout_ms, int16_t *epoch);
bool producer_id_is_fenced(const struct producer_id *id, int16_t epoch);

/** The open transaction, which begins with the first call. */
struct txn *producer_id_open(struct producer_id *id);

/** A record went to this partition, which gets a marker at the end. */
void producer_id_touch(struct producer_id *id, struct log *log);
void producer_id_end(struct producer_id *id, enum txn_state state);

/** From now on the answer to a commit is lost now and then, and its producer is fenced then, also
 * where the commit was taken. Never two of a name in a row. */
void producer_ids_lose_answers(void);
bool producer_id_loses_answer(struct producer_id *id);

/** Aborts those that have been open for too long, and fences their producers. */
void producer_ids_serve(void);

#endif
