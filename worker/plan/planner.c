#include "plan/planner.h"

#include <inttypes.h>

#include "plan/extent.h"
#include "plan/launch.h"
#include "plan/signature.h"

enum {
    /* Smaller buffers are read back whole: separate copies would cost more than the bytes. */
    READ_WHOLE_BYTES = 64 << 10,
    /*
     * For all of a job's own buffers. With 768 KiB a kernel that works in host memory is 20 %
     * faster than copies (H200, PCIe 5); with more, clearing on the host costs as much as the
     * copies would.
     */
    STREAMED_BYTES_MAX = 1 << 20,
    LONG_INSTANCES_MAX = 65535, /* of a long job: they share launches, and so grid.y */
    /* The reference to an output in the blob store. */
    BLOB_REFERENCE_BYTES = 80,
    OUTPUT_OVERHEAD_BYTES = 64,
    STRIDE_ALIGNMENT = 16, /* of the instances of a buffer: the widest type that a kernel loads */
    RESIDENT_OVERHEAD_BYTES = 16
};

static enum err out_of_arena(struct error *err) {
    return error_set(err, ERR_NO_MEMORY, 0, "split the job, or give the process more memory",
        "no memory for the plan of the job");
}

static bool add_aligned(uint64_t *total, uint64_t bytes) {
    uint64_t padded;
    if (__builtin_add_overflow(bytes, PLAN_ALIGNMENT - 1, &padded)) return false;
    return !__builtin_add_overflow(*total, padded & ~(uint64_t)(PLAN_ALIGNMENT - 1), total);
}

static bool is_own(const struct job_buffer *buffer) {
    bool is_shared = buffer->source == BUFFER_STATIC || buffer->source == BUFFER_RESIDENT;
    return !is_shared && buffer->bytes > 0;
}

static bool has_payload(const struct job_buffer *buffer) {
    return buffer->source == BUFFER_DATA || buffer->source == BUFFER_BLOB;
}

/* Writes into instances are merged while staging, so what they are written to is uploaded. */
static bool is_uploaded(const struct job_buffer *buffer) {
    bool is_resident = buffer->source == BUFFER_RESIDENT;
    return has_payload(buffer) || (buffer->is_each && !is_resident && buffer->write_count > 0);
}

/* True if the buffer is read back whole with its group; false: each of its outputs alone. */
static bool is_read_whole(const struct job *job, size_t index) {
    const struct job_buffer *buffer = &job->buffers[index];
    uint64_t asked = 0;
    for (size_t i = 0; i < job->output_count; i++)
        if (job->outputs[i].buffer == index) asked += job->outputs[i].bytes; /* <= job limit */
    if (asked == 0 || !is_own(buffer)) return false;
    if (buffer->is_each) return true; /* pieces of each instance would be as many copies */
    return buffer->bytes <= READ_WHOLE_BYTES || asked >= buffer->bytes / 2;
}

static enum plan_group group_of(const struct job *job, size_t index) {
    const struct job_buffer *buffer = &job->buffers[index];
    if (!is_own(buffer)) return GROUP_NONE;
    bool is_read = is_read_whole(job, index);
    if (is_uploaded(buffer)) return is_read ? GROUP_INOUT : GROUP_INPUT;
    return is_read ? GROUP_OUTPUT : GROUP_SCRATCH;
}

/* Instances are side by side in a resident, and kernels load the widest type from any of them. What
 * all share is there before the first slice: no slice may be the one that makes it. */
static enum err check_array_resident(const struct job_buffer *buffer, struct error *err) {
    bool is_changed = buffer->init != RESIDENT_MUST_EXIST || buffer->write_count > 0;
    if (!buffer->is_each && is_changed)
        return error_set(err, ERR_BAD_ARGUMENT, 0,
            "send `init` and `writes` with a single job of the same key before, or give the buffer "
            "`each: true`",
            "buffer '%.*s' is a resident that all instances share, which an array can only read",
            SLICE_TEXT(buffer->name));
    if (buffer->is_each && buffer->bytes % STRIDE_ALIGNMENT != 0)
        return error_set(err, ERR_BAD_ARGUMENT, 0, "pad the part of each instance",
            "buffer '%.*s' has %" PRIu64 " bytes for each instance, and the parts of a resident "
            "have a multiple of %d",
            SLICE_TEXT(buffer->name), buffer->bytes, STRIDE_ALIGNMENT);
    return ERR_OK;
}

static enum err check_resident(
    const struct job *job, size_t index, const struct plan_limits *limits, struct error *err) {
    const struct job_buffer *buffer = &job->buffers[index];
    if (!limits->has_key_order)
        return error_set(err, ERR_UNSUPPORTED, 0, "set `ordering: key`",
            "buffer '%.*s' is a resident, which needs jobs of one key to run in order",
            SLICE_TEXT(buffer->name));
    for (size_t i = 0; i < index; i++)
        if (job->buffers[i].source == BUFFER_RESIDENT &&
            slice_equal(job->buffers[i].resident, buffer->resident))
            return error_set(err, ERR_BAD_ARGUMENT, 0, "name each resident once",
                "buffers '%.*s' and '%.*s' are the same resident", SLICE_TEXT(job->buffers[i].name),
                SLICE_TEXT(buffer->name));
    return job->instances > 0 ? check_array_resident(buffer, err) : ERR_OK;
}

static enum err check_sources(
    const struct job *job, const struct plan_limits *limits, struct error *err) {
    for (size_t i = 0; i < job->buffer_count; i++) {
        const struct job_buffer *buffer = &job->buffers[i];
        enum err code = ERR_OK;
        if (buffer->source == BUFFER_RESIDENT) code = check_resident(job, i, limits, err);
        if (code != ERR_OK) return code;
        if (buffer->source == BUFFER_STATIC && buffer->write_count > 0)
            return error_set(err, ERR_BAD_ARGUMENT, 0, "send this buffer as `data`",
                "buffer '%.*s': statics are shared by jobs and never written",
                SLICE_TEXT(buffer->name));
    }
    return ERR_OK;
}

static bool is_blob(const struct job *job, size_t output, const struct plan_limits *limits) {
    return limits->inline_bytes_max > 0 && job_output_bytes(job, output) > limits->inline_bytes_max;
}

static bool is_spooled(const struct job *job, size_t output, const struct plan_limits *limits) {
    return job->instances > 0 && is_blob(job, output, limits);
}

/* Of all instances. */
static enum err check_array_outputs(
    const struct job *job, const struct plan_limits *limits, struct error *err) {
    uint64_t total = 0;
    for (size_t i = 0; i < job->output_count; i++)
        if (__builtin_add_overflow(total, job_output_bytes(job, i), &total) ||
            total > limits->array_bytes_max)
            return error_set(err, ERR_RESULT_TOO_LARGE, 0,
                "split the job, read back fewer bytes, or raise limits.array_bytes",
                "outputs up to '%.*s' take more than the %" PRIu64 " bytes that those of an array "
                "may have",
                SLICE_TEXT(job->outputs[i].name), limits->array_bytes_max);
    return ERR_OK;
}

/* Outputs go through host memory, whether they are in the result or in the blob store. */
static enum err check_output_bytes(
    const struct job *job, const struct plan_limits *limits, struct error *err) {
    uint64_t total = 0;
    enum err code = job->instances > 0 ? check_array_outputs(job, limits, err) : ERR_OK;
    for (size_t i = 0; i < job->output_count && code == ERR_OK; i++) {
        const struct job_output *output = &job->outputs[i];
        uint64_t bytes = job_output_bytes(job, i);
        if (is_spooled(job, i, limits)) continue;
        if (is_blob(job, i, limits) && bytes > limits->blob_bytes_max)
            return error_set(err, ERR_RESULT_TOO_LARGE, 0,
                "read back fewer bytes, or raise blobs.bytes_max",
                "output '%.*s' has %" PRIu64 " bytes, and a blob may have %" PRIu64,
                SLICE_TEXT(output->name), bytes, limits->blob_bytes_max);
        if (__builtin_add_overflow(total, bytes, &total) || total > limits->job_bytes_max)
            return error_set(err, ERR_RESULT_TOO_LARGE, 0,
                "read back fewer bytes, or raise limits.job_bytes",
                "outputs up to '%.*s' take more than the %" PRIu64 " bytes that a job may use",
                SLICE_TEXT(output->name), limits->job_bytes_max);
    }
    return code;
}

/* The most that the result may need: numbers and names around the outputs vary. */
static uint64_t result_bytes(const struct job *job, const struct plan_limits *limits) {
    uint64_t bytes = PLAN_RESULT_OVERHEAD_BYTES + job->id.size;
    if (job->long_job != NULL) bytes += 5ull * job->instances; /* rounds, and how each has ended */
    for (size_t i = 0; i < job->buffer_count; i++)
        if (job->buffers[i].source == BUFFER_RESIDENT)
            bytes += RESIDENT_OVERHEAD_BYTES + job->buffers[i].resident.size;
    for (size_t i = 0; i < job->output_count; i++) {
        const struct job_output *output = &job->outputs[i];
        uint64_t carried =
            is_blob(job, i, limits) ? BLOB_REFERENCE_BYTES : job_output_bytes(job, i);
        bytes +=
            OUTPUT_OVERHEAD_BYTES + output->name.size + 9 * (job->buffers[output->buffer].rank + 1);
        if (__builtin_add_overflow(bytes, carried, &bytes)) return UINT64_MAX;
    }
    return bytes;
}

static enum err check_result_bytes(
    const struct job *job, const struct plan_limits *limits, struct plan *plan, struct error *err) {
    uint64_t bytes = result_bytes(job, limits);
    if (job->output_count > 0 && bytes > limits->result_bytes_max)
        return error_set(err, ERR_RESULT_TOO_LARGE, 0,
            "read back fewer bytes, or raise limits.result_bytes and what the topic accepts",
            "the outputs, and what else a result says, need up to %" PRIu64
            " bytes, more than the %" PRIu64 " bytes of limits.result_bytes",
            bytes, limits->result_bytes_max);
    plan->result_bytes_max = bytes;
    return ERR_OK;
}

static bool launch_writes(const struct plan_launch *launch, size_t buffer) {
    for (size_t i = 0; i < launch->entry->arg_count; i++) {
        enum arg_role role = launch->entry->args[i].role;
        if ((role == ROLE_OUT || role == ROLE_INOUT) && launch->args[i].buffer == buffer)
            return true;
    }
    return false;
}

static bool is_update(const struct plan *plan, size_t index) {
    const struct job_buffer *buffer = &plan->job->buffers[index];
    if (buffer->source != BUFFER_RESIDENT) return false;
    bool is_written = buffer->write_count > 0;
    for (size_t i = 0; i < plan->launch_count && !is_written; i++)
        is_written = launch_writes(&plan->launches[i], index);
    return is_written;
}

static uint64_t stride_of(uint64_t bytes) {
    return (bytes + STRIDE_ALIGNMENT - 1) & ~(uint64_t)(STRIDE_ALIGNMENT - 1);
}

static enum err place_buffers(
    struct job *job, const struct plan_limits *limits, struct plan *plan, struct error *err) {
    struct plan_buffer *buffers = arena_alloc(&job->arena, job->buffer_count, sizeof *buffers);
    if (buffers == NULL) return out_of_arena(err);
    uint64_t total = 0;
    for (size_t i = 0; i < job->buffer_count; i++) {
        const struct job_buffer *buffer = &job->buffers[i];
        enum plan_group group = group_of(job, i);
        buffers[i] = (struct plan_buffer){.group = group, .bytes = buffer->bytes};
        if (buffer->is_each) /* no overflow: it is within limits.job_bytes */
            buffers[i].stride = stride_of(buffer->bytes);
        if (buffer->source == BUFFER_RESIDENT) plan->resident_count++;
        buffers[i].is_update = is_update(plan, i);
        if (group == GROUP_NONE) continue;
        if (!add_aligned(&total, buffer->bytes) || total > limits->job_bytes_max)
            return error_set(err, ERR_TOO_LARGE, 0, "split the job, or raise limits.job_bytes",
                "buffers up to '%.*s' (%" PRIu64 " bytes) take more than the %" PRIu64
                " bytes that a job may use",
                SLICE_TEXT(buffer->name), buffer->bytes, limits->job_bytes_max);
        if (has_payload(buffer))
            plan->h2d_bytes += buffer->bytes * (buffer->is_each ? job->instances : 1);
        if (buffer->is_each) continue;
        buffers[i].offset = plan->group_bytes[group];
        (void)add_aligned(&plan->group_bytes[group], buffer->bytes); /* <= total */
    }
    plan->buffers = buffers;
    return ERR_OK;
}

/* NULL if the launch has none. */
static const struct job_arg *param_block_of(const struct plan_launch *launch) {
    return launch->entry->params_in_buffer ? &launch->args[launch->entry->arg_count - 1] : NULL;
}

/* Finds an earlier launch with the same parameter block: equal blocks are uploaded once. */
static const struct plan_launch *find_equal_param_block(
    const struct plan_launch *launches, size_t index) {
    const struct job_arg *wanted = param_block_of(&launches[index]);
    for (size_t i = 0; i < index; i++) {
        const struct job_arg *block = param_block_of(&launches[i]);
        if (block != NULL && block->each == NULL &&
            slice_equal(job_arg_words(block, 0), job_arg_words(wanted, 0)))
            return &launches[i];
    }
    return NULL;
}

/* Parameter blocks are placed after the buffers that are only uploaded. */
static void place_param_blocks(struct plan *plan, struct plan_launch *launches) {
    for (size_t i = 0; i < plan->launch_count; i++) {
        const struct job_arg *block = param_block_of(&launches[i]);
        if (block == NULL) continue;
        if (block->each != NULL) {
            launches[i].param_block_stride = stride_of(4 * block->word_count);
            continue;
        }
        const struct plan_launch *equal = find_equal_param_block(launches, i);
        launches[i].param_block_offset =
            equal != NULL ? equal->param_block_offset : plan->group_bytes[GROUP_INPUT];
        if (equal == NULL) /* the message holds them: no overflow */
            (void)add_aligned(&plan->group_bytes[GROUP_INPUT], 4 * block->word_count);
    }
}

static enum err plan_fills(struct job *job, struct plan *plan, struct error *err) {
    struct plan_fill *fills = arena_alloc(&job->arena, job->buffer_count, sizeof *fills);
    if (fills == NULL) return out_of_arena(err);
    for (size_t i = 0; i < job->buffer_count; i++) {
        const struct job_buffer *buffer = &job->buffers[i];
        bool is_init = buffer->init == RESIDENT_INIT_FILL;
        bool is_cleared = buffer->source == BUFFER_FILL && buffer->fill == 0; /* with its group */
        bool is_filled =
            is_init || (buffer->source == BUFFER_FILL && !is_cleared && !is_uploaded(buffer));
        if (is_filled && buffer->bytes > 0)
            fills[plan->fill_count++] =
                (struct plan_fill){.buffer = i, .value = buffer->fill, .is_init = is_init};
    }
    plan->fills = fills;
    return ERR_OK;
}

static void add_write(struct plan *plan, struct plan_write *writes, struct plan_write write) {
    if (write.data.size == 0) return;
    writes[plan->write_count++] = write;
    if (write.is_init && plan->buffers[write.buffer].stride > 0)
        return;                                                     /* as much as a slice has */
    (void)add_aligned(&plan->write_staging_bytes, write.data.size); /* the message holds it */
}

/* Writes into an uploaded buffer are merged while staging. Only writes into a filled buffer or a
 * resident need copies of their own, after the resident's initial value. */
static enum err plan_writes(struct job *job, struct plan *plan, struct error *err) {
    size_t count = job->buffer_count;
    for (size_t i = 0; i < job->buffer_count; i++) count += job->buffers[i].write_count;
    struct plan_write *writes = arena_alloc(&job->arena, count, sizeof *writes);
    if (writes == NULL) return out_of_arena(err);
    for (size_t i = 0; i < job->buffer_count; i++) {
        const struct job_buffer *buffer = &job->buffers[i];
        if (buffer->init == RESIDENT_INIT_DATA)
            add_write(plan, writes,
                (struct plan_write){.buffer = i, .data = buffer->data, .is_init = true});
        for (size_t k = 0; k < buffer->write_count; k++) {
            const struct job_write *write = &buffer->writes[k];
            plan->h2d_bytes += write->data.size; /* the message holds them: no overflow */
            if (!is_uploaded(buffer))
                add_write(plan, writes,
                    (struct plan_write){.buffer = i,
                        .instance = write->instance,
                        .offset = write->offset,
                        .data = write->data});
        }
    }
    plan->writes = writes;
    return ERR_OK;
}

static enum err plan_outputs(
    struct job *job, const struct plan_limits *limits, struct plan *plan, struct error *err) {
    struct plan_output *outputs = arena_alloc(&job->arena, job->output_count, sizeof *outputs);
    if (outputs == NULL) return out_of_arena(err);
    for (size_t i = 0; i < job->output_count; i++) {
        const struct job_output *output = &job->outputs[i];
        enum plan_group group = plan->buffers[output->buffer].group;
        plan->d2h_bytes += job_output_bytes(job, i);
        outputs[i].is_stored = is_blob(job, i, limits);
        outputs[i].is_spooled = is_spooled(job, i, limits);
        outputs[i].is_unpacked = output->bytes > 0 && group != GROUP_INOUT && group != GROUP_OUTPUT;
    }
    plan->outputs = outputs;
    plan->output_staging_bytes = extent_output_bytes(plan, 1);
    return ERR_OK;
}

/* Where instances share launches, their number does not count; else each has its own. */
static enum err check_array_launches(const struct job *job, const struct plan_limits *limits,
    const struct plan *plan, struct error *err) {
    bool are_shared = true;
    for (size_t i = 0; i < plan->launch_count; i++)
        are_shared = are_shared && plan->launches[i].entry->batched != NULL;
    uint64_t launches = plan->kernel_launches;
    if (job->long_job != NULL) launches *= job_instances(job);
    if (job->instances == 0 || are_shared || launches <= limits->launches_max) return ERR_OK;
    return error_set(err, ERR_TOO_LARGE, 0,
        "split the job, raise limits.launches_per_job of the worker, or give the entry `batched`",
        "%" PRIu32 " instances make %" PRIu64 " launches, at most %" PRIu32
        " are allowed (limits.launches_per_job)",
        job->instances, launches, limits->launches_max);
}

static enum err plan_launches(struct job *job, const struct registry *registry,
    const struct plan_limits *limits, struct plan *plan, struct plan_launch *launches,
    struct error *err) {
    for (size_t i = 0; i < job->step_count; i++) {
        enum err code = plan_step(job, i, registry, &limits->device, &launches[i], err);
        if (code != ERR_OK) return code;
        /* no overflow: <= limits at decoding, and below 2^32 instances */
        uint64_t times = launches[i].iterations;
        if (job->long_job == NULL) times *= (uint64_t)job->repeat * job_instances(job);
        plan->kernel_launches += times;
        plan->param_bytes += times * plan_launch_param_bytes(&launches[i]);
    }
    plan->launches = launches;
    plan->launch_count = job->step_count;
    return check_array_launches(job, limits, plan, err);
}

static bool streams_args(const struct plan *plan, const struct plan_launch *launch) {
    for (size_t i = 0; i < launch->entry->arg_count; i++) {
        const struct job_arg *arg = &launch->args[i];
        if (arg->kind != ARG_BUFFER || plan->buffers[arg->buffer].group == GROUP_NONE) continue;
        if (!launch->entry->args[i].is_streamed) return false;
        for (size_t k = 0; k < i; k++)
            if (launch->args[k].kind == ARG_BUFFER && launch->args[k].buffer == arg->buffer)
                return false;
    }
    return true;
}

static uint64_t own_bytes(const struct plan *plan) {
    uint64_t bytes = 0;
    for (int group = 0; group < GROUP_COUNT; group++) bytes += plan->group_bytes[group];
    return bytes;
}

/* True for one launch of an entry that uses each byte once, without residents and without outputs
 * from statics. */
static bool is_streamed(const struct plan *plan) {
    const struct job *job = plan->job;
    const struct plan_launch *launch = &plan->launches[0];
    bool is_single = plan->launch_count == 1 && job->repeat == 1 && launch->iterations == 1 &&
                     job->long_job == NULL;
    bool is_plain = plan->resident_count == 0 && !launch->entry->params_in_buffer;
    if (!is_single || !is_plain || launch->cooperative || job->instances > 0) return false;
    if (own_bytes(plan) > STREAMED_BYTES_MAX) return false;
    for (size_t i = 0; i < job->output_count; i++)
        if (job->outputs[i].bytes > 0 && plan->buffers[job->outputs[i].buffer].group == GROUP_NONE)
            return false;
    return streams_args(plan, launch);
}

/* An instance is done after the last launch of a round, and what says so is written once. */
static enum err check_until(const struct job *job, const struct plan *plan, struct error *err) {
    size_t last = plan->launch_count - 1, buffer = job->long_job->until, writers = 0;
    for (size_t i = 0; i < plan->launch_count; i++)
        writers += launch_writes(&plan->launches[i], buffer);
    if (writers == 1 && launch_writes(&plan->launches[last], buffer) &&
        plan->launches[last].iterations == 1)
        return ERR_OK;
    return error_set(err, ERR_BAD_ARGUMENT, 0,
        "let the last step alone write it, with iterations: 1",
        "until: '%.*s' is written by %zu of %zu steps, and not by the last step alone, once a "
        "round",
        SLICE_TEXT(job->buffers[buffer].name), writers, plan->launch_count);
}

/* What a long job needs of the worker, and of its steps. */
static enum err check_long_job(const struct job *job, const struct plan_limits *limits,
    const struct plan *plan, struct error *err) {
    if (job->long_job == NULL) return ERR_OK;
    if (limits->isolates)
        return error_set(err, ERR_UNSUPPORTED, 0, "send it to workers with batch.isolation: none",
            "a long job keeps its buffers on the device between its turns, and this worker "
            "separates tenants (batch.isolation)");
    if (job->instances > LONG_INSTANCES_MAX)
        return error_set(err, ERR_UNSUPPORTED, 0, "split the job",
            "a long job has at most %d instances, this one %" PRIu32, LONG_INSTANCES_MAX,
            job->instances);
    for (size_t i = 0; i < job->buffer_count; i++)
        if (plan->buffers[i].is_update)
            return error_set(err, ERR_UNSUPPORTED, 0,
                "copy it to a buffer of the job, and write it back with a job of its own",
                "a long job changes the resident '%.*s'", SLICE_TEXT(job->buffers[i].resident));
    return job->long_job->has_until ? check_until(job, plan, err) : ERR_OK;
}

enum err plan_job(struct job *job, const struct registry *registry,
    const struct plan_limits *limits, const struct plan **ret, struct error *err) {
    struct plan *plan = arena_alloc(&job->arena, 1, sizeof *plan);
    struct plan_launch *launches = arena_alloc(&job->arena, job->step_count, sizeof *launches);
    if (plan == NULL || launches == NULL) return out_of_arena(err);
    plan->job = job;
    enum err code = check_sources(job, limits, err);
    if (code == ERR_OK) code = check_result_bytes(job, limits, plan, err);
    /* first, because later sums of outputs cannot overflow once this has passed */
    if (code == ERR_OK) code = check_output_bytes(job, limits, err);
    if (code == ERR_OK) code = plan_launches(job, registry, limits, plan, launches, err);
    if (code == ERR_OK) code = place_buffers(job, limits, plan, err);
    if (code == ERR_OK) code = check_long_job(job, limits, plan, err);
    if (code != ERR_OK) return code;
    place_param_blocks(plan, launches);
    code = plan_fills(job, plan, err);
    if (code == ERR_OK) code = plan_writes(job, plan, err);
    if (code == ERR_OK) code = plan_outputs(job, limits, plan, err);
    if (code != ERR_OK) return code;
    plan->is_streamed = is_streamed(plan);
    plan->signature = plan_signature(plan);
    *ret = plan;
    return ERR_OK;
}
