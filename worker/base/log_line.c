#include "base/log_line.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/slice.h"
#include "base/text.h"

static atomic_int level_min = LOG_INFO; /* relaxed: nothing is published with it */
static enum log_format line_format = LOG_TEXT;

void log_init(enum log_level level, enum log_format format) {
    log_set_level(level);
    line_format = format;
}

void log_set_level(enum log_level level) {
    atomic_store_explicit(&level_min, level, memory_order_relaxed);
}

bool log_is_on(enum log_level level) {
    return (int)level >= atomic_load_explicit(&level_min, memory_order_relaxed);
}

/* Appends a control character as a number. */
static size_t append_number(char *line, size_t used, size_t size, unsigned c) {
    int written = line_format == LOG_JSON ? snprintf(line + used, size - used, "\\u%04x", c)
                                          : snprintf(line + used, size - used, "\\x%02x", c);
    return used + (size_t)written;
}

/*
 * Appends `text`, which is UTF-8, escaped for the format. It never splits a character, and always
 * leaves room for the end of the line.
 */
static size_t append_escaped(char *line, size_t used, size_t size, const char *text) {
    struct slice left = slice_of_text(text);
    while (left.size > 0 && used + 12 < size) {
        struct slice c;
        if (!slice_take(&left, slice_utf8_first(left), &c) || c.size == 0) break;
        if (c.data[0] < 0x20 || c.data[0] == 0x7f) {
            used = append_number(line, used, size, c.data[0]);
        } else if (c.data[0] == 0xc2 && c.data[1] < 0xa0) {
            used = append_number(line, used, size, c.data[1]); /* terminals act on these, too */
        } else {
            bool is_special = c.data[0] == '"' || c.data[0] == '\\';
            if (line_format == LOG_JSON && is_special) line[used++] = '\\';
            memcpy(line + used, c.data, c.size);
            used += c.size;
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
    /*
     * One write, so that lines of threads and processes do not mix. A failure cannot be reported
     * anywhere.
     */
    ssize_t ignored = write(STDERR_FILENO, line, used);
    (void)ignored;
}

void log_line(enum log_level level, const char *format, ...) {
    if (!log_is_on(level)) return;
    char text[1200];
    va_list args;
    va_start(args, format);
    text_vformat(text, sizeof text, format, args);
    va_end(args);
    write_line(level, text);
}
