/**
 * Log lines on standard error, one for each event: `2026-01-31T12:00:00.000Z info lane ready
 * lane=3`.
 *
 * Text from outside is made valid UTF-8 (text.h) and escaped, so that it cannot break the line.
 * Threads: any; each line is one write. Call log_init() before the second thread starts.
 */
#ifndef BASE_LOG_LINE_H
#define BASE_LOG_LINE_H

#include <stdbool.h>

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR, LOG_OFF };
enum log_format { LOG_TEXT, LOG_JSON };

void log_init(enum log_level level, enum log_format format);
void log_set_level(enum log_level level); /* at any time */
bool log_is_on(enum log_level level);

__attribute__((format(printf, 2, 3))) void log_line(enum log_level level, const char *format, ...);

#endif
