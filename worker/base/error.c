#include "base/error.h"

#include <stdarg.h>

#include "base/invariant.h"
#include "base/text.h"

static const struct {
    const char *code;
    enum retry retry;
} err_infos[] = {
#define X(symbol, code, retry) [ERR_##symbol] = {code, RETRY_##retry},
    ERR_LIST(X)
#undef X
};

enum err error_set(
    struct error *err, enum err code, int native, const char *fix, const char *format, ...) {
    INVARIANT(code != ERR_OK, "an error has a code");
    err->code = code;
    err->native = native;
    err->trouble = NULL;
    text_format(err->fix, sizeof err->fix, "%s", fix);
    va_list args;
    va_start(args, format);
    text_vformat(err->message, sizeof err->message, format, args);
    va_end(args);
    return code;
}

const char *err_code(enum err code) {
    INVARIANT(code < ERR_COUNT, "a code is one of the table");
    return err_infos[code].code;
}

void error_conceal(struct error *err) {
    if (err->trouble == NULL) return;
    text_format(
        err->message, sizeof err->message, "the worker has trouble of its own: %s", err->trouble);
    text_format(err->fix, sizeof err->fix, "send it again later, or tell who runs the worker");
}

enum retry err_retry(enum err code) {
    INVARIANT(code < ERR_COUNT, "a code is one of the table");
    return err_infos[code].retry;
}

const char *err_retry_name(enum err code) {
    static const char *const names[] = {
        [RETRY_NEVER] = "never", [RETRY_WORKER] = "worker", [RETRY_SENDER] = "sender"};
    return names[err_retry(code)];
}

bool err_is_shortage(enum err code) {
    return code == ERR_DEVICE_MEMORY || code == ERR_NO_MEMORY;
}

bool err_is_sticky(enum err code) {
    return code >= ERR_GPU_ILLEGAL_ADDRESS && code <= ERR_GPU_FAULT;
}
