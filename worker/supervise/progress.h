/**
 * A line on the terminal that says how far a run of files is: jobs answered, failures, jobs a
 * second. Without a terminal it says nothing. The cursor stays at the start of the line, so that a
 * line of the log takes its place. Private to supervise/. Threads: the supervisor's only.
 */
#ifndef SUPERVISE_PROGRESS_H
#define SUPERVISE_PROGRESS_H

#include "supervise/executors.h"

struct progress {
    bool is_shown;
    uint64_t due_ns;
    uint64_t last_ns, last_jobs; /* what the rate is counted from */
};

/** `is_wanted`: it is a run of files. */
void progress_init(struct progress *progress, bool is_wanted, uint64_t now_ns);

/** Shows it if it is due. */
void progress_show(
    struct progress *progress, const struct executor *executors, size_t count, uint64_t now_ns);

/** Takes the line away. */
void progress_fini(struct progress *progress);

#endif
