/** Kernels that cost a process its GPU, or its life: what containment is tested with. */
#include "kernel.h"

/* A failed assertion and a trap, as each way of compiling has them; on the CPU they end the
 * process. */
#ifdef KERNEL_ON_CLANG
extern "C" __attribute__((device)) void __assertfail(const char *message, const char *file,
    unsigned line, const char *function, unsigned long character_bytes);
#define FAIL_ASSERTION() __assertfail("poison", "poison.c", __LINE__, "failed_assert", 1)
#else
#undef NDEBUG /* it fails in release builds as well */
#include <assert.h>
#define FAIL_ASSERTION() assert(0 && "poison")
#endif
#ifdef KERNEL_ON_NVCC
#define TRAP() __trap()
#else
#define TRAP() __builtin_trap()
#endif
#ifndef KERNEL_ON_CPU
#define NAP(ms) ((ms) > 0 ? TRAP() : (void)0) /* no GPU sleeps for so long */
#else
#include <time.h>
#define NAP(ms)                                                                                    \
    nanosleep(&(const struct timespec){(ms) / 1000, (long)((ms) % 1000) * 1000000}, NULL)
#endif

/* An address that is in no buffer: an illegal address on a GPU, SIGSEGV on the CPU. */
KERNEL(bad_address, (uint32_t *)y, (uint64_t)address) {
    *(volatile uint32_t *)address = y[0];
}

/* Behind the end of a static, which has a block of its own: on the CPU driver an illegal address
 * as well. */
KERNEL(overrun, (uint32_t *)y, (const uint32_t *)table, (uint32_t)index) {
    ((volatile uint32_t *)table)[index] = y[0];
}

/* Outside of its own buffer by a little: silent in a slab, seen between guards. */
KERNEL(stray, (uint32_t *)y, (uint32_t)index) {
    ((volatile uint32_t *)y)[index] = 7;
}

KERNEL(endless, (uint32_t *)y) {
    while (*(volatile uint32_t *)y == 0) {
    }
}

KERNEL(failed_assert, (uint32_t *)y) {
    if (y[0] == 0) FAIL_ASSERTION();
}

KERNEL(trap, (uint32_t *)y) {
    if (y[0] == 0) TRAP();
}

/* As long as its data says, in turns. */
KERNEL(spin, (uint32_t *)y) {
    uint32_t number = 1;
    for (uint32_t left = y[0]; left > 0; left--) number = number * 1664525u + 1013904223u;
    if (number == 0) y[0] = 0; /* so that no compiler leaves out the loop */
}

/* Sleeps so many milliseconds, however busy the CPUs are. */
KERNEL(nap, (uint32_t *)y) {
    NAP(y[0]);
}
