#include "base/error.h"

#include <stdarg.h>

#include "base/invariant.h"
#include "base/text.h"

static const struct err_info {
    const char *code;
    enum retry retry;
    enum err_kind kind;
    enum cli_exit exit;
} err_infos[] = {
#define X(symbol, code, retry, kind, exit)                                                         \
    [ERR_##symbol] = {code, RETRY_##retry, ERR_KIND_##kind, CLI_##exit},
    ERR_LIST(X)
#undef X
};

static const struct err_info *info_of(enum err code) {
    INVARIANT(code < ERR_COUNT, "a code is in the table");
    return &err_infos[code];
}

__attribute__((format(printf, 5, 0))) static void set(struct error *err, enum err code, int native,
    const char *fix, const char *format, va_list args) {
    INVARIANT(code != ERR_OK, "an error has a code");
    err->code = code;
    err->native = native;
    err->trouble = NULL;
    text_format(err->fix, sizeof err->fix, "%s", fix);
    text_vformat(err->message, sizeof err->message, format, args);
    /* Errors quote what strangers wrote, and people read them. */
    text_tame(err->message);
    text_tame(err->fix);
}

enum err error_set(
    struct error *err, enum err code, int native, const char *fix, const char *format, ...) {
    va_list args;
    va_start(args, format);
    set(err, code, native, fix, format, args);
    va_end(args);
    return code;
}

enum err error_no_memory(struct error *err, const char *format, ...) {
    va_list args;
    va_start(args, format);
    set(err, ERR_NO_MEMORY, 0, "give the process more memory", format, args);
    va_end(args);
    return ERR_NO_MEMORY;
}

void error_conceal(struct error *err) {
    if (err->trouble == NULL) return;
    text_format(
        err->message, sizeof err->message, "the worker itself has a problem: %s", err->trouble);
    text_format(
        err->fix, sizeof err->fix, "send it again later, or tell the operator of the worker");
}

const char *err_code(enum err code) {
    return info_of(code)->code;
}

enum retry err_retry(enum err code) {
    return info_of(code)->retry;
}

const char *err_retry_name(enum err code) {
    static const char *const names[] = {
        [RETRY_NEVER] = "never", [RETRY_WORKER] = "worker", [RETRY_SENDER] = "sender"};
    return names[err_retry(code)];
}

static bool is_of_kind(enum err code, enum err_kind kind) {
    return code < ERR_COUNT && err_infos[code].kind == kind;
}

bool err_is_shortage(enum err code) {
    return is_of_kind(code, ERR_KIND_SHORTAGE);
}

bool err_is_sticky(enum err code) {
    return is_of_kind(code, ERR_KIND_STICKY);
}

enum cli_exit err_exit(enum err code) {
    return info_of(code)->exit;
}
