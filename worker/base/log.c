#include "base/log.h"

void log_error(enum log_level level, const char *what, const struct error *err) {
    log_line(level, "%s: %s: %s%s%s", what, err_code(err->code), err->message,
        err->fix[0] != 0 ? "; " : "", err->fix);
}
