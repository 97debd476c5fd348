/**
 * Sends messages for a command: many are under way at once, and each is kept until the brokers have
 * accepted or refused it.
 *
 * Lifetime: sender_open() to sender_close(). Threads: one at a time.
 */
#ifndef CLI_SENDER_H
#define CLI_SENDER_H

#include "broker/delivery.h"
#include "settings/settings.h"

struct sender;

MUST_CHECK enum err sender_open(
    const struct settings *settings, struct sender **ret, struct error *err);
void sender_close(struct sender *sender); /* NULL is fine; messages under way are given up */

/**
 * Copies `message` and sends it. Waits while too many are under way. Errors: ERR_NO_MEMORY;
 * ERR_BROKER, if the brokers accepted none for 45 s.
 */
MUST_CHECK enum err sender_send(
    struct sender *sender, const char *topic, const struct delivery *message, struct error *err);

/**
 * Waits until all are accepted or refused. Errors: ERR_BROKER as above; ERR_PUBLISH_REFUSED for the
 * first refusal.
 */
MUST_CHECK enum err sender_finish(struct sender *sender, struct error *err);

/** The position of the message that was accepted last. */
void sender_last_place(const struct sender *sender, int32_t *partition, int64_t *offset);

uint64_t sender_sent_count(const struct sender *sender); /* accepted by the brokers */

#endif
