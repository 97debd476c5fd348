/**
 * y = 3 x + 1, and x is appended to the file that GPU_WORKER_TEST_LEDGER names: what ran is known
 * even of a worker that was killed. For the CPU alone.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "kernel.h"

KERNEL(triple, (const uint32_t *)x, (uint32_t *)y) {
    int file = open(getenv("GPU_WORKER_TEST_LEDGER"), O_WRONLY | O_APPEND | O_CLOEXEC);
    if (file < 0 || write(file, x, sizeof *x) != sizeof *x) abort();
    close(file);
    *y = 3 * *x + 1;
}
