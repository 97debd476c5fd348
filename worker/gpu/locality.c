#include "gpu/locality.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/number.h"

enum {
    CPUS_MAX = 8192, /* as many as Linux can have on any machine; higher numbers are none of ours */
    FILE_BYTES_MAX = 4096,
    PASSES_MAX = 100 /* over threads that threads start meanwhile */
};

struct cpus {
    cpu_set_t sets[CPUS_MAX / CPU_SETSIZE];
};

/* ---- reading ---- */

/* Reads "3" or "0-3" and moves `*text` behind it. */
static bool read_range(const char **text, uint64_t *first, uint64_t *last) {
    size_t digits = number_read(*text, first);
    *text += digits;
    *last = *first;
    if (digits == 0 || **text != '-') return digits > 0;
    digits = number_read(*text + 1, last);
    *text += 1 + digits;
    return digits > 0 && *last >= *first;
}

/* Reads "0-3,8"; an empty text is an empty list. False: it is no such list. */
static bool read_list(const char *text, struct cpus *ret) {
    memset(ret, 0, sizeof *ret);
    while (*text != 0) {
        uint64_t first, last;
        if (!read_range(&text, &first, &last)) return false;
        for (uint64_t i = first; i <= last && i < CPUS_MAX; i++)
            CPU_SET_S((size_t)i, sizeof ret->sets, ret->sets);
        if (*text == ',' && text[1] != 0) text++;
        else if (*text != 0) return false;
    }
    return true;
}

/* The only line of a file, without its end. False: there is none, or it does not fit. */
static bool read_line(const char *path, size_t size, char *ret) {
    struct error err;
    char *text = NULL;
    size_t read = 0;
    if (file_read(path, FILE_BYTES_MAX, &text, &read, &err) != ERR_OK) return false;
    size_t used = strcspn(text, "\n");
    bool fits = used < size && read - used <= 1;
    snprintf(ret, size, "%.*s", (int)used, fits ? text : "");
    free(text);
    return fits;
}

static bool read_of_device(
    const char *sysfs, const char *pci, const char *what, size_t size, char *ret) {
    char path[512];
    int used = snprintf(path, sizeof path, "%s/bus/pci/devices/%s/%s", sysfs, pci, what);
    return used < (int)sizeof path && read_line(path, size, ret);
}

static int32_t find_node(const char *sysfs, const char *pci) {
    char text[16];
    uint64_t node;
    if (!read_of_device(sysfs, pci, "numa_node", sizeof text, text)) return -1;
    size_t digits = number_read(text, &node);
    return digits > 0 && text[digits] == 0 && node <= INT32_MAX ? (int32_t)node : -1;
}

/* A kernel without NUMA does not say how many there are. */
static bool has_one_node(const char *sysfs) {
    char path[512], text[LOCALITY_CPUS_SIZE];
    struct cpus nodes; /* numbers of nodes are written as those of CPUs are */
    int used = snprintf(path, sizeof path, "%s/devices/system/node/online", sysfs);
    if (used >= (int)sizeof path || !read_line(path, sizeof text, text)) return true;
    return !read_list(text, &nodes) || CPU_COUNT_S(sizeof nodes.sets, nodes.sets) <= 1;
}

void locality_find(const char *sysfs, const char *pci, struct locality *ret) {
    struct cpus cpus;
    *ret = (struct locality){.node = -1, .is_only = true};
    /* the driver's word becomes part of a path */
    if (pci[0] == 0 || strspn(pci, "0123456789abcdef:.") != strlen(pci) || pci[0] == '.') return;
    ret->node = find_node(sysfs, pci);
    if (!read_of_device(sysfs, pci, "local_cpulist", sizeof ret->cpus, ret->cpus) ||
        !read_list(ret->cpus, &cpus))
        ret->cpus[0] = 0;
    ret->is_only = has_one_node(sysfs);
}

/* ---- binding ---- */

/* One pass over all threads. False: the system refuses it. `*changed`: how many were not bound. */
static bool bind_threads(const struct cpus *cpus, size_t *changed) {
    struct cpus now;
    bool is_fine = true;
    DIR *threads = opendir("/proc/self/task");
    *changed = 0;
    if (threads == NULL) return false;
    for (struct dirent *entry; is_fine && (entry = readdir(threads)) != NULL;) {
        pid_t thread = atoi(entry->d_name);
        if (thread == 0) continue;                                               /* "." and ".." */
        if (sched_getaffinity(thread, sizeof now.sets, now.sets) != 0) continue; /* it has ended */
        if (CPU_EQUAL_S(sizeof now.sets, now.sets, cpus->sets)) continue;
        is_fine = sched_setaffinity(thread, sizeof cpus->sets, cpus->sets) == 0;
        *changed += 1;
    }
    closedir(threads);
    return is_fine;
}

/* Finds the CPUs that the calling thread may run on. */
static bool find_usable(struct cpus *ret) {
    memset(ret, 0, sizeof *ret);
    return sched_getaffinity(0, sizeof ret->sets, ret->sets) == 0;
}

enum binding locality_bind(const struct locality *locality) {
    struct cpus local, usable;
    size_t changed = 1;
    bool is_known = locality->node >= 0 && locality->cpus[0] != 0;
    if (!is_known || locality->is_only || !read_list(locality->cpus, &local)) return BINDING_NONE;
    if (!find_usable(&usable)) return BINDING_REFUSED;
    CPU_AND_S(sizeof usable.sets, usable.sets, usable.sets, local.sets);
    if (CPU_COUNT_S(sizeof usable.sets, usable.sets) == 0) return BINDING_EXCLUDED;
    for (int i = 0; changed > 0 && i < PASSES_MAX; i++)
        if (!bind_threads(&usable, &changed)) return BINDING_REFUSED;
    return BINDING_BOUND;
}

uint32_t locality_count_cpus(void) {
    struct cpus usable;
    return find_usable(&usable) ? (uint32_t)CPU_COUNT_S(sizeof usable.sets, usable.sets) : 0;
}
