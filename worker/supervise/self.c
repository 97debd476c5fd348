#include "supervise/self.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { FIELDS_BYTES = 1024 };

/* Reads the fields after the name, which may contain anything. */
static bool read_fields(pid_t pid, char fields[static FIELDS_BYTES], const char **ret) {
    char path[32];
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *file = fopen(path, "re");
    if (file == NULL) return false;
    size_t size = fread(fields, 1, FIELDS_BYTES - 1, file);
    fclose(file);
    fields[size] = 0;
    char *end = strrchr(fields, ')');
    if (end != NULL) *ret = end + 1;
    return end != NULL;
}

/* When the machine was started, by the kernel: this does not change with the clock. */
static double boot_unix_s(void) {
    char line[256];
    uint64_t ret = 0;
    FILE *file = fopen("/proc/stat", "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "btime %" SCNu64, &ret) == 1) break;
    if (file != NULL) fclose(file);
    return (double)ret;
}

bool process_usage_read(pid_t pid, struct process_usage *ret) {
    char fields[FIELDS_BYTES];
    const char *rest;
    uint64_t user, system, start, bytes, pages;
    if (!read_fields(pid, fields, &rest)) return false;
    /* from the third field, the state, on: the 14th, 15th, 22nd, 23rd and 24th */
    int found = sscanf(rest,
        " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64
        " %*d %*d %*d %*d %*d %*d %" SCNu64 " %" SCNu64 " %" SCNu64,
        &user, &system, &start, &bytes, &pages);
    if (found != 5) return false;
    double ticks = (double)sysconf(_SC_CLK_TCK);
    *ret = (struct process_usage){.cpu_s = (double)(user + system) / ticks,
        .start_unix_s = boot_unix_s() + (double)start / ticks,
        .resident_bytes = pages * (uint64_t)sysconf(_SC_PAGESIZE),
        .virtual_bytes = bytes};
    return true;
}

uint64_t self_open_fds(void) {
    uint64_t ret = 0;
    DIR *folder = opendir("/proc/self/fd");
    if (folder == NULL) return 0;
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;)
        ret += entry->d_name[0] != '.';
    closedir(folder);
    return ret - 1; /* without the descriptor of the folder itself */
}

uint64_t self_max_fds(void) {
    struct rlimit limit = {0};
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur;
}
