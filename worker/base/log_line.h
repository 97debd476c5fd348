/**
 * Log lines on standard error, one for each event: `2026-01-31T12:00:00.000Z info lane ready
 * lane=3`. As JSON (schemas/log.schema.json) a line also has fields, for programs.
 *
 * Text from outside is made valid UTF-8 (text.h) and escaped, so that it cannot break the line.
 * Threads: any; each line is one write. Call log_init() before the second thread starts.
 */
#ifndef BASE_LOG_LINE_H
#define BASE_LOG_LINE_H

#include <stdint.h>

#include "base/slice.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR, LOG_OFF };
enum log_format { LOG_TEXT, LOG_JSON };

void log_init(enum log_level level, enum log_format format);
void log_set_level(enum log_level level); /* at any time */
bool log_is_on(enum log_level level);

/** What a line is about. What is NULL or empty is not known, and has no field. */
struct log_fields {
    const char *event; /* what happened, in one word; constant */
    const char *code;  /* of an error */
    const char *topic; /* with `partition` and `offset` of a message */
    int32_t partition;
    int64_t offset;
    struct slice job, program, trace_id; /* trace_id: as traceparent has it */
};

#define LOG_EVENT(name)                                                                            \
    &(const struct log_fields) {                                                                   \
        .event = (name)                                                                            \
    }

/** A line without fields. */
__attribute__((format(printf, 2, 3))) void log_line(enum log_level level, const char *format, ...);

/** Texts of fields that are too long are cut. */
__attribute__((format(printf, 3, 4))) void log_event(
    enum log_level level, const struct log_fields *fields, const char *format, ...);

/**
 * The last line of a process, whatever the level. False, and nothing is written, unless the format
 * is JSON.
 */
bool log_fatal_json(const char *code, const char *text);

#endif
