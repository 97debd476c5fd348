#include "gpu/driver_harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu_driver/cpu_driver.h"
#include "support/device_checks.h"

const struct gpu_driver *driver;

static uint32_t *gate; /* pinned; NULL where none is closed */

bool harness_names_cuda(void) {
    const char *name = getenv("GPU_WORKER_TEST_DRIVER");
    return name != NULL && strcmp(name, "cuda") == 0;
}

bool harness_is_cpu(void) {
    return strcmp(driver->name, "cpu") == 0;
}

void harness_open(const struct gpu_cpu_options *cpu) {
    enum gpu_driver_kind kind = harness_names_cuda() ? GPU_DRIVER_CUDA : GPU_DRIVER_CPU;
    struct error err;
    /* Loading a kernel at its first launch can wait for a stream that waits behind a gate. */
    setenv("CUDA_MODULE_LOADING", "EAGER", 1);
    if (gpu_driver_open(kind, cpu, &driver, &err) != ERR_OK) fail_msg("%s", err.message);
    CUdevice device;
    CUcontext context;
    WORKS(device_get(&device, 0));
    WORKS(primary_context_retain(&context, device));
    WORKS(context_set_current(context));
}

void harness_close_after_mistakes(void) {
    if (gate != NULL) harness_open_gate(); /* a test that failed has left it closed */
    if (harness_is_cpu()) cpu_driver_reset();
    else WORKS(primary_context_release(0));
}

void harness_close(void) {
    device_assert_no_mistakes();
    harness_close_after_mistakes();
}

CUstream harness_stream(void) {
    CUstream stream;
    WORKS(stream_create(&stream, CU_STREAM_NON_BLOCKING));
    return stream;
}

CUevent harness_event(void) {
    CUevent event;
    WORKS(event_create(&event, CU_EVENT_DISABLE_TIMING));
    return event;
}

CUdeviceptr harness_memory(size_t bytes) {
    CUdeviceptr memory;
    WORKS(memory_alloc(&memory, bytes));
    return memory;
}

void *harness_pinned(size_t bytes) {
    void *memory;
    WORKS(host_alloc(&memory, bytes, CU_MEMHOSTALLOC_PORTABLE));
    return memory;
}

static char *read_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) fail_msg("cannot open %s", path);
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file);
    rewind(file);
    char *bytes = calloc(1, size + 1); /* PTX ends with a NUL */
    assert_int_equal(size, fread(bytes, 1, size, file));
    fclose(file);
    return bytes;
}

static CUmodule load(const char *folder, const char *program) {
    char path[512];
    const char *suffix = harness_is_cpu() ? "so" : "ptx";
    snprintf(path, sizeof path, "%s/%s/%s.%s", folder, program, program, suffix);
    char *image = read_file(path);
    CUmodule module;
    WORKS(module_load(&module, image, 0, NULL, NULL));
    free(image);
    return module;
}

CUfunction harness_probe(const char *entry) {
    CUfunction function;
    WORKS(module_function(&function, load(DRIVER_PROBE_FOLDER, "driver_probe"), entry));
    return function;
}

CUmodule harness_program(const char *program) {
    const char *folder = getenv("GPU_WORKER_PROGRAMS_DIR");
    return load(folder == NULL ? GPU_WORKER_PROGRAMS_DIR : folder, program);
}

CUresult harness_launch(CUfunction function, unsigned grid, unsigned block, unsigned shared_bytes,
    CUstream stream, void **args) {
    return driver->launch(function, grid, 1, 1, block, 1, 1, shared_bytes, stream, args, NULL);
}

void harness_close_gate(CUstream stream) {
    gate = harness_pinned(sizeof *gate);
    __atomic_store_n(gate, 0, __ATOMIC_SEQ_CST);
    CUfunction wait = harness_probe("probe_gate");
    assert_int_equal(CUDA_SUCCESS, harness_launch(wait, 1, 1, 0, stream, (void *[]){&gate}));
}

void harness_open_gate(void) {
    /* A kernel reads the gate, and no sanitizer sees that it orders anything. The driver's lock
     * does: what comes before the gate opens comes before what the stream does behind it. */
    CUdevice device;
    WORKS(device_get(&device, 0));
    __atomic_store_n(gate, 1, __ATOMIC_SEQ_CST);
    gate = NULL;
}
