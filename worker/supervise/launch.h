/** Starts the process of one device. Private to supervise/. Threads: the supervisor's only. */
#ifndef SUPERVISE_LAUNCH_H
#define SUPERVISE_LAUNCH_H

#include <sys/types.h>

#include "supervise/options.h"

struct launch {
    const struct supervise_options *options;
    uint32_t device;
    const char *state_path;
    int board_fd;
    uint64_t life; /* the number of its life */
    int spare_fd;  /* the socket over which it is told to begin its life; -1: it begins at once */
};

/** Errors: ERR_IO. */
MUST_CHECK enum err launch_executor(const struct launch *launch, pid_t *ret, struct error *err);

#endif
