#include "broker/consumer.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/invariant.h"
#include "broker/assignment.h"
#include "broker/clients.h"
#include "broker/commit_list.h"
#include "broker/committer.h"
#include "broker/consumer_conf.h"
#include "broker/held.h"
#include "broker/member.h"
#include "broker/orphans.h"
#include "broker/ownership.h"
#include "broker/resets.h"
#include "broker/trials.h"
#include "broker/waker.h"

enum {
    COMMIT_TIMEOUT_MS = 10000, /* of the commit before partitions are given back */
    ATTENTION_MS = 10          /* how long poll() sleeps while something waits for finished jobs */
};

struct consumer {
    struct source source;
    struct client_events events;
    rd_kafka_t *client;
    struct waker *waker; /* NULL: none is needed, or it is closing */
    struct offsets *offsets;
    struct error failure; /* what every further poll returns; ERR_OK: none */
    bool is_paused, is_closing;
    bool is_cooperative; /* of the last assignment: given and taken in parts */

    struct committer committer;
    struct member *member; /* as which the partitions are ours */
    struct claim *claim;   /* NULL: commits are made here, and not in transactions */
    uint64_t owner;
    uint32_t commit_interval_ms;
    uint64_t next_commit_ns;
    uint32_t drain_timeout_ms;
    uint64_t drain_deadline_ns, close_deadline_ns;
    rd_kafka_topic_partition_list_t *leaving; /* revoked, not given back yet; NULL: none */
    struct arrival arrival;
    struct held held; /* messages beyond the window */
    struct trials trials;
    struct resets resets;
    struct orphans orphans;
};

static const char *topic_of(const rd_kafka_message_t *message) {
    return rd_kafka_topic_name(message->rkt);
}

/* Only the first reason counts. */
static void fail(struct consumer *consumer, rd_kafka_resp_err_t native, const char *reason) {
    if (consumer->failure.code == ERR_OK) client_lost(&consumer->failure, native, reason);
}

static bool is_leaving(const struct consumer *consumer, const char *topic, int32_t partition) {
    return consumer->is_closing ||
           (consumer->leaving != NULL &&
               rd_kafka_topic_partition_list_find(consumer->leaving, topic, partition) != NULL);
}

/* What transactions have found. */
static void follow_doubts(struct consumer *consumer) {
    const char *topic;
    int32_t partition;
    while (offsets_take_doubted(consumer->offsets, &topic, &partition))
        recreations_note(&consumer->committer.recreations, topic, partition);
}

/* What is given back is committed with it, but by transactions: its topics are looked at meanwhile.
 */
static void serve_commits(struct consumer *consumer) {
    bool in_transactions = consumer->claim != NULL;
    committer_serve(&consumer->committer);
    follow_doubts(consumer);
    if (clock_ns() < consumer->next_commit_ns) return;
    rd_kafka_topic_partition_list_t *partitions = assignment_get(consumer->client);
    for (int i = partitions->cnt - 1; i >= 0 && !in_transactions; i--)
        if (is_leaving(consumer, partitions->elems[i].topic, partitions->elems[i].partition))
            rd_kafka_topic_partition_list_del_by_idx(partitions, i);
    if (committer_start(&consumer->committer, partitions, in_transactions))
        consumer->next_commit_ns = clock_ns_in(consumer->commit_interval_ms);
    rd_kafka_topic_partition_list_destroy(partitions);
}

/* Pauses, and messages beyond the window */

static void pause_partitions(
    struct consumer *consumer, const rd_kafka_topic_partition_list_t *partitions, bool paused) {
    rd_kafka_resp_err_t code = assignment_pause(consumer->client, partitions, paused);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
        client_report(&consumer->events, code, paused ? "pausing failed" : "resuming failed");
}

/* Partitions that are stopped for a reason of their own stay so. Takes the list. */
static void pause_reading(
    struct consumer *consumer, rd_kafka_topic_partition_list_t *partitions, bool paused) {
    for (int i = partitions->cnt - 1; i >= 0; i--) {
        const rd_kafka_topic_partition_t *p = &partitions->elems[i];
        bool is_stopped = is_leaving(consumer, p->topic, p->partition) ||
                          held_has(&consumer->held, p->topic, p->partition) ||
                          trials_is_aside(&consumer->trials, p->topic, p->partition);
        if (is_stopped) rd_kafka_topic_partition_list_del_by_idx(partitions, i);
    }
    pause_partitions(consumer, partitions, paused);
    rd_kafka_topic_partition_list_destroy(partitions);
}

static void pause_partition(
    struct consumer *consumer, const char *topic, int32_t partition, bool paused) {
    rd_kafka_topic_partition_t one = {.topic = (char *)(uintptr_t)topic, .partition = partition};
    pause_partitions(consumer, &(rd_kafka_topic_partition_list_t){.cnt = 1, .elems = &one}, paused);
}

/* Pausing ends what the partition brings, but for what librdkafka has on its way to us already. */
static void hold(struct consumer *consumer, rd_kafka_message_t *message) {
    const char *topic = topic_of(message);
    bool is_first = !held_has(&consumer->held, topic, message->partition);
    if (!held_add(&consumer->held, message)) {
        fail(consumer, RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE, "no memory to hold a message");
        rd_kafka_message_destroy(message);
    } else if (is_first) {
        pause_partition(consumer, topic, message->partition, true);
    }
}

static rd_kafka_message_t *take_held(struct consumer *consumer) {
    if (consumer->is_paused) return NULL;
    rd_kafka_message_t *message = held_take(&consumer->held, consumer->offsets);
    if (message != NULL && !held_has(&consumer->held, topic_of(message), message->partition))
        pause_partition(consumer, topic_of(message), message->partition, false);
    return message;
}

/* Trouble */

static void on_trouble(struct consumer *consumer, rd_kafka_resp_err_t code, const char *reason) {
    char text[256];
    if (code == RD_KAFKA_RESP_ERR__FATAL) {
        code = rd_kafka_fatal_error(consumer->client, text, sizeof text);
        fail(consumer, code, text);
    } else if (client_is_final(code)) {
        fail(consumer, code, reason);
    } else {
        client_report(&consumer->events, code, reason);
    }
}

static void on_error(rd_kafka_t *client, int code, const char *reason, void *opaque) {
    on_trouble(opaque, (rd_kafka_resp_err_t)code, reason);
}

static void on_log(const rd_kafka_t *client, int level, const char *facility, const char *line) {
    struct consumer *consumer = rd_kafka_opaque(client);
    bool is_reset = resets_note(&consumer->resets, facility, line);
    client_say(&consumer->events, is_reset ? LOG_WARN : LOG_DEBUG, "%s: %s", facility, line);
}

/* Rebalances */

static void change_assignment(struct consumer *consumer, enum assignment_change change,
    const rd_kafka_topic_partition_list_t *partitions) {
    rd_kafka_resp_err_t code =
        assignment_change(consumer->client, consumer->is_cooperative, change, partitions);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
        client_report(&consumer->events, code, "changing the assignment failed");
}

static rd_kafka_resp_err_t commit_leaving(struct consumer *consumer) {
    if (member_is_over(consumer->member, consumer->client))
        return RD_KAFKA_RESP_ERR__ASSIGNMENT_LOST;
    return ownership_release(&consumer->committer, consumer->leaving, consumer->claim != NULL,
        consumer->is_closing ? consumer->close_deadline_ns : clock_ns_in(COMMIT_TIMEOUT_MS));
}

/* Gives the leaving partitions back, finished or not. */
static void let_go(struct consumer *consumer) {
    rd_kafka_topic_partition_list_t *partitions = consumer->leaving;
    if (partitions == NULL) return;
    rd_kafka_resp_err_t code = commit_leaving(consumer);
    assignment_tell_left(&consumer->events, consumer->offsets, partitions, code);
    assignment_revoke(consumer->offsets, &consumer->source, partitions);
    change_assignment(consumer, ASSIGNMENT_REMOVE, partitions);
    rd_kafka_topic_partition_list_destroy(partitions);
    consumer->leaving = NULL;
}

static void follow(struct consumer *consumer, rd_kafka_topic_partition_t *p) {
    struct offsets_commit committed;
    resets_forget(&consumer->resets, p->topic, p->partition);
    recreations_forget(&consumer->committer.recreations, p->topic, p->partition);
    (void)!commit_list_get(p, &committed); /* what we wrote */
    if (consumer->failure.code != ERR_OK) return;
    (void)!offsets_assign(
        consumer->offsets, p->topic, p->partition, &committed, &consumer->failure);
    source_tell_committed(&consumer->source, p->topic, p->partition, p->offset);
}

static void take_over(struct consumer *consumer, rd_kafka_topic_partition_list_t *partitions) {
    char names[256];
    for (int i = 0; i < partitions->cnt; i++) follow(consumer, &partitions->elems[i]);
    trials_skip_aside(&consumer->trials, partitions);
    change_assignment(consumer, ASSIGNMENT_ADD, partitions);
    /* A partition that was paused when it was given back would still be. */
    pause_reading(consumer, rd_kafka_topic_partition_list_copy(partitions), consumer->is_paused);
    trials_pause_aside(&consumer->trials, consumer->client);
    assignment_text(partitions, names, sizeof names);
    client_say(&consumer->events, LOG_INFO, "was assigned %s", names);
}

static void forget_arriving(struct consumer *consumer) {
    arrival_end(&consumer->arrival);
    if (consumer->claim != NULL) claim_withdraw(consumer->claim);
    trials_drop(&consumer->trials);
}

/* Once no partition that arrives has to be tried alone any more. */
static void serve_trials(struct consumer *consumer) {
    if (!trials_serve(&consumer->trials, consumer->client, consumer->is_cooperative)) return;
    if (!consumer->is_paused) pause_reading(consumer, assignment_get(consumer->client), false);
    take_over(consumer, consumer->arrival.partitions);
    forget_arriving(consumer);
}

/* An assignment must be answered: this takes it, and reads nothing of it. */
static void refuse_arriving(struct consumer *consumer) {
    if (consumer->arrival.partitions == NULL) return;
    pause_partitions(consumer, consumer->arrival.partitions, true);
    assignment_place_at_end(consumer->arrival.partitions);
    change_assignment(consumer, ASSIGNMENT_ADD, consumer->arrival.partitions);
    forget_arriving(consumer);
}

/* An owner before us may have a transaction open, so poll() goes on until its end is known. */
static void serve_arriving(struct consumer *consumer) {
    struct arrival *arrival = &consumer->arrival;
    if (arrival->partitions == NULL) return;
    if (arrival->is_claimed) {
        serve_trials(consumer);
        return;
    }
    rd_kafka_resp_err_t code =
        arrival_claim(arrival, &consumer->committer, consumer->claim, consumer->owner);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
        trials_sort(&consumer->trials, arrival->partitions);
        /* What is ours already is not read beside one on trial. */
        if (consumer->trials.waiting != NULL)
            pause_reading(consumer, assignment_get(consumer->client), true);
        serve_trials(consumer);
    } else if (client_is_final(code)) {
        fail(consumer, code, "asking for the committed offsets, or taking them over, failed");
    } else if (committer_is_outside(code)) {
        /* Only a client whose assignment is answered sees that it has to join the group again. */
        refuse_arriving(consumer);
    }
}

static void on_assigned(
    struct consumer *consumer, const rd_kafka_topic_partition_list_t *partitions) {
    /* Asked now: a client that is closing does not say any more. */
    consumer->is_cooperative = assignment_is_cooperative(consumer->client);
    consumer->source.group = SOURCE_GROUP_MEMBER;
    source_add_rebalance(&consumer->source);
    orphans_begin(&consumer->orphans);
    member_enter(consumer->member, consumer->client);
    arrival_begin(&consumer->arrival, partitions);
    (consumer->is_closing ? refuse_arriving : serve_arriving)(consumer);
}

/*
 * librdkafka waits for the unassignment as long as it takes, so poll() goes on, and its caller with
 * it, while messages that have started finish. Nothing more of these partitions is taken or starts.
 */
static void on_revoked(
    struct consumer *consumer, const rd_kafka_topic_partition_list_t *partitions) {
    consumer->leaving = rd_kafka_topic_partition_list_copy(partitions);
    if (!consumer->is_cooperative || rd_kafka_assignment_lost(consumer->client))
        consumer->source.group = SOURCE_GROUP_AWAY; /* from all that it had */
    consumer->drain_deadline_ns = clock_ns_in(consumer->drain_timeout_ms);
    held_drop(&consumer->held, partitions);
    trials_forget(&consumer->trials, partitions);
    pause_partitions(consumer, consumer->leaving, true);
    assignment_leave(consumer->offsets, partitions);
    assignment_tell_leaving(&consumer->events, consumer->offsets, partitions);
    if (consumer->is_closing) let_go(consumer);
}

static void on_rebalance(rd_kafka_t *client, rd_kafka_resp_err_t code,
    rd_kafka_topic_partition_list_t *partitions, void *opaque) {
    struct consumer *consumer = opaque;
    let_go(consumer);
    forget_arriving(consumer);
    switch (code) {
    case RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS: on_assigned(consumer, partitions); break;
    case RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS: on_revoked(consumer, partitions); break;
    default:
        client_report(&consumer->events, code, "rebalancing failed");
        rd_kafka_assign(client, NULL);
    }
}

static void serve_leaving(struct consumer *consumer) {
    if (consumer->leaving == NULL) return;
    if (assignment_count(consumer->offsets, consumer->leaving).started == 0 ||
        clock_ns() >= consumer->drain_deadline_ns ||
        member_is_over(consumer->member, consumer->client))
        let_go(consumer);
}

/* Between two assignments alone. */
static void serve_group(struct consumer *consumer) {
    if (consumer->leaving != NULL || consumer->arrival.partitions != NULL) return;
    if (member_has_to_renew(consumer->member, consumer->client, &consumer->events) ||
        orphans_serve(&consumer->orphans))
        assignment_renew(consumer->client, &consumer->events);
}

/* Messages */

/* Consumes `message`. *ret stays NULL for one that must not run here. */
static void deliver(struct consumer *consumer, rd_kafka_message_t *message, struct delivery **ret) {
    /* A message that is cut is copied and given back at once. The name is the client's, which
     * follows the topic. */
    const char *topic = topic_of(message);
    int32_t partition = message->partition;
    int64_t offset = message->offset;
    struct delivery *lent = client_lend_message(message, DELIVERY_HEADERS_MAX);
    if (lent == NULL) {
        fail(consumer, RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE, "no memory to take a message");
        return;
    }
    enum offsets_begun begun = offsets_begin(
        consumer->offsets, topic, partition, offset, lent->received_ns, &lent->position);
    lent->is_suspect = begun == OFFSETS_BEGUN_ALONE;
    if (begun == OFFSETS_NOT_BEGUN) delivery_destroy(lent);
    else *ret = lent;
}

/* Consumes `message`, of a partition whose messages are taken. */
static void take(struct consumer *consumer, rd_kafka_message_t *message, struct delivery **ret) {
    const char *topic = topic_of(message);
    bool is_end = message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF;
    bool is_over = resets_move(&consumer->resets, message, &consumer->failure);
    if (is_over) held_drop_of(&consumer->held, topic, message->partition);
    bool is_late = held_has(&consumer->held, topic, message->partition);
    int64_t ahead = offsets_ahead(consumer->offsets, topic, message->partition, message->offset);
    if (is_end && !is_over && !is_late)
        offsets_advance(consumer->offsets, topic, message->partition, message->offset);
    if (is_end || is_over) rd_kafka_message_destroy(message);
    else if (is_late || ahead >= OFFSETS_WINDOW) hold(consumer, message);
    else deliver(consumer, message, ret);
}

/* Consumes `message`. */
static void receive(struct consumer *consumer, rd_kafka_message_t *message, struct delivery **ret) {
    bool is_on_trial = trials_take(&consumer->trials, message);
    bool is_in_log = message->err == RD_KAFKA_RESP_ERR_NO_ERROR ||
                     message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF;
    if (!is_on_trial && !is_in_log)
        on_trouble(consumer, message->err, rd_kafka_message_errstr(message));
    if (is_on_trial || !is_in_log || is_leaving(consumer, topic_of(message), message->partition) ||
        trials_is_aside(&consumer->trials, topic_of(message), message->partition))
        rd_kafka_message_destroy(message);
    else take(consumer, message, ret);
}

static void serve_lifted(struct consumer *consumer) {
    rd_kafka_topic_partition_list_t *lifted =
        trials_take_lifted(&consumer->trials, consumer->client);
    if (lifted == NULL) return;
    client_say(&consumer->events, LOG_INFO, "reads partitions again that were set aside");
    pause_reading(consumer, lifted, consumer->is_paused);
}

/* poll() has to come back in time for what it serves. */
static int wait_ms(const struct consumer *consumer, int timeout_ms) {
    bool is_watching = consumer->leaving != NULL || consumer->arrival.partitions != NULL ||
                       consumer->held.count > 0 ||
                       consumer->committer.recreations.look == LOOK_ASKED;
    int longest_ms = is_watching ? ATTENTION_MS : (int)consumer->commit_interval_ms;
    return timeout_ms < longest_ms ? timeout_ms : longest_ms;
}

static enum err consumer_poll(
    struct source *source, int timeout_ms, struct delivery **ret, bool *at_end, struct error *err) {
    struct consumer *consumer = (struct consumer *)source;
    *ret = NULL;
    *at_end = false;
    serve_leaving(consumer);
    serve_arriving(consumer);
    serve_lifted(consumer);
    serve_group(consumer);
    serve_commits(consumer);
    if (source->group == SOURCE_GROUP_NO_BROKER && client_has_met_broker(consumer->client))
        source->group = SOURCE_GROUP_JOINING;
    if (consumer->failure.code == ERR_OK) {
        rd_kafka_message_t *message = take_held(consumer);
        if (message != NULL) {
            deliver(consumer, message, ret);
        } else {
            message = rd_kafka_consumer_poll(consumer->client, wait_ms(consumer, timeout_ms));
            if (message != NULL) receive(consumer, message, ret);
        }
    }
    if (*ret != NULL || consumer->failure.code == ERR_OK) return ERR_OK;
    *err = consumer->failure;
    return err->code;
}

static void consumer_pause(struct source *source, bool paused) {
    struct consumer *consumer = (struct consumer *)source;
    if (consumer->is_paused == paused) return;
    consumer->is_paused = paused;
    pause_reading(consumer, assignment_get(consumer->client), paused);
}

static void consumer_finish(struct source *source, const struct position *position) {
    struct consumer *consumer = (struct consumer *)source;
    offsets_finish(consumer->offsets, position, clock_ns());
}

static bool consumer_keeps(const struct source *source, const struct position *position) {
    return offsets_keeps(((const struct consumer *)source)->offsets, position);
}

static bool consumer_start(struct source *source, const struct position *position) {
    return offsets_start(((struct consumer *)source)->offsets, position);
}

static void consumer_put_back(struct source *source, const struct position *position) {
    offsets_put_back(((struct consumer *)source)->offsets, position);
}

static void consumer_get_totals(const struct source *source, struct offsets_totals *ret) {
    offsets_get_totals(((const struct consumer *)source)->offsets, ret);
}

/* -1: it is not known yet. The end is the one that the client's last fetch returned, so no request
 * is needed; it may be old while the partition is paused. */
static int64_t lag_of(const struct consumer *consumer, const struct offsets_followed *at) {
    int64_t low = RD_KAFKA_OFFSET_INVALID, end = RD_KAFKA_OFFSET_INVALID;
    int64_t next = at->state.next_commit;
    rd_kafka_resp_err_t code =
        rd_kafka_get_watermark_offsets(consumer->client, at->topic, at->partition, &low, &end);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR || low < 0 || end < 0 || next == OFFSET_UNKNOWN)
        return -1;
    if (next < low) next = low; /* messages below `low` are deleted */
    return end > next ? end - next : 0;
}

static void consumer_each_partition(
    const struct source *source, source_visit_partition *visit, void *context) {
    const struct consumer *consumer = (const struct consumer *)source;
    struct offsets_followed at;
    for (size_t i = 0; offsets_at(consumer->offsets, i, &at); i++) {
        if (!at.is_followed) continue;
        const struct source_partition partition = {.topic = at.topic,
            .partition = at.partition,
            .lag = lag_of(consumer, &at),
            .unfinished_count = at.state.unfinished_count,
            .lowest_since_ns = at.state.lowest_since_ns};
        visit(context, &partition);
    }
}

/* A message that comes too late to be taken: its offset never begins. */
static void poll_and_drop(void *opaque) {
    struct consumer *consumer = opaque;
    struct delivery *dropped = NULL;
    rd_kafka_message_t *message = rd_kafka_consumer_poll(consumer->client, ATTENTION_MS);
    if (message != NULL) receive(consumer, message, &dropped);
    INVARIANT(dropped == NULL, "a message that comes too late is not handed on");
}

/* Commits all that is finished. In the middle of a rebalance, no broker takes commits. */
static rd_kafka_resp_err_t commit_last(struct consumer *consumer) {
    rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR_NO_ERROR;
    for (;;) {
        rd_kafka_topic_partition_list_t *partitions = assignment_get(consumer->client);
        code = ownership_release(
            &consumer->committer, partitions, consumer->claim != NULL, consumer->close_deadline_ns);
        rd_kafka_topic_partition_list_destroy(partitions);
        if (!committer_is_rebalancing(code) || clock_ns() >= consumer->close_deadline_ns)
            return code;
        poll_and_drop(consumer);
    }
}

static enum err consumer_close(struct source *source, int timeout_ms, struct error *err) {
    struct consumer *consumer = (struct consumer *)source;
    consumer->is_closing = true;
    consumer->close_deadline_ns = clock_ns_in((uint32_t)timeout_ms);
    waker_stop(&consumer->waker);
    let_go(consumer);
    refuse_arriving(consumer);
    rd_kafka_resp_err_t code = commit_last(consumer);
    held_fini(&consumer->held);
    member_leave(
        consumer->client, consumer->close_deadline_ns, poll_and_drop, on_rebalance, consumer);
    /* A group that went on without this member has given what it had to others. */
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR || committer_is_outside(code)) return ERR_OK;
    return error_set(err, ERR_BROKER, code,
        "nothing needs to be done: jobs since the last commit are run again",
        "the last commit failed: %s", rd_kafka_err2str(code));
}

/*
 * Destroying a client that waits for absent brokers takes as long as a session, or for ever (with
 * librdkafka 2.0.2). Such a client is left to the end of the process: its callbacks are not called
 * any more.
 */
static void consumer_destroy(struct source *source) {
    struct consumer *consumer = (struct consumer *)source;
    if (consumer->committer.requested != NULL) committer_serve(&consumer->committer);
    bool is_left_behind = consumer->client == NULL || consumer->committer.requested != NULL ||
                          (consumer->is_closing && !rd_kafka_consumer_closed(consumer->client));
    waker_stop(&consumer->waker);
    held_fini(&consumer->held);
    resets_fini(&consumer->resets);
    trials_fini(&consumer->trials);
    if (consumer->leaving != NULL) rd_kafka_topic_partition_list_destroy(consumer->leaving);
    forget_arriving(consumer);
    orphans_fini(&consumer->orphans);
    committer_fini(&consumer->committer);
    if (!is_left_behind) client_destroy(consumer->client);
    offsets_destroy(consumer->offsets);
    member_destroy(consumer->member);
    claim_destroy(consumer->claim);
    free(consumer);
}

enum err consumer_create(
    const struct consumer_options *options, struct source **ret, struct error *err) {
    static const struct source_operations operations = {.poll = consumer_poll,
        .pause = consumer_pause,
        .finish = consumer_finish,
        .keeps = consumer_keeps,
        .start = consumer_start,
        .put_back = consumer_put_back,
        .get_totals = consumer_get_totals,
        .each_partition = consumer_each_partition,
        .close = consumer_close,
        .destroy = consumer_destroy};
    struct consumer *consumer = calloc(1, sizeof *consumer);
    struct offsets *offsets = offsets_create();
    struct member *member = member_create(options->partitions == 0);
    struct claim *claim = options->commits_elsewhere ? claim_create() : NULL;
    if (consumer == NULL || offsets == NULL || member == NULL ||
        (claim == NULL && options->commits_elsewhere)) {
        free(consumer);
        offsets_destroy(offsets);
        member_destroy(member);
        claim_destroy(claim);
        return error_no_memory(err, "no memory for a Kafka consumer");
    }
    consumer->source = (struct source){.operations = &operations, .group = SOURCE_GROUP_NO_BROKER};
    consumer->offsets = offsets;
    consumer->member = member;
    consumer->claim = claim;
    consumer->events = (struct client_events){.on_event = options->kafka.on_event,
        .context = options->kafka.context,
        .name = "kafka consumer"};
    consumer->owner = options->owner;
    consumer->commit_interval_ms = options->commit_interval_ms;
    consumer->drain_timeout_ms = options->drain_timeout_ms;
    trials_init(
        &consumer->trials, &consumer->source, &consumer->events, options->fetch_ahead_bytes);
    rd_kafka_conf_t *conf;
    enum err code = consumer_conf_create(options, &conf, err);
    if (code != ERR_OK) goto fail;
    rd_kafka_conf_set_opaque(conf, consumer);
    rd_kafka_conf_set_rebalance_cb(conf, on_rebalance);
    rd_kafka_conf_set_error_cb(conf, on_error);
    rd_kafka_conf_set_log_cb(conf, on_log);
    code = client_create(RD_KAFKA_CONSUMER, conf, CONSUMER_SECTION, &consumer->client, err);
    if (code != ERR_OK) goto fail;
    rd_kafka_set_log_queue(consumer->client, NULL);
    rd_kafka_poll_set_consumer(consumer->client);
    committer_init(&consumer->committer, consumer->client, member, offsets, &consumer->held,
        &consumer->events, &consumer->source);
    resets_init(&consumer->resets, &consumer->committer.recreations);
    orphans_init(
        &consumer->orphans, consumer->client, &consumer->events, options->drain_timeout_ms);
    if (options->partitions > 0) arrival_take_all(&consumer->arrival, options, &consumer->source);
    else code = assignment_subscribe(consumer->client, options->topics, options->topic_count, err);
    if (code == ERR_OK) code = waker_start(consumer->client, &consumer->waker, err);
    if (code != ERR_OK) goto fail;
    *ret = &consumer->source;
    return ERR_OK;
fail:
    consumer_destroy(&consumer->source);
    return code;
}

struct consumer_parts consumer_parts(const struct source *source) {
    const struct consumer *consumer = (const struct consumer *)source;
    return (struct consumer_parts){
        consumer->client, consumer->offsets, consumer->member, consumer->claim};
}
