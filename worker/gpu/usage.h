/**
 * How a GPU is used, as NVML measures it: also by other processes. The
 * library is opened at run time if it is installed; its functions and results follow NVIDIA's "NVML
 * API Reference". A figure that this GPU, MIG slice or driver does not have is not known.
 *
 * A reading takes milliseconds, and as long as the driver hangs. Lifetime: usage_open() to
 * usage_close(). Threads: one at a time.
 */
#ifndef GPU_USAGE_H
#define GPU_USAGE_H

#include <stdint.h>

/* X(figure) */
#define USAGE_LIST(X)                                                                              \
    X(memory_bytes)                                                                                \
    X(memory_used_bytes)                                                                           \
    X(utilisation_percent) /* of the time of its last sample, in which a kernel ran */             \
    X(temperature_celsius)                                                                         \
    X(power_milliwatts)                                                                            \
    X(ecc_corrected) /* memory errors since the driver was loaded */                               \
    X(ecc_uncorrected)

enum usage_figure {
#define X(figure) USAGE_##figure,
    USAGE_LIST(X)
#undef X
        USAGE_COUNT
};

/** Plain values, which may come from memory that another process has damaged. */
struct usage_reading {
    uint32_t known; /* a bit for each figure that is */
    uint64_t of[USAGE_COUNT];
};

static inline int usage_knows(const struct usage_reading *reading, enum usage_figure figure) {
    return (reading->known >> figure & 1) != 0;
}

struct usage;

/** NULL: there is no library, or it does not know the GPU with this UUID; NULL and "" are none. */
struct usage *usage_open(const char *uuid);
void usage_close(struct usage *usage); /* NULL is fine */

/** With NULL nothing is known. */
void usage_read(const struct usage *usage, struct usage_reading *ret);

#endif
