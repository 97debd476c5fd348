/** What the kernel says of a process (proc(5)). Private to supervise/. Threads: pure. */
#ifndef SUPERVISE_SELF_H
#define SUPERVISE_SELF_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct process_usage {
    double cpu_s, start_unix_s;
    uint64_t resident_bytes, virtual_bytes;
};

/** False where it does not say, since the process has ended or /proc is not there. */
bool process_usage_read(pid_t pid, struct process_usage *ret);

/** Of this process. */
uint64_t self_open_fds(void);
uint64_t self_max_fds(void);

#endif
