/**
 * Reads a process's resource use from the kernel (proc(5)). Private to supervise/. Threads: pure.
 */
#ifndef SUPERVISE_SELF_H
#define SUPERVISE_SELF_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct process_usage {
    double cpu_s, start_unix_s;
    uint64_t resident_bytes, virtual_bytes;
};

/** False if it cannot be read, because the process has ended or there is no /proc. */
bool process_usage_read(pid_t pid, struct process_usage *ret);

/** How many files this process has open. */
uint64_t self_open_fds(void);
uint64_t self_max_fds(void);

#endif
