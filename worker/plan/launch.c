#include "plan/launch.h"

#include <inttypes.h>
#include <stdio.h>

#include "plan/bounds.h"

/* What manifests and messages call a kind of argument. */
static const char *const arg_kind_names[] = {
    [ARG_BUFFER] = "a buffer",
    [ARG_U32] = "u32",
    [ARG_I32] = "i32",
    [ARG_U64] = "u64",
    [ARG_I64] = "i64",
    [ARG_F32] = "f32",
    [ARG_F64] = "f64",
    [ARG_WORDS] = "words",
};

static bool role_writes(enum arg_role role) {
    return role == ROLE_OUT || role == ROLE_INOUT;
}

static enum err check_buffer_arg(const struct job *job, size_t index,
    const struct entry_arg *wanted, size_t step_index, struct error *err) {
    const struct job_buffer *buffer = &job->buffers[index];
    bool is_shared = job->instances > 0 && !buffer->is_each;
    if (buffer->source == BUFFER_STATIC && role_writes(wanted->role))
        return error_set(err, ERR_BAD_ARGUMENT, 0,
            "send this buffer as `data` or `fill`: statics are shared by jobs and never written",
            "steps[%zu]: the kernel writes '%s', and buffer '%.*s' is a static", step_index,
            wanted->name, SLICE_TEXT(buffer->name));
    if (is_shared && role_writes(wanted->role))
        return error_set(err, ERR_BAD_ARGUMENT, 0,
            "give the buffer `each: true`: the instances would write over each other",
            "steps[%zu]: the kernel writes '%s', and buffer '%.*s' is shared by all instances",
            step_index, wanted->name, SLICE_TEXT(buffer->name));
    if (buffer->source != BUFFER_STATIC && wanted->role == ROLE_STATIC)
        return error_set(err, ERR_BAD_ARGUMENT, 0, "name the payload by `static: sha256:...`",
            "steps[%zu]: argument '%s' takes a static, and buffer '%.*s' is not one", step_index,
            wanted->name, SLICE_TEXT(buffer->name));
    if (wanted->element_type == DATATYPE_NONE) return ERR_OK;
    if (buffer->datatype != DATATYPE_NONE && buffer->datatype != wanted->element_type)
        return error_set(err, ERR_BAD_ARGUMENT, 0, "send the buffer in the type that it takes",
            "steps[%zu]: argument '%s' takes %s, and buffer '%.*s' is %s", step_index, wanted->name,
            datatype_name(wanted->element_type), SLICE_TEXT(buffer->name),
            datatype_name(buffer->datatype));
    if (buffer->bytes % datatype_bytes(wanted->element_type) != 0)
        return error_set(err, ERR_BAD_ARGUMENT, 0, "send whole elements",
            "steps[%zu]: argument '%s' takes %s, and the %" PRIu64
            " bytes of buffer '%.*s' are not a whole number of them",
            step_index, wanted->name, datatype_name(wanted->element_type), buffer->bytes,
            SLICE_TEXT(buffer->name));
    return ERR_OK;
}

static enum err check_arg(const struct job *job, const struct job_arg *arg,
    const struct entry_arg *wanted, size_t step_index, struct error *err) {
    enum arg_kind kind = wanted->role == ROLE_VALUE ? wanted->value_kind : ARG_BUFFER;
    if (arg->kind != kind)
        return error_set(err, ERR_BAD_ARGUMENT, 0, "send arguments as the program declares them",
            "steps[%zu]: argument '%s' takes %s, and the job gives %s", step_index, wanted->name,
            arg_kind_names[kind], arg_kind_names[arg->kind]);
    if (kind == ARG_WORDS && arg->word_count != wanted->word_count)
        return error_set(err, ERR_BAD_ARGUMENT, 0, "send as many words as the program declares",
            "steps[%zu]: argument '%s' takes %" PRIu32 " words, and the job gives %zu", step_index,
            wanted->name, wanted->word_count, arg->word_count);
    if (kind != ARG_BUFFER) return ERR_OK;
    return check_buffer_arg(job, arg->buffer, wanted, step_index, err);
}

static enum err check_args(const struct job *job, const struct job_step *step,
    const struct entry *entry, size_t step_index, struct error *err) {
    if (step->arg_count != entry->arg_count)
        return error_set(err, ERR_BAD_ARGUMENT, 0, "send arguments as the program declares them",
            "steps[%zu]: '%s' takes %zu arguments, and the job gives %zu", step_index, entry->name,
            entry->arg_count, step->arg_count);
    for (size_t i = 0; i < entry->arg_count; i++) {
        enum err code = check_arg(job, &step->args[i], &entry->args[i], step_index, err);
        if (code != ERR_OK) return code;
    }
    return ERR_OK;
}

static enum err check_requirements(const struct entry *entry, const struct gpu_limits *device,
    size_t step_index, struct error *err) {
    if (device->architecture < entry->capability_min)
        return error_set(err, ERR_UNSUPPORTED, 0, "send such jobs to workers with newer GPUs",
            "steps[%zu]: '%s' needs compute capability %d.%d, and this device has %d.%d",
            step_index, entry->name, entry->capability_min / 10, entry->capability_min % 10,
            device->architecture / 10, device->architecture % 10);
    return ERR_OK;
}

static enum err plan_block(const struct job_step *step, const struct gpu_limits *device,
    size_t step_index, struct plan_launch *launch, struct error *err) {
    uint64_t threads = 1;
    for (int i = 0; i < 3; i++) {
        launch->block[i] = step->has_block ? step->block[i] : launch->entry->block[i];
        if (launch->block[i] > device->block_max[i])
            return error_set(err, ERR_BAD_LAUNCH, 0, "use smaller blocks and more of them",
                "steps[%zu]: block[%d] is %" PRIu32 ", and the device allows %" PRIu32, step_index,
                i, launch->block[i], device->block_max[i]);
        threads *= launch->block[i]; /* block_max are small: no overflow */
    }
    if (threads > device->block_threads_max)
        return error_set(err, ERR_BAD_LAUNCH, 0, "use smaller blocks and more of them",
            "steps[%zu]: a block of %" PRIu64 " threads, and the device allows %" PRIu32,
            step_index, threads, device->block_threads_max);
    return ERR_OK;
}

static enum err plan_grid(const struct job_step *step, const struct gpu_limits *device,
    size_t step_index, struct plan_launch *launch, struct error *err) {
    for (int i = 0; i < 3; i++) {
        uint64_t blocks = step->grid[i];
        if (step->elements > 0) blocks = i > 0 ? 1 : (step->elements - 1) / launch->block[0] + 1;
        if (blocks > device->grid_max[i])
            return error_set(err, ERR_BAD_LAUNCH, 0, "let each thread do more, or split the job",
                "steps[%zu]: grid[%d] is %" PRIu64 ", and the device allows %" PRIu32, step_index,
                i, blocks, device->grid_max[i]);
        launch->grid[i] = (uint32_t)blocks;
    }
    return ERR_OK;
}

/* The fix of a name that is not there: a name that is near may be meant, but need not be. */
static const char *fix_name(
    const char *near, const char *fix, char room[static sizeof((struct error *)0)->fix]) {
    if (near == NULL) return fix;
    snprintf(room, sizeof((struct error *)0)->fix, "did you mean '%s'? If not, %s", near, fix);
    return room;
}

static enum err find_entry(const struct job_step *step, const struct registry *registry,
    size_t step_index, struct plan_launch *launch, struct error *err) {
    char room[sizeof err->fix];
    launch->program = registry_find(registry, step->program);
    if (launch->program == NULL)
        return error_set(err, ERR_UNKNOWN_PROGRAM, 0,
            fix_name(registry_nearest(registry, step->program),
                "install it in programs.dir; `gpu-worker programs` lists the programs there", room),
            "steps[%zu]: this worker has no program '%.*s'", step_index, SLICE_TEXT(step->program));
    launch->entry = program_entry(launch->program, step->entry);
    if (launch->entry == NULL)
        return error_set(err, ERR_UNKNOWN_ENTRY, 0,
            fix_name(program_nearest_entry(launch->program, step->entry),
                "see the entries that `gpu-worker programs` lists", room),
            "steps[%zu]: program '%s' has no entry '%.*s'", step_index, launch->program->name,
            SLICE_TEXT(step->entry));
    return ERR_OK;
}

/* A job that pins an image must run exactly that image. */
static enum err check_pin(const struct job_step *step, const struct program *program,
    size_t step_index, struct error *err) {
    if (!step->has_image) return ERR_OK;
    for (size_t i = 0; i < program->image_count; i++)
        if (digest_equal(&program->images[i].digest, &step->image)) return ERR_OK;
    char text[DIGEST_TEXT_SIZE];
    return error_set(err, ERR_UNKNOWN_PROGRAM, 0,
        "pin an image that `gpu-worker programs` lists, or leave out the '@sha256:' part",
        "steps[%zu]: program '%s' has no image %s here", step_index, program->name,
        digest_format(&step->image, text));
}

uint64_t plan_launch_param_bytes(const struct plan_launch *launch) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < launch->entry->arg_count; i++) {
        enum arg_kind kind = launch->args[i].kind;
        bytes += kind == ARG_WORDS ? 4 * launch->args[i].word_count : arg_kind_bytes(kind);
    }
    return bytes;
}

/* Arguments by value. For a parameter block in a buffer only a pointer counts. */
static enum err check_param_bytes(const struct plan_launch *launch, const struct gpu_limits *device,
    size_t step_index, struct error *err) {
    if (launch->entry->params_in_buffer) return ERR_OK;
    uint64_t bytes = plan_launch_param_bytes(launch);
    if (bytes <= device->param_bytes_max) return ERR_OK;
    return error_set(err, ERR_BAD_LAUNCH, 0, "give the program `params: buffer`",
        "steps[%zu]: arguments of %" PRIu64 " bytes, and the device takes %" PRIu32 " by value",
        step_index, bytes, device->param_bytes_max);
}

/* What the device has may be below the least, and is refused then. */
static uint32_t default_shared_bytes(const struct entry *entry, const struct gpu_limits *device) {
    uint32_t room = device->shared_bytes_max;
    if (room < entry->shared_bytes_least) room = entry->shared_bytes_least;
    return room < entry->shared_bytes ? room : entry->shared_bytes;
}

/* A step may ask for what the manifest allows. Less would let the kernel work where nothing is. */
static enum err check_shared_range(
    const struct job_step *step, const struct entry *entry, size_t step_index, struct error *err) {
    bool is_asked = entry->has_shared_range && step->has_shared_bytes;
    if (!is_asked || (step->shared_bytes >= entry->shared_bytes_least &&
                         step->shared_bytes <= entry->shared_bytes))
        return ERR_OK;
    return error_set(err, ERR_BAD_ARGUMENT, 0, "leave shared_bytes out, or keep to the range",
        "steps[%zu]: shared_bytes is %" PRIu32 ", and '%s' takes %" PRIu32 " to %" PRIu32,
        step_index, step->shared_bytes, entry->name, entry->shared_bytes_least,
        entry->shared_bytes);
}

enum err plan_step(const struct job *job, size_t step_index, const struct registry *registry,
    const struct gpu_limits *device, struct plan_launch *ret, struct error *err) {
    const struct job_step *step = &job->steps[step_index];
    enum err code = find_entry(step, registry, step_index, ret, err);
    if (code == ERR_OK) code = check_pin(step, ret->program, step_index, err);
    if (code == ERR_OK) code = check_args(job, step, ret->entry, step_index, err);
    if (code == ERR_OK) code = check_shared_range(step, ret->entry, step_index, err);
    if (code == ERR_OK) code = check_requirements(ret->entry, device, step_index, err);
    if (code == ERR_OK) code = plan_block(step, device, step_index, ret, err);
    if (code == ERR_OK) code = plan_grid(step, device, step_index, ret, err);
    if (code != ERR_OK) return code;

    ret->image = step->has_image ? &step->image : NULL;
    ret->args = step->args;
    ret->iterations = step->iterations;
    ret->cooperative = step->cooperative || ret->entry->cooperative;
    ret->shared_bytes =
        step->has_shared_bytes ? step->shared_bytes : default_shared_bytes(ret->entry, device);
    if (ret->cooperative && !device->cooperative && ret->entry->phase_count == 0)
        return error_set(err, ERR_UNSUPPORTED, 0,
            "give the entry `phases`, or send such jobs to workers with other GPUs",
            "steps[%zu]: '%s' is launched cooperatively, and this device cannot do that",
            step_index, ret->entry->name);
    if (ret->shared_bytes > device->shared_bytes_max)
        return error_set(err, ERR_BAD_LAUNCH, 0, "ask for less dynamic shared memory",
            "steps[%zu]: shared_bytes is %" PRIu32 ", and the device allows %" PRIu32, step_index,
            ret->shared_bytes, device->shared_bytes_max);
    code = check_param_bytes(ret, device, step_index, err);
    return code == ERR_OK ? plan_check_bounds(job, ret, step_index, err) : code;
}
