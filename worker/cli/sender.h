/**
 * Sends messages for a command: many are on their way at once, and each is held until the brokers
 * have it or refuse it.
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
void sender_close(struct sender *sender); /* NULL is fine; what is on its way is given up */

/**
 * Copies `message` and sends it. Waits while too many are on their way. ERR_NO_MEMORY; ERR_BROKER
 * where brokers took none of them for 45 s.
 */
MUST_CHECK enum err sender_send(
    struct sender *sender, const char *topic, const struct delivery *message, struct error *err);

/** Waits until all are taken or refused. ERR_BROKER as above; ERR_PUBLISH_REFUSED: the first
 * refusal.
 */
MUST_CHECK enum err sender_finish(struct sender *sender, struct error *err);

/** Where the brokers put the message that they took last. */
void sender_last_place(const struct sender *sender, int32_t *partition, int64_t *offset);

uint64_t sender_sent_count(const struct sender *sender); /* taken by the brokers */

#endif
