/**
 * Named ranges for profilers: decode, stage, enqueue, wait and publish, as Nsight shows them.
 *
 * The NVTX library is opened at run time, and only if the configuration names one; otherwise a
 * range costs one branch. Ranges belong to a thread, and nest.
 *
 * Threads: call profile_open() before the second thread starts; the others any.
 */
#ifndef GPU_PROFILE_H
#define GPU_PROFILE_H

#include "base/error.h"

struct profile_hooks {
    int (*push)(const char *name); /* NULL: off */
    int (*pop)(void);
};
extern struct profile_hooks profile_hooks;

/**
 * Turns ranges on with `library`, such as libnvToolsExt.so.1, or off with "". Errors: ERR_CONFIG.
 */
MUST_CHECK enum err profile_open(const char *library, struct error *err);

/** Sends ranges to `hooks` where profile_open() gets no library. Call it before profile_open(). */
void profile_use(struct profile_hooks hooks);

/** Whether profile_open() would succeed; turns nothing on. Threads: any. */
MUST_CHECK enum err profile_check(const char *library, struct error *err);

static inline void profile_push(const char *name) {
    if (profile_hooks.push != NULL) (void)profile_hooks.push(name);
}

static inline void profile_pop(void) {
    if (profile_hooks.push != NULL) (void)profile_hooks.pop();
}

#endif
