#include "supervise/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

enum { EVERY_MS = 500 };
#define CLEAR "\r\x1b[K"

void progress_init(struct progress *progress, bool is_wanted, uint64_t now_ns) {
    *progress = (struct progress){.is_shown = is_wanted && isatty(STDERR_FILENO) == 1,
        .due_ns = now_ns + EVERY_MS * 1000000ull,
        .last_ns = now_ns};
}

static void count_answers(const struct ledger *ledger, uint64_t *jobs, uint64_t *failed) {
    char name[LEDGER_NAME_BYTES];
    uint64_t outcomes[ERR_COUNT];
    for (uint32_t i = 0; ledger_read_program(ledger, i, name, outcomes); i++)
        for (size_t code = 0; code < ERR_COUNT; code++) {
            *jobs += outcomes[code];
            if (code != ERR_OK) *failed += outcomes[code];
        }
}

void progress_show(
    struct progress *progress, const struct executor *executors, size_t count, uint64_t now_ns) {
    uint64_t jobs = 0, failed = 0;
    if (!progress->is_shown || now_ns < progress->due_ns) return;
    for (size_t i = 0; i < count; i++) count_answers(&executors[i].board->ledger, &jobs, &failed);
    double seconds = (double)(now_ns - progress->last_ns) / 1e9;
    uint64_t more = jobs > progress->last_jobs ? jobs - progress->last_jobs : 0;
    fprintf(stderr, CLEAR "%" PRIu64 " jobs done, %" PRIu64 " failed, %.0f a second\r", jobs,
        failed, (double)more / seconds);
    fflush(stderr);
    progress->last_jobs = jobs;
    progress->last_ns = now_ns;
    progress->due_ns = now_ns + EVERY_MS * 1000000ull;
}

void progress_fini(struct progress *progress) {
    if (!progress->is_shown) return;
    fputs(CLEAR, stderr);
    fflush(stderr);
}
