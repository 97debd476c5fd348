/** How much a state file holds. Each number is part of its layout (layout.h). */
#ifndef STATE_BOUNDS_H
#define STATE_BOUNDS_H

#include "base/error.h"

enum {
    STATE_LANES_MAX = 65, /* with the serial fallback */
    STATE_DEPTH_MAX = 16,
    STATE_BATCH_JOBS_MAX = 1024,
    STATE_TOPICS_MAX = 256,
    STATE_THREADS_MAX = 256,
    STATE_SUSPECTS_MAX = 16384,
    STATE_SEARCHES_MAX = 16,  /* arrays; others are convicted whole */
    STATE_CULPRITS_MAX = 32,  /* of one array */
    STATE_UNEVENS_MAX = 256,  /* kernels; the oldest is forgotten */
    STATE_TROUBLE_BYTES = 32, /* one word: struct error's `trouble` */
    STATE_MESSAGE_BYTES = sizeof(((struct error *)NULL)->message),
    STATE_UUID_BYTES = 48,
    STATE_PROGRESS_BYTES = 8192
};

/* tables.h */
enum {
    FETCHES_MAX = 1024,
    SUSPENSION_CONVICTIONS_MAX = 32,
    SUSPENSION_KEYS_MAX = 256,
    SUSPENSION_PROGRAMS_MAX = 64,
    SUSPENSION_STANDINGS_MAX = 4096,
    SUSPENSION_NAME_BYTES = 64 /* longer names are cut */
};

#endif
