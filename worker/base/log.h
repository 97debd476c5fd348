/**
 * Errors in the log (log_line.h), on one line each.
 *
 * A failure is logged once, where it is decided what happens next: in pipeline/, quarantine/,
 * supervise/, cli/ and broker/connect.h. Stages return errors and do not log. Threads: any.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/error.h"
#include "base/log_line.h"

/** `what`, then the error's code, message and fix. */
void log_error(enum log_level level, const char *what, const struct error *err);

#endif
