/**
 * Where a device is in a machine with several NUMA nodes: memory and CPUs of its own node are
 * faster to reach for it than those of others. Read from the kernel's files about its PCI device
 * ("sysfs-bus-pci" and "sysfs-devices-system-cpu" of the kernel's documentation).
 *
 * Binding the threads is enough for memory as well: Linux gives a thread memory of the node that it
 * runs on, when the memory is touched first; the driver does the same when it pins memory.
 *
 * Threads: any; locality_bind() one at a time.
 */
#ifndef GPU_LOCALITY_H
#define GPU_LOCALITY_H

#include <stdbool.h>
#include <stdint.h>

#define LOCALITY_SYSFS "/sys"

enum { LOCALITY_CPUS_SIZE = 512 };

struct locality {
    int32_t node;                  /* -1: not known */
    char cpus[LOCALITY_CPUS_SIZE]; /* those of the node, such as "0-3,8"; "": not known */
    bool is_only; /* the machine has no other node, so there is nothing to choose */
};

/**
 * Finds it by the device's address, such as "0000:1b:00.0". What cannot be read, or makes no sense,
 * is not known. `sysfs` is LOCALITY_SYSFS, or in tests a folder with such files.
 */
void locality_find(const char *sysfs, const char *pci, struct locality *ret);

enum binding {
    BINDING_NONE,  /* nothing was to be done */
    BINDING_BOUND, /* all threads run on CPUs of the node, and threads that they start will too */
    BINDING_EXCLUDED, /* the process may use none of the node's CPUs; nothing was changed */
    BINDING_REFUSED   /* the system does not let threads be bound */
};

/**
 * Binds all threads of this process to those CPUs of the node that the process may use, as a
 * container's or a command's set of CPUs says.
 */
enum binding locality_bind(const struct locality *locality);

/** How many CPUs the calling thread may run on; 0: not known. */
uint32_t locality_count_cpus(void);

#endif
