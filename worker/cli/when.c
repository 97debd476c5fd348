#include "cli/when.h"

#include <string.h>
#include <time.h>

#include "base/number.h"

static bool read_ago(const char *text, uint64_t now_ms, uint64_t *ret) {
    static const struct {
        const char *unit;
        uint64_t ms;
    } units[] = {{"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}};
    uint64_t count, ago_ms;
    size_t digits = number_read(text, &count);
    for (size_t i = 0; digits > 0 && i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(text + digits, units[i].unit) != 0) continue;
        if (__builtin_mul_overflow(count, units[i].ms, &ago_ms) || ago_ms > now_ms) ago_ms = now_ms;
        *ret = now_ms - ago_ms;
        return true;
    }
    return false;
}

static bool read_date(const char *text, uint64_t *ret) {
    struct tm date = {0};
    const char *end = strptime(text, "%Y-%m-%dT%H:%M:%SZ", &date);
    if (end == NULL || *end != 0) return false;
    int day = date.tm_mday;
    time_t seconds = timegm(&date);
    if (seconds < 0 || date.tm_mday != day) return false; /* there is no February 30 */
    *ret = (uint64_t)seconds * 1000;
    return true;
}

bool when_read(const char *text, uint64_t now_ms, uint64_t *ret) {
    return read_ago(text, now_ms, ret) || read_date(text, ret);
}
