#include "cli/sender.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "pipeline/connect.h"

enum {
    ON_THEIR_WAY_MAX = 1000,
    SERVE_MS = 100,
    PATIENCE_MS = 45000 /* longer than the client waits for a missing topic */
};

struct sender {
    struct sink *sink;
    uint64_t on_their_way, sent;
    int32_t partition; /* of the last accepted message */
    int64_t offset;
    enum err code; /* of the first refused message */
    struct error err;
};

struct sending {
    struct record record; /* first, so that on_settled finds the rest */
    struct sender *sender;
    struct delivery *message;
    char topic[];
};

enum err sender_open(const struct settings *settings, struct sender **ret, struct error *err) {
    struct sender *sender = calloc(1, sizeof *sender);
    if (sender == NULL) return error_no_memory(err, "no memory to send");
    enum err code = connect_producer(settings, &sender->sink, err);
    if (code == ERR_OK) *ret = sender;
    else free(sender);
    return code;
}

void sender_close(struct sender *sender) {
    if (sender == NULL) return;
    sink_destroy(sender->sink);
    free(sender);
}

static void on_settled(struct record *record, enum err code, const struct error *err) {
    struct sending *sending = (struct sending *)record;
    struct sender *sender = sending->sender;
    sender->on_their_way--;
    if (code == ERR_OK) {
        sender->sent++;
        sender->partition = record->partition;
        sender->offset = record->offset;
    } else if (sender->code == ERR_OK) {
        sender->code = code;
        sender->err = *err;
    }
    delivery_destroy(sending->message);
    free(sending);
}

/* Waits until at most `max` are under way. */
static enum err wait_for(struct sender *sender, uint64_t max, struct error *err) {
    uint64_t left = sender->on_their_way, since_ns = clock_ns();
    while (sender->on_their_way > max) {
        sink_serve(sender->sink, SERVE_MS);
        if (sender->on_their_way < left) {
            left = sender->on_their_way;
            since_ns = clock_ns();
        } else if (clock_ns() - since_ns > PATIENCE_MS * 1000000ull) {
            return error_set(err, ERR_BROKER, 0,
                "check kafka.bootstrap_servers, and that the brokers run",
                "brokers took none of %" PRIu64 " messages for %d s", left, PATIENCE_MS / 1000);
        }
    }
    return ERR_OK;
}

enum err sender_send(
    struct sender *sender, const char *topic, const struct delivery *message, struct error *err) {
    enum err code = wait_for(sender, ON_THEIR_WAY_MAX, err);
    if (code != ERR_OK) return code;
    struct delivery *copy = delivery_create(message);
    struct sending *sending = malloc(sizeof *sending + strlen(topic) + 1);
    if (copy == NULL || sending == NULL) {
        delivery_destroy(copy);
        free(sending);
        return error_no_memory(err, "no memory to send");
    }
    *sending = (struct sending){.record = {.topic = sending->topic,
                                    .has_key = copy->has_key,
                                    .key = copy->key,
                                    .payload = copy->payload,
                                    .header_count = copy->header_count,
                                    .headers = copy->headers,
                                    .on_settled = on_settled},
        .sender = sender,
        .message = copy};
    memcpy(sending->topic, topic, strlen(topic) + 1);
    sender->on_their_way++;
    sink_send(sender->sink, &sending->record);
    return ERR_OK;
}

enum err sender_finish(struct sender *sender, struct error *err) {
    enum err code = wait_for(sender, 0, err);
    if (code == ERR_OK && sender->code != ERR_OK) *err = sender->err;
    return code != ERR_OK ? code : sender->code;
}

void sender_last_place(const struct sender *sender, int32_t *partition, int64_t *offset) {
    *partition = sender->partition;
    *offset = sender->offset;
}

uint64_t sender_sent_count(const struct sender *sender) {
    return sender->sent;
}
