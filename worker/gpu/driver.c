#include "gpu/driver.h"

#include <dlfcn.h>
#include <string.h>

#include "cpu_driver/cpu_driver.h"
#include "gpu/nvidia_library.h"

/* cuGetProcAddress of CUDA 11.3 and of 12.0. Both are declared here, because our header has only
 * one of them. */
typedef CUresult (*get_entry_v1)(
    const char *symbol, void **ret, int cuda_version, cuuint64_t flags);
typedef CUresult (*get_entry_v2)(
    const char *symbol, void **ret, int cuda_version, cuuint64_t flags, void *ret_status);

struct library {
    get_entry_v1 get_v1;
    get_entry_v2 get_v2;
};

static const char FIX_VERSION[] = "install a newer NVIDIA driver (CUDA 11.3 or later)";

static enum err library_open(struct library *ret, struct error *err) {
    void *object = nvidia_library_open("libcuda.so.1", err);
    if (object == NULL) return err->code;
    ret->get_v1 = (get_entry_v1)dlsym(object, "cuGetProcAddress");
    ret->get_v2 = (get_entry_v2)dlsym(object, "cuGetProcAddress_v2");
    if (ret->get_v1 != NULL || ret->get_v2 != NULL) return ERR_OK;
    dlclose(object);
    return error_set(err, ERR_NO_DEVICE, 0, FIX_VERSION, "libcuda.so.1 has no cuGetProcAddress");
}

static enum err library_entry(
    const struct library *library, const char *name, int version, void **ret, struct error *err) {
    *ret = NULL;
    CUresult result = library->get_v2 != NULL
                          ? library->get_v2(name, ret, version, CU_GET_PROC_ADDRESS_DEFAULT, NULL)
                          : library->get_v1(name, ret, version, CU_GET_PROC_ADDRESS_DEFAULT);
    if (result == CUDA_SUCCESS && *ret != NULL) return ERR_OK;
    return error_set(err, ERR_NO_DEVICE, (int)result, FIX_VERSION,
        "libcuda.so.1 has no %s of CUDA %d.%d", name, version / 1000, version % 1000 / 10);
}

static enum err fill_from_library(struct gpu_driver *table, struct error *err) {
    struct library library;
    enum err code = library_open(&library, err);
    if (code != ERR_OK) return code;
    void *entry;
#define X(field, function, version)                                                                \
    code = library_entry(&library, #function, version, &entry, err);                               \
    if (code != ERR_OK) return code;                                                               \
    table->field = (__typeof__(table->field))entry;
    GPU_DRIVER_REQUIRED_LIST(X)
#undef X
#define X(field, function, version)                                                                \
    (void)!library_entry(&library, #function, version, &entry, &(struct error){0});                \
    table->field = (__typeof__(table->field))entry;
    GPU_DRIVER_OPTIONAL_LIST(X)
#undef X
    table->name = "cuda";
    return ERR_OK;
}

static enum err fill_from_cpu(
    struct gpu_driver *table, const struct gpu_cpu_options *options, struct error *err) {
    enum err code =
        cpu_driver_configure(options->device_count, options->memory_bytes, options->faults, err);
    if (code == ERR_OK) cpu_driver_table(table);
    return code;
}

/* A driver that cannot start is a problem of the machine, whatever error it returns. */
static enum err start(const struct gpu_driver *table, struct error *err) {
    const char *fix = "see that nvidia-smi works and that the process may use a GPU";
    int device_count = 0;
    struct error cause;
    if (GPU_TRY(table, init(0), &cause) != ERR_OK ||
        GPU_TRY(table, device_count(&device_count), &cause) != ERR_OK)
        return error_set(err, ERR_NO_DEVICE, cause.native, fix, "no usable GPU: %s", cause.message);
    if (device_count == 0) return error_set(err, ERR_NO_DEVICE, 0, fix, "the driver shows no GPU");
    return ERR_OK;
}

enum err gpu_driver_open(enum gpu_driver_kind kind, const struct gpu_cpu_options *cpu,
    const struct gpu_driver **ret, struct error *err) {
    static struct gpu_driver table;
    enum err code =
        kind == GPU_DRIVER_CPU ? fill_from_cpu(&table, cpu, err) : fill_from_library(&table, err);
    if (code == ERR_OK) code = start(&table, err);
    if (code == ERR_OK) *ret = &table;
    return code;
}

enum err gpu_cpu_faults_check(const char *faults, struct error *err) {
    return cpu_driver_check_faults(faults, err);
}

static const char FIX_FAULT[] = "the process has lost its GPU; only a new one can go on";
static const char FIX_IMAGE[] =
    "build the image for this device and for a PTX version that its driver knows";

/* Results that have a code of their own; all others are ERR_DRIVER. */
static const struct result_kind {
    CUresult result;
    enum err code;
    const char *fix;
} result_kinds[] = {
    {CUDA_ERROR_OUT_OF_MEMORY, ERR_DEVICE_MEMORY, "free device memory or make the job smaller"},

    {CUDA_ERROR_ILLEGAL_ADDRESS, ERR_GPU_ILLEGAL_ADDRESS,
        "check the kernel's indices against the sizes of its buffers"},
    {CUDA_ERROR_ASSERT, ERR_GPU_ASSERT, "see which assertion of the kernel failed"},
    {CUDA_ERROR_LAUNCH_TIMEOUT, ERR_GPU_HANG, "make the kernel end, or split its work"},

    {CUDA_ERROR_ECC_UNCORRECTABLE, ERR_GPU_FAULT, "take the GPU out of service and check it"},
    {CUDA_ERROR_NVLINK_UNCORRECTABLE, ERR_GPU_FAULT, "take the GPU out of service and check it"},
    {(CUresult)226, ERR_GPU_FAULT, FIX_FAULT}, /* contained: CUDA 12.9 and newer name it */
    {CUDA_ERROR_HARDWARE_STACK_ERROR, ERR_GPU_FAULT, FIX_FAULT},
    {CUDA_ERROR_ILLEGAL_INSTRUCTION, ERR_GPU_FAULT, FIX_FAULT},
    {CUDA_ERROR_MISALIGNED_ADDRESS, ERR_GPU_FAULT, FIX_FAULT},
    {CUDA_ERROR_INVALID_ADDRESS_SPACE, ERR_GPU_FAULT, FIX_FAULT},
    {CUDA_ERROR_INVALID_PC, ERR_GPU_FAULT, FIX_FAULT},
    {CUDA_ERROR_LAUNCH_FAILED, ERR_GPU_FAULT, FIX_FAULT},
    {(CUresult)721, ERR_GPU_FAULT, FIX_FAULT}, /* tensor memory leak: CUDA 12.9 and newer */
    {CUDA_ERROR_MPS_CLIENT_TERMINATED, ERR_GPU_FAULT, FIX_FAULT},
    {(CUresult)911, ERR_GPU_FAULT, FIX_FAULT}, /* external device: CUDA 12.4 and newer */

    {CUDA_ERROR_INVALID_IMAGE, ERR_MODULE_REJECTED, FIX_IMAGE},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, ERR_MODULE_REJECTED, FIX_IMAGE},
    {CUDA_ERROR_INVALID_PTX, ERR_MODULE_REJECTED, FIX_IMAGE},
    {CUDA_ERROR_JIT_COMPILER_NOT_FOUND, ERR_MODULE_REJECTED, FIX_IMAGE},
    {CUDA_ERROR_UNSUPPORTED_PTX_VERSION, ERR_MODULE_REJECTED, FIX_IMAGE},
    {CUDA_ERROR_JIT_COMPILATION_DISABLED, ERR_MODULE_REJECTED, FIX_IMAGE},
    {CUDA_ERROR_INVALID_SOURCE, ERR_MODULE_REJECTED, FIX_IMAGE},
    {CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND, ERR_MODULE_REJECTED, FIX_IMAGE},
    {CUDA_ERROR_NOT_FOUND, ERR_MODULE_REJECTED, "name a kernel that the image exports"},
};

static struct result_kind kind_of(CUresult result) {
    for (size_t i = 0; i < sizeof result_kinds / sizeof result_kinds[0]; i++)
        if (result_kinds[i].result == result) return result_kinds[i];
    return (struct result_kind){result, ERR_DRIVER,
        "look the result up in CUDA's documentation; if only this job gets it, change the job"};
}

/* Replaces our table's name for the function in `call` by CUDA's, which people can look up. */
static const char *function_of(const char *call, size_t field_size) {
    static const struct {
        const char *field, *function;
    } names[] = {
#define X(field, function, version) {#field, #function},
        GPU_DRIVER_LIST(X)
#undef X
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strlen(names[i].field) == field_size && memcmp(names[i].field, call, field_size) == 0)
            return names[i].function;
    return NULL;
}

enum err gpu_check(
    const struct gpu_driver *driver, CUresult result, const char *call, struct error *err) {
    if (result == CUDA_SUCCESS) return ERR_OK;
    const char *name = NULL, *text = NULL;
    if (driver->error_name(result, &name) != CUDA_SUCCESS) name = "unknown result";
    if (driver->error_string(result, &text) != CUDA_SUCCESS) text = "no text";
    size_t field_size = strcspn(call, "(");
    const char *function = function_of(call, field_size);
    const char *rest = function == NULL ? "" : call + field_size;
    struct result_kind kind = kind_of(result);
    return error_set(err, kind.code, (int)result, kind.fix, "%s%s: %s (%s)",
        function == NULL ? call : function, rest, name, text);
}
