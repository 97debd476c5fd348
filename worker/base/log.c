#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static enum log_level level_min = LOG_INFO;
static enum log_format line_format = LOG_TEXT;

void log_init(enum log_level level, enum log_format format) {
    level_min = level;
    line_format = format;
}

bool log_is_on(enum log_level level) {
    return level >= level_min;
}

/* Appends `text`, escaped for the format; always leaves room for the end of the line. */
static size_t append_escaped(char *line, size_t used, size_t size, const char *text) {
    for (; *text != 0 && used + 8 < size; text++) {
        unsigned char c = (unsigned char)*text;
        if (c < 0x20 || c == 0x7f) {
            if (line_format == LOG_JSON)
                used += (size_t)snprintf(line + used, size - used, "\\u%04x", c);
            else used += (size_t)snprintf(line + used, size - used, "\\x%02x", c);
        } else {
            if (line_format == LOG_JSON && (c == '"' || c == '\\')) line[used++] = '\\';
            line[used++] = (char)c;
        }
    }
    return used;
}

static void write_line(enum log_level level, const char *text) {
    static const char *const names[] = {
        [LOG_DEBUG] = "debug", [LOG_INFO] = "info", [LOG_WARN] = "warn", [LOG_ERROR] = "error"};
    char stamp[32], line[1400];
    struct timespec now;
    struct tm utc;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    size_t n = strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(stamp + n, sizeof stamp - n, ".%03dZ", (int)(now.tv_nsec / 1000000));

    size_t used;
    if (line_format == LOG_JSON)
        used = (size_t)snprintf(line, sizeof line,
            "{\"time\":\"%s\",\"level\":\"%s\",\"message\":\"", stamp, names[level]);
    else used = (size_t)snprintf(line, sizeof line, "%s %s ", stamp, names[level]);
    used = append_escaped(line, used, sizeof line, text);
    used += (size_t)snprintf(
        line + used, sizeof line - used, "%s", line_format == LOG_JSON ? "\"}\n" : "\n");
    /* One write: lines of many threads and processes never mix. Nowhere to report its failure. */
    ssize_t ignored = write(STDERR_FILENO, line, used);
    (void)ignored;
}

void log_line(enum log_level level, const char *format, ...) {
    if (!log_is_on(level)) return;
    char text[1200];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    write_line(level, text);
}

void log_error(enum log_level level, const char *what, const struct error *err) {
    log_line(level, "%s: %s: %s%s%s", what, err_code(err->code), err->message,
        err->fix[0] != 0 ? "; " : "", err->fix);
}
