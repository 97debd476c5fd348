#include "base/log_line.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"

/*
 * Log lines do without base/json_writer.h: a stream takes memory and locks, which
 * invariant_broken() must not count on, and each field is cut to a size of its own.
 *
 * Sizes are of escaped text. A whole line is at most what a pipe takes in one piece, 4096 bytes.
 */
enum { NAME_BYTES = 80, TEXT_BYTES = 600, MESSAGE_BYTES = 1400, LINE_BYTES = 4096 };

_Static_assert(3 * TEXT_BYTES + 3 * NAME_BYTES + MESSAGE_BYTES + 400 < LINE_BYTES,
    "all fields and the message fit");

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

/* Appends a character as a number. */
static size_t append_number(char *line, size_t used, size_t size, unsigned c) {
    bool is_short = line_format != LOG_JSON && c < 0x100;
    int written = snprintf(line + used, size - used, is_short ? "\\x%02x" : "\\u%04x", c);
    return used + (size_t)written;
}

/*
 * Appends `text`, which is UTF-8, escaped for the format. It never splits a character, and always
 * leaves room for the end of the line.
 */
static size_t append_escaped(char *line, size_t used, size_t size, struct slice left) {
    while (left.size > 0 && used + 12 < size) {
        struct slice c;
        unsigned number;
        if (!slice_take(&left, slice_utf8_first(left), &c) || c.size == 0) break;
        if (text_hazard(c, &number) > 0) {
            used = append_number(line, used, size, number);
        } else {
            bool is_special = c.data[0] == '"' || c.data[0] == '\\';
            if (line_format == LOG_JSON && is_special) line[used++] = '\\';
            memcpy(line + used, c.data, c.size);
            used += c.size;
        }
    }
    return used;
}

/* `,"name":"value"`; nothing for an empty value. */
static size_t append_field(
    char *line, size_t used, size_t value_max, const char *name, struct slice value) {
    if (value.size == 0) return used;
    used += (size_t)sprintf(line + used, ",\"%s\":\"", name);
    used = append_escaped(line, used, used + value_max, value);
    line[used++] = '"';
    return used;
}

static struct slice slice_or_none(const char *text) {
    return text != NULL ? slice_of_text(text) : slice_of(NULL, 0);
}

static size_t append_fields(char *line, size_t used, const struct log_fields *fields) {
    used = append_field(line, used, NAME_BYTES, "event", slice_or_none(fields->event));
    used = append_field(line, used, NAME_BYTES, "code", slice_or_none(fields->code));
    used = append_field(line, used, TEXT_BYTES, "job", fields->job);
    used = append_field(line, used, TEXT_BYTES, "topic", slice_or_none(fields->topic));
    if (fields->topic != NULL && fields->topic[0] != 0)
        used += (size_t)sprintf(line + used, ",\"partition\":%" PRId32 ",\"offset\":%" PRId64,
            fields->partition, fields->offset);
    used = append_field(line, used, TEXT_BYTES, "program", fields->program);
    return append_field(line, used, NAME_BYTES, "trace_id", fields->trace_id);
}

static void write_line(enum log_level level, const struct log_fields *fields, const char *text) {
    static const char *const names[] = {
        [LOG_DEBUG] = "debug", [LOG_INFO] = "info", [LOG_WARN] = "warn", [LOG_ERROR] = "error"};
    char stamp[32], line[LINE_BYTES];
    struct timespec now;
    struct tm utc;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    size_t n = strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(stamp + n, sizeof stamp - n, ".%03dZ", (int)(now.tv_nsec / 1000000));

    size_t used;
    bool is_json = line_format == LOG_JSON;
    if (is_json) {
        used = (size_t)sprintf(line, "{\"time\":\"%s\",\"level\":\"%s\"", stamp, names[level]);
        if (fields != NULL) used = append_fields(line, used, fields);
        used += (size_t)sprintf(line + used, ",\"message\":\"");
    } else {
        used = (size_t)sprintf(line, "%s %s ", stamp, names[level]);
    }
    used = append_escaped(line, used, used + MESSAGE_BYTES, slice_of_text(text));
    used += (size_t)sprintf(line + used, "%s", is_json ? "\"}\n" : "\n");
    /*
     * One write, so that lines of threads and processes do not mix. A failure cannot be reported
     * anywhere.
     */
    ssize_t ignored = write(STDERR_FILENO, line, used);
    (void)ignored;
}

__attribute__((format(printf, 3, 0))) static void write_formatted(
    enum log_level level, const struct log_fields *fields, const char *format, va_list args) {
    char text[1200];
    text_vformat(text, sizeof text, format, args);
    write_line(level, fields, text);
}

void log_line(enum log_level level, const char *format, ...) {
    if (!log_is_on(level)) return;
    va_list args;
    va_start(args, format);
    write_formatted(level, NULL, format, args);
    va_end(args);
}

void log_event(enum log_level level, const struct log_fields *fields, const char *format, ...) {
    if (!log_is_on(level)) return;
    va_list args;
    va_start(args, format);
    write_formatted(level, fields, format, args);
    va_end(args);
}

bool log_fatal_json(const char *code, const char *text) {
    if (line_format != LOG_JSON) return false;
    write_line(LOG_ERROR, &(struct log_fields){.event = "fatal", .code = code}, text);
    return true;
}
