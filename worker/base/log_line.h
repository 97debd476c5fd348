/**
 * One line a fact, to standard error: `2026-01-31T12:00:00.000Z info lane ready lane=3`.
 *
 * Text from outside is mended (text.h) and escaped, so that a line
 * is UTF-8 and stays a line.
 * Threads: any; a line is written in one piece. log_init() comes before the second thread.
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
