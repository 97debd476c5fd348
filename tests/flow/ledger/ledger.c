/**
 * y = 3 x + 1. `triple` also appends x to the file that GPU_WORKER_TEST_LEDGER names: what ran is
 * known even of a worker that was killed. `held` does so where there is such a name, and waits
 * until the file is there that GPU_WORKER_TEST_GATE names; `paced` takes its time while it is not.
 * For the CPU alone.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "kernel.h"

static void note(const char *ledger, uint32_t x) {
    int file = open(ledger, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (file < 0 || write(file, &x, sizeof x) != sizeof x) abort();
    close(file);
}

KERNEL(triple, (const uint32_t *)x, (uint32_t *)y) {
    note(getenv("GPU_WORKER_TEST_LEDGER"), *x);
    *y = 3 * *x + 1;
}

static int is_open(void) {
    return access(getenv("GPU_WORKER_TEST_GATE"), F_OK) == 0;
}

static void sleep_ms(long ms) {
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

KERNEL(held, (const uint32_t *)x, (uint32_t *)y) {
    const char *ledger = getenv("GPU_WORKER_TEST_LEDGER");
    if (ledger != NULL) note(ledger, *x);
    while (!is_open()) sleep_ms(5);
    *y = 3 * *x + 1;
}

KERNEL(paced, (const uint32_t *)x, (uint32_t *)y) {
    if (!is_open()) sleep_ms(50);
    *y = 3 * *x + 1;
}
