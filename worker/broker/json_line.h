/**
 * A dead letter as one line of JSON, for people and for jq; file_sink.h describes it.
 * Threads: pure.
 */
#ifndef BROKER_JSON_LINE_H
#define BROKER_JSON_LINE_H

#include "broker/delivery.h"
#include "broker/sink.h"

/**
 * The line with its newline. The caller frees it with free(); data is NULL when memory is short.
 */
struct slice json_line_of(const struct record *record);

/**
 * Reads such a line, which comes from outside, in place: `line` is overwritten, and what *ret has
 * points into it and into `headers`. Other keys, and other orders of these, are refused.
 * ERR_BAD_MESSAGE, with the byte.
 */
MUST_CHECK enum err json_line_read(uint8_t *line, size_t size,
    struct header headers[static DELIVERY_HEADERS_MAX], struct delivery *ret, struct error *err);

#endif
