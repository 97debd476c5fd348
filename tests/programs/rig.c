#include "rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MODULES_MAX = 8, BUFFERS_MAX = 64 };

struct module {
    const char *program;
    CUmodule handle;
};

static const struct gpu_driver *driver;
static CUdevice device;
static CUcontext context;
static CUstream stream;
static struct module modules[MODULES_MAX];
static size_t module_count;
static CUdeviceptr buffers[BUFFERS_MAX];
static size_t buffer_count;

static void must(CUresult result, const char *call) {
    struct error err = {0};
    if (gpu_check(driver, result, call, &err) != ERR_OK) fail_msg("%s", err.message);
}
#define MUST(call) must(driver->call, #call)

int rig_open(void **state) {
    const char *name = getenv("GPU_WORKER_TEST_DRIVER");
    bool on_cuda = name != NULL && strcmp(name, "cuda") == 0;
    struct gpu_cpu_options cpu = {.device_count = 1, .memory_bytes = 256 << 20};
    struct error err = {0};
    enum err code =
        gpu_driver_open(on_cuda ? GPU_DRIVER_CUDA : GPU_DRIVER_CPU, &cpu, &driver, &err);
    if (code != ERR_OK) {
        print_error("%s\n%s\n", err.message, err.fix);
        return -1;
    }
    MUST(device_get(&device, 0));
    MUST(primary_context_retain(&context, device));
    MUST(context_set_current(context));
    MUST(stream_create(&stream, CU_STREAM_NON_BLOCKING));
    return 0;
}

int rig_close(void **state) {
    while (module_count > 0) MUST(module_unload(modules[--module_count].handle));
    MUST(stream_destroy(stream));
    MUST(primary_context_release(device));
    return 0;
}

/** The file followed by a NUL, as PTX wants it. */
static char *read_image(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) fail_msg("cannot open %s", path);
    fseek(file, 0, SEEK_END);
    size_t bytes = (size_t)ftell(file);
    rewind(file);
    char *image = calloc(1, bytes + 1);
    assert_non_null(image);
    assert_int_equal(bytes, fread(image, 1, bytes, file));
    fclose(file);
    return image;
}

static CUmodule load(const char *folder, const char *program) {
    for (size_t i = 0; i < module_count; i++)
        if (strcmp(modules[i].program, program) == 0) return modules[i].handle;
    char path[512];
    const char *suffix = strcmp(driver->name, "cpu") == 0 ? "so" : "ptx";
    snprintf(path, sizeof path, "%s/%s/%s.%s", folder, program, program, suffix);
    assert_in_range(module_count, 0, MODULES_MAX - 1);
    char *image = read_image(path);
    MUST(module_load(&modules[module_count].handle, image, 0, NULL, NULL));
    free(image);
    modules[module_count].program = program;
    return modules[module_count++].handle;
}

CUfunction rig_kernel(const char *folder, const char *program, const char *entry) {
    CUfunction kernel = NULL;
    int bytes;
    MUST(module_function(&kernel, load(folder, program), entry));
    MUST(device_attribute(&bytes, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device));
    MUST(function_set_attribute(kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes));
    return kernel;
}

CUdeviceptr rig_buffer(const void *data, size_t bytes) {
    assert_in_range(buffer_count, 0, BUFFERS_MAX - 1);
    CUdeviceptr *buffer = &buffers[buffer_count];
    MUST(memory_alloc(buffer, bytes));
    buffer_count++;
    if (data != NULL) MUST(copy_to_device(*buffer, data, bytes, stream));
    else MUST(fill(*buffer, 0, bytes, stream));
    MUST(stream_synchronize(stream));
    return *buffer;
}

void rig_read(CUdeviceptr from, void *to, size_t bytes) {
    MUST(copy_to_host(to, from, bytes, stream));
    MUST(stream_synchronize(stream));
}

void rig_free_all(void) {
    while (buffer_count > 0) MUST(memory_free(buffers[--buffer_count]));
}

void rig_launch(CUfunction kernel, struct rig_shape shape, void **args) {
    for (uint32_t i = 0; i < shape.iterations; i++)
        MUST(launch(
            kernel, shape.grid, 1, 1, shape.block, 1, 1, shape.shared_bytes, stream, args, NULL));
    MUST(stream_synchronize(stream));
}

void rig_launch_3d(CUfunction kernel, const uint32_t grid[3], const uint32_t block[3],
    uint32_t shared_bytes, void **args) {
    MUST(launch(kernel, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared_bytes,
        stream, args, NULL));
    MUST(stream_synchronize(stream));
}

float rig_random(uint32_t *seed) {
    *seed = *seed * 1664525 + 1013904223;
    return (float)(*seed >> 8) * 0x1p-23f - 1.0f;
}
