/**
 * A dead letter as one line of JSON, for people and for jq; file_sink.h describes it.
 * Threads: pure.
 */
#ifndef BROKER_JSON_LINE_H
#define BROKER_JSON_LINE_H

#include "broker/sink.h"

/**
 * The line with its newline. The caller frees it with free(); data is NULL when memory is short.
 */
struct slice json_line_of(const struct record *record);

#endif
