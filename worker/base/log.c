#include "base/log.h"

void log_error_event(enum log_level level, const struct log_fields *fields, const char *what,
    const struct error *err) {
    struct log_fields with_code = *fields;
    with_code.code = err_code(err->code);
    log_event(level, &with_code, "%s: %s: %s%s%s", what, err_code(err->code), err->message,
        err->fix[0] != 0 ? "; " : "", err->fix);
}

void log_error(enum log_level level, const char *what, const struct error *err) {
    log_error_event(level, &(struct log_fields){0}, what, err);
}
