/* Where the libraries of NVIDIA's driver are looked for. The loader finds none here, and those of a
 * folder that does not exist here are stand-ins (fake_cuda.c, fake_nvml.c). */
#include "gpu/nvidia_library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/driver.h"
#include "gpu/health.h"
#include "gpu/usage.h"
#include "testing.h"

static const char *mounted_at; /* the folder that a container's runtime has mounted; NULL: none */

void *__real_dlopen(const char *path, int flags);
void *__wrap_dlopen(const char *path, int flags);

void *__wrap_dlopen(const char *path, int flags) {
    static const struct {
        const char *name, *folder;
    } stand_ins[] = {{"libcuda.so.1", FAKE_CUDA_FOLDER}, {"libnvidia-ml.so.1", FAKE_NVML_FOLDER}};
    char moved[512];
    snprintf(moved, sizeof moved, "/none/%s", path);
    for (size_t i = 0; i < 2 && mounted_at != NULL; i++) {
        char there[256];
        snprintf(there, sizeof there, "%s/%s", mounted_at, stand_ins[i].name);
        if (strcmp(path, there) == 0)
            snprintf(moved, sizeof moved, "%s/%s", stand_ins[i].folder, stand_ins[i].name);
    }
    return __real_dlopen(moved, flags);
}

TEST(a_driver_that_no_path_of_the_loader_names_is_found_where_nodes_mount_it) {
    mounted_at = "/usr/local/nvidia/lib64";
    const struct gpu_driver *driver = NULL;
    struct error err;
    assert_int_equal(ERR_OK, gpu_driver_open(GPU_DRIVER_CUDA, NULL, &driver, &err));
    assert_string_equal("cuda", driver->name);
}

TEST(nvml_is_found_there_too) {
    mounted_at = "/usr/local/nvidia/lib64";
    char fault[96];
    setenv("FAKE_NVML", "lost", 1);
    health_check("GPU-0", fault, sizeof fault);
    assert_string_equal("it has fallen off the bus", fault);
    setenv("FAKE_NVML", "fine", 1);
    struct usage *usage = usage_open("GPU-0");
    assert_non_null(usage);
    usage_close(usage);
}

TEST(a_library_that_is_nowhere_is_named_with_both_places) {
    mounted_at = NULL;
    const struct gpu_driver *driver = NULL;
    struct error err;
    assert_int_equal(ERR_NO_DEVICE, gpu_driver_open(GPU_DRIVER_CUDA, NULL, &driver, &err));
    assert_null(driver);
    assert_non_null(strstr(err.message, "cannot open libcuda.so.1: "));
    assert_non_null(strstr(err.message, "/usr/local/nvidia/lib64"));
    assert_non_null(strstr(err.fix, "driver: cpu"));
}

RUN_TESTS(T(a_driver_that_no_path_of_the_loader_names_is_found_where_nodes_mount_it),
    T(nvml_is_found_there_too), T(a_library_that_is_nowhere_is_named_with_both_places))
