#include "support/sysfs.h"

#include <stdio.h>
#include <sys/stat.h>

#include "support/scratch.h"
#include "testing.h"

static const char *const folders[] = {"bus", "bus/pci", "bus/pci/devices",
    ("bus/pci/devices/" SYSFS_DEVICE), "devices", "devices/system", "devices/system/node"};
enum { FOLDER_COUNT = sizeof folders / sizeof folders[0] };
static const char *const files[] = {"bus/pci/devices/" SYSFS_DEVICE "/numa_node",
    "bus/pci/devices/" SYSFS_DEVICE "/local_cpulist", "devices/system/node/online"};
enum { FILE_COUNT = sizeof files / sizeof files[0] };

static const char *path_of(const char *root, const char *name) {
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    return path;
}

char *sysfs_create(const char *node, const char *cpus, const char *nodes) {
    const char *const contents[FILE_COUNT] = {node, cpus, nodes};
    char *root = scratch_create();
    for (size_t i = 0; i < FOLDER_COUNT; i++)
        assert_int_equal(0, mkdir(path_of(root, folders[i]), 0700));
    for (size_t i = 0; i < FILE_COUNT; i++) {
        if (contents[i] == NULL) continue;
        FILE *file = fopen(path_of(root, files[i]), "w");
        assert_non_null(file);
        assert_true(fputs(contents[i], file) >= 0);
        assert_int_equal(0, fclose(file));
    }
    return root;
}
