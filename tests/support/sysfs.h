/** A folder that says of a device what the kernel's /sys says (gpu/locality.h). */
#ifndef TESTS_SUPPORT_SYSFS_H
#define TESTS_SUPPORT_SYSFS_H

/** The address of the CPU driver's first device. */
#define SYSFS_DEVICE "ffff:00:00.0"

/** A new one with these contents, to be given to scratch_remove(). NULL: that file is missing. */
char *sysfs_create(const char *node, const char *cpus, const char *nodes);

#endif
