/**
 * The tenant of a job, where jobs are isolated from each other: its key in its topic, or the
 * programs that it launches. Jobs without a key are one tenant of their topic.
 *
 * Threads: pure.
 */
#ifndef PREPARE_TENANT_H
#define PREPARE_TENANT_H

#include "plan/plan.h"

/** Which jobs are kept from reading each other's bytes with kernels that leave their buffers. */
enum isolation { ISOLATION_NONE, ISOLATION_PROGRAM, ISOLATION_KEY };

/**
 * The tenant's name, in the job's arena: two jobs of the same name are of one tenant. Empty for
 * all with ISOLATION_NONE. ERR_NO_MEMORY.
 */
MUST_CHECK enum err tenant_name(enum isolation isolation, struct job *job, const struct plan *plan,
    struct slice *ret, struct error *err);

#endif
