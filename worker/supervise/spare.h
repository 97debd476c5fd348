/**
 * The spare of one device (executors.spare): a process whose device, programs and memory are ready,
 * and whose life begins when the executor dies. Until then it has no jobs, so its own death counts
 * against nobody: another one is started. Private to supervise/. Threads: the supervisor's only.
 */
#ifndef SUPERVISE_SPARE_H
#define SUPERVISE_SPARE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "supervise/launch.h"

struct spare {
    pid_t pid;     /* 0: there is none */
    int fd;        /* the socket to it */
    uint64_t life; /* the number of the life that it is for */
    uint64_t started_ns;
    bool is_ready;   /* it has said so */
    bool is_hung;    /* it was killed, as it was not ready in time */
    bool is_dropped; /* it was killed on purpose */
    uint32_t deaths; /* since one began its life */
    uint64_t deaths_total;
    uint64_t start_ns; /* when the next one may be started */
};

/** Starts one, where there is none, as `launch` says, with a socket to it. Errors: ERR_IO; then
 * another one may be started after growing delays. */
MUST_CHECK enum err spare_start(struct spare *spare, struct launch *launch, struct error *err);

/** Notes whether it is ready, and kills one that has not been for `limit_ns`: it hangs. */
void spare_tend(struct spare *spare, uint64_t now_ns, uint64_t limit_ns);

/**
 * Tells it to begin its life, also where it is not ready yet: then it will as soon as it is.
 * Returns its process, which is the spare no more; 0: there is none that could begin.
 */
pid_t spare_begin(struct spare *spare);

/** Kills it: it has nothing to finish. */
void spare_drop(struct spare *spare);

/** The process has ended. Another one may be started after growing delays, or at once if it was
 * dropped. */
void spare_reap(struct spare *spare);

#endif
