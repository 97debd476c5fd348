#include "cli/findings.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "broker/dead_letter.h"
#include "cli/ids.h"
#include "cli/status_document.h"
#include "decode/print.h"
#include "pipeline/connect.h"

enum { POLL_MS = 200, SILENCE_MS = 60000 };

/* What is done with each message of a topic. */
typedef void visit_message(struct findings *findings, const struct delivery *delivery);

static void copy(struct slice from, char *ret, size_t size) {
    text_format(ret, size, "%.*s", SLICE_TEXT(from));
}

static struct place place_of(const struct delivery *delivery, struct slice id) {
    struct place ret = {.partition = delivery->position.partition,
        .offset = delivery->position.offset,
        .unix_ms = delivery->position.published_unix_ms};
    text_format(ret.topic, sizeof ret.topic, "%s", delivery->position.topic);
    copy(id, ret.id, sizeof ret.id);
    return ret;
}

static struct slice header_of(const struct delivery *delivery, const char *name) {
    for (size_t i = 0; i < delivery->header_count; i++)
        if (slice_is_text(delivery->headers[i].name, name)) return delivery->headers[i].value;
    return slice_of(NULL, 0);
}

/* The place for one more of its kind, of which there were `count`; the oldest makes room. */
static void *next_place(void *list, size_t item_bytes, size_t count) {
    if (count < FINDINGS_MAX) return (char *)list + count * item_bytes;
    memmove(list, (char *)list + item_bytes, (FINDINGS_MAX - 1) * item_bytes);
    return (char *)list + (FINDINGS_MAX - 1) * item_bytes;
}

/* The payload as a document; NULL: it is none, or memory is short. */
static struct yaml_document *read_payload(struct slice payload) {
    char *text = NULL;
    size_t size = 0;
    struct problems problems;
    FILE *printed = open_memstream(&text, &size);
    if (printed == NULL) return NULL;
    print_message_payload(payload, printed);
    problems_init(&problems);
    struct yaml_document *ret = NULL;
    if (fclose(printed) == 0)
        ret = yaml_parse("message", slice_of(text, size), YAML_KEEP_VARIABLES, &problems);
    problems_fini(&problems);
    free(text);
    return ret;
}

static node root_of(const struct yaml_document *document) {
    return document != NULL ? yaml_root(document) : NULL;
}

static void copy_text(node at, const char *key, char *ret, size_t size) {
    text_format(ret, size, "%s", document_text(at, key));
}

/* ---- the kinds of messages ---- */

/* Only a message that has the bytes of the id is worth decoding. */
static bool may_name(struct slice payload, const char *asked) {
    return memmem(payload.data, payload.size, asked, strlen(asked)) != NULL;
}

static void visit_job(struct findings *findings, const struct delivery *delivery) {
    if (!may_name(delivery->payload, findings->asked)) return;
    struct yaml_document *document = read_payload(delivery->payload);
    node root = root_of(document), steps = document_get(root, "steps");
    struct slice id = slice_of_text(document_text(root, "id"));
    if (id_answers_to(id, findings->asked)) {
        struct found_job *job =
            next_place(findings->jobs, sizeof findings->jobs[0], findings->job_count++);
        *job = (struct found_job){.place = place_of(delivery, id)};
        copy_text(root, "reply_to", job->reply_to, sizeof job->reply_to);
        if (document_count(steps) > 0)
            copy_text(steps->values[0], "program", job->program, sizeof job->program);
    }
    yaml_destroy(document);
}

static void visit_cancel(struct findings *findings, const struct delivery *delivery) {
    if (!may_name(delivery->payload, findings->asked)) return;
    struct yaml_document *document = read_payload(delivery->payload);
    struct slice id = slice_of_text(document_text(root_of(document), "id"));
    if (id_answers_to(id, findings->asked)) {
        struct place *place =
            next_place(findings->cancels, sizeof findings->cancels[0], findings->cancel_count++);
        *place = place_of(delivery, id);
    }
    yaml_destroy(document);
}

static void read_error(struct slice payload, struct found_answer *ret) {
    struct yaml_document *document = read_payload(payload);
    node error = document_get(root_of(document), "error");
    copy_text(error, "code", ret->code, sizeof ret->code);
    copy_text(error, "message", ret->message, sizeof ret->message);
    copy_text(error, "fix", ret->fix, sizeof ret->fix);
    copy_text(error, "retry", ret->retry, sizeof ret->retry);
    yaml_destroy(document);
}

/* A result or a dead letter. */
static void visit_answer(struct findings *findings, const struct delivery *delivery) {
    struct dead_letter letter;
    struct slice id = header_of(delivery, "gpu-worker-job-id");
    if (!id_answers_to(id, findings->asked)) return;
    struct found_answer *answer =
        next_place(findings->answers, sizeof findings->answers[0], findings->answer_count++);
    *answer = (struct found_answer){.place = place_of(delivery, id),
        .is_dead_letter = dead_letter_read(delivery, &letter),
        .is_ok = slice_is_text(header_of(delivery, "gpu-worker-status"), "ok")};
    copy(header_of(delivery, "gpu-worker-source"), answer->source, sizeof answer->source);
    if (answer->is_dead_letter) {
        copy(letter.code, answer->code, sizeof answer->code);
        copy(header_of(delivery, DEAD_LETTER_MESSAGE), answer->message, sizeof answer->message);
    } else if (!answer->is_ok) {
        read_error(delivery->payload, answer);
    }
}

/* ---- topics ---- */

static enum err read_all(
    struct reader *reader, struct findings *findings, visit_message *visit, struct error *err) {
    uint64_t heard_ns = clock_ns();
    enum err code = ERR_OK;
    while (code == ERR_OK && !reader_has_caught_up(reader)) {
        struct delivery *delivery;
        code = reader_poll(reader, POLL_MS, &delivery, err);
        if (delivery != NULL) {
            heard_ns = clock_ns();
            if (!reader_is_late(reader, &delivery->position)) visit(findings, delivery);
            delivery_destroy(delivery);
        } else if (code == ERR_OK && clock_ns() - heard_ns > SILENCE_MS * 1000000ull) {
            code = error_set(err, ERR_BROKER, 0, "check that the brokers run, and try again",
                "no message came from the topic for %d s, but its end was not reached",
                SILENCE_MS / 1000);
        }
    }
    return code;
}

static enum err read_topic(const struct settings *settings, const char *topic,
    struct findings *findings, visit_message *visit, struct error *err) {
    struct reader *reader = NULL;
    if (topic[0] == 0) return ERR_OK;
    enum err code = connect_reader(settings, topic, findings->since_ms, &reader, err);
    if (code == ERR_OK) code = read_all(reader, findings, visit, err);
    reader_destroy(reader);
    return code;
}

static bool is_read_already(
    const struct settings *settings, const struct findings *findings, size_t job) {
    const char *topic = findings->jobs[job].reply_to;
    bool ret = strcmp(topic, settings->topics.results) == 0;
    for (size_t i = 0; i < job && !ret; i++) ret = strcmp(topic, findings->jobs[i].reply_to) == 0;
    return ret;
}

static size_t kept(size_t count) {
    return count < FINDINGS_MAX ? count : FINDINGS_MAX;
}

/* Only topics of topics.reply_to get results. */
static enum err read_reply_topics(
    const struct settings *settings, struct findings *findings, struct error *err) {
    enum err code = ERR_OK;
    for (size_t i = 0; i < kept(findings->job_count) && code == ERR_OK; i++) {
        bool is_allowed = false;
        for (size_t k = 0; k < settings->topics.reply_to.count; k++)
            is_allowed = is_allowed || strcmp(settings->topics.reply_to.items[k],
                                           findings->jobs[i].reply_to) == 0;
        if (is_allowed && !is_read_already(settings, findings, i))
            code = read_topic(settings, findings->jobs[i].reply_to, findings, visit_answer, err);
    }
    return code;
}

/* Of the jobs without an answer. */
static enum err ask_group(
    const struct settings *settings, struct findings *findings, struct error *err) {
    enum err code = ERR_OK;
    for (size_t i = 0; i < kept(findings->job_count) && code == ERR_OK; i++) {
        struct found_job *job = &findings->jobs[i];
        const struct position position = {.topic = job->place.topic,
            .partition = job->place.partition,
            .offset = job->place.offset};
        if (findings_answer_of(findings, &job->place) != NULL) continue;
        code = connect_committed(settings, &position, &job->group, err);
        job->is_group_known = code == ERR_OK;
    }
    return code;
}

enum err findings_read(const struct settings *settings, const char *asked, uint64_t since_ms,
    struct findings *ret, struct error *err) {
    *ret = (struct findings){.asked = asked, .since_ms = since_ms};
    enum err code = ERR_OK;
    /* Jobs first: what is answered meanwhile is then seen as answered. */
    for (size_t i = 0; i < settings->topics.jobs.count && code == ERR_OK; i++)
        code = read_topic(settings, settings->topics.jobs.items[i], ret, visit_job, err);
    if (code == ERR_OK)
        code = read_topic(settings, settings->topics.control, ret, visit_cancel, err);
    if (code == ERR_OK)
        code = read_topic(settings, settings->topics.results, ret, visit_answer, err);
    if (code == ERR_OK) code = read_reply_topics(settings, ret, err);
    if (code == ERR_OK)
        code = read_topic(settings, settings->topics.dead_letters, ret, visit_answer, err);
    if (code == ERR_OK) code = ask_group(settings, ret, err);
    return code;
}

const struct found_answer *findings_answer_of(
    const struct findings *findings, const struct place *place) {
    char source[FINDINGS_TEXT_BYTES];
    text_format(source, sizeof source, "%s/%" PRId32 "/%" PRId64, place->topic, place->partition,
        place->offset);
    for (size_t i = 0; i < kept(findings->answer_count); i++)
        if (strcmp(findings->answers[i].source, source) == 0) return &findings->answers[i];
    return NULL;
}
