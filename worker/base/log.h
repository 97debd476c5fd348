/**
 * Errors in the log (log_line.h), on one line each.
 *
 * A failure is logged once, by the code that decides what happens next: in pipeline/, quarantine/,
 * supervise/, cli/ and metrics/reporter.c. All other code returns errors and does not log. Threads:
 * any.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/error.h"
#include "base/log_line.h"

/** `what`, then the error's code, message and fix. */
void log_error(enum log_level level, const char *what, const struct error *err);

/** As log_error(), with more fields than the code. */
void log_error_event(enum log_level level, const struct log_fields *fields, const char *what,
    const struct error *err);

#endif
