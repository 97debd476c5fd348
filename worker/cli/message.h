/**
 * Prints a message that was read from a topic or from a file of dead letters.
 * Threads: one at a time.
 */
#ifndef CLI_MESSAGE_H
#define CLI_MESSAGE_H

#include "broker/delivery.h"

/**
 * To standard output, and flushes it: as YAML after comments with its place, key and headers; or
 * one line of JSON: {"topic", "partition", "offset", "published_ms", "key", "headers", "message"}.
 */
void message_print(const struct delivery *delivery, bool is_json);

/** Messages of no topic: what is decoded from a file. As YAML, each begins with "---". */
void message_print_payload(struct slice payload, bool is_json);

#endif
