#include "cli/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"

enum { SAID_BYTES = 1400 };

void cli_print_exits(void) {
    printf("\nexit codes:\n");
#define X(symbol, code, when) printf("  %d  %s\n", code, when);
    CLI_EXIT_LIST(X)
#undef X
}

int cli_help(const char *usage) {
    printf("%s", usage);
    cli_print_exits();
    return CLI_OK;
}

/* `code` of an error; NULL: it is none. */
__attribute__((format(printf, 3, 0))) static void say(
    const char *command, const char *code, const char *format, va_list args, const char *end) {
    char text[SAID_BYTES];
    text_vformat(text, sizeof text, format, args);
    if (log_fatal_json(code, text)) return;
    fprintf(stderr, "gpu-worker %s: %s%s\n", command, text, end);
}

int cli_fail(enum cli_exit code, const char *command, const char *format, ...) {
    va_list args;
    va_start(args, format);
    say(command, NULL, format, args, "");
    va_end(args);
    return (int)code;
}

int cli_finish(const char *command, int code) {
    bool is_lost = ferror(stdout) != 0;
    if (fflush(stdout) != 0)
        return code != CLI_OK
                   ? code
                   : cli_fail(CLI_FAILED, command, "standard output: %s", strerror(errno));
    if (code != CLI_OK || !is_lost) return code;
    return cli_fail(CLI_FAILED, command, "standard output: some of it could not be written");
}

__attribute__((format(printf, 3, 4))) static void say_code(
    const char *command, const char *code, const char *format, ...) {
    va_list args;
    va_start(args, format);
    say(command, code, format, args, "");
    va_end(args);
}

static int fail_with(enum cli_exit code, const char *command, const struct error *err) {
    say_code(command, err_code(err->code), "%s%s%s", err->message, err->fix[0] != 0 ? "; " : "",
        err->fix);
    return (int)code;
}

int cli_fail_error(const char *command, const struct error *err) {
    return fail_with(err_exit(err->code), command, err);
}

int cli_fail_sending(const char *command, const struct error *err) {
    return fail_with(err->code == ERR_BROKER ? CLI_BROKER : CLI_FAILED, command, err);
}

int cli_fail_usage(const char *command, const char *format, ...) {
    char end[64];
    va_list args;
    snprintf(end, sizeof end, "; see gpu-worker %s --help", command);
    va_start(args, format);
    say(command, NULL, format, args, end);
    va_end(args);
    return CLI_USAGE;
}

int cli_fail_when(const char *command, const char *option, const char *given) {
    return cli_fail_usage(command,
        "--%s is a time such as 2026-11-21T08:30:00Z, 90s, 15m, 2h or 7d, not '%s'", option, given);
}

int cli_fail_problems(const char *command, const struct problems *problems) {
    char prefix[64];
    bool is_told = false;
    for (size_t i = 0; i < problems->count; i++) {
        const struct problem *problem = &problems->items[i];
        char text[SAID_BYTES];
        text_format(text, sizeof text, "%s: %s%s%s", problem->where, problem->what,
            problem->fix[0] != 0 ? "; " : "", problem->fix);
        is_told = log_fatal_json(err_code(ERR_CONFIG), text);
    }
    if (is_told) return CLI_CONFIG;
    snprintf(prefix, sizeof prefix, "gpu-worker %s", command);
    problems_print(problems, prefix);
    return CLI_CONFIG;
}

bool cli_read_driver(const char *name, enum driver_choice *ret) {
    if (name == NULL) return true;
    *ret = strcmp(name, "cpu") == 0 ? DRIVER_CPU : DRIVER_CUDA;
    return *ret == DRIVER_CPU || strcmp(name, "cuda") == 0;
}

bool cli_override_driver(const char *name, struct settings *settings) {
    return cli_read_driver(name, &settings->driver);
}

int cli_load_settings(const char *command, const char *path, struct settings *settings) {
    struct problems problems;
    int code = CLI_OK;
    settings_init(settings);
    problems_init(&problems);
    settings_load(settings, path, &problems);
    if (problems_any(&problems)) {
        code = cli_fail_problems(command, &problems);
        settings_fini(settings);
    }
    problems_fini(&problems);
    return code;
}
