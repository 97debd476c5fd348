/* Any bytes as a job: refused with a sentence, or whole: every index and range in it holds. */
#include <string.h>

#include "base/wire.h"
#include "decode/decode.h"
#include "decode/print.h"
#include "fuzz.h"

static const struct decode_limits limits = {
    .message_bytes_max = 1 << 16,
    .arena_bytes_max = 1 << 18,
    .buffers_max = 64,
    .steps_max = 16,
    .args_max = 64,
    .outputs_max = 64,
    .writes_max = 64,
    .buffer_bytes_max = (uint64_t)1 << 40,
    .array_bytes_max = (uint64_t)1 << 40,
    .launches_max = 100000,
    .instances_max = 1000,
    .timeout_ms_min = 100,
    .timeout_ms_max = 600000,
    .long_ms_max = 86400000,
};

/* Reads all of it, so that a sanitizer sees a view of what is not there. */
static void check_inside(struct slice part, struct slice whole) {
    FUZZ_CHECK(part.size <= whole.size);
    if (part.size == 0) return;
    FUZZ_CHECK(
        part.data >= whole.data && part.data - whole.data <= (ptrdiff_t)(whole.size - part.size));
}

static void check_name(struct slice name, size_t max, struct slice payload) {
    FUZZ_CHECK(name.size >= 1 && name.size <= max && slice_is_utf8(name));
    check_inside(name, payload);
}

static void check_buffer(const struct job *job, const struct job_buffer *buffer) {
    struct slice payload = job->delivery->payload;
    check_name(buffer->name, 128, payload);
    check_inside(buffer->data, payload);
    uint64_t total = buffer->bytes * (buffer->is_each ? job->instances : 1);
    FUZZ_CHECK(total <= limits.array_bytes_max && buffer->bytes <= limits.buffer_bytes_max);
    FUZZ_CHECK(!buffer->is_each || (job->instances > 0 && buffer->source != BUFFER_STATIC));
    bool holds_data = buffer->source == BUFFER_DATA || buffer->has_data ||
                      (buffer->source == BUFFER_RESIDENT && buffer->init == RESIDENT_INIT_DATA);
    FUZZ_CHECK(!holds_data || buffer->data.size == total);
    FUZZ_CHECK(buffer->source == BUFFER_RESIDENT ||
               (buffer->init == RESIDENT_MUST_EXIST && !buffer->has_expect));
    if (buffer->source == BUFFER_RESIDENT) check_name(buffer->resident, 128, payload);
    for (size_t i = 0; i < buffer->write_count; i++) {
        const struct job_write *write = &buffer->writes[i];
        check_inside(write->data, payload);
        FUZZ_CHECK(write->names_instance == buffer->is_each);
        FUZZ_CHECK(write->instance == 0 || write->instance < job->instances);
        FUZZ_CHECK(
            write->offset <= buffer->bytes && write->data.size <= buffer->bytes - write->offset);
    }
    for (size_t i = 0; i < buffer->rank; i++)
        FUZZ_CHECK(buffer->datatype == DATATYPE_NONE || buffer->bytes == 0 ||
                   (buffer->shape[i] >= 1 && buffer->shape[i] <= buffer->bytes));
}

static uint64_t check_step(const struct job *job, const struct job_step *step) {
    check_name(step->program, 128, job->delivery->payload);
    FUZZ_CHECK(step->iterations >= 1 && step->arg_count <= limits.args_max);
    for (int i = 0; i < 3; i++) {
        FUZZ_CHECK((step->elements == 0) == (step->grid[i] >= 1));
        FUZZ_CHECK(step->has_block == (step->block[i] >= 1));
    }
    uint64_t sum = 0;
    for (size_t i = 0; i < step->arg_count; i++) {
        const struct job_arg *arg = &step->args[i];
        FUZZ_CHECK(arg->kind != ARG_BUFFER || arg->buffer < job->buffer_count);
        bool is_each = arg->each != NULL;
        size_t bytes = arg->kind == ARG_WORDS ? 4 * arg->word_count : arg_kind_bytes(arg->kind);
        for (size_t k = 0; k < arg->word_count && !is_each; k++) sum += arg->words[k];
        for (uint32_t k = 0; is_each && k < job->instances; k++) sum += job_arg_bits(arg, k) & 1;
        if (is_each)
            check_inside(slice_of(arg->each, bytes * job->instances), job->delivery->payload);
    }
    FUZZ_CHECK(sum <= UINT32_MAX * (uint64_t)limits.message_bytes_max);
    return step->iterations;
}

static void check_outputs(const struct job *job, const struct job_output *outputs, size_t count) {
    FUZZ_CHECK(count <= limits.outputs_max);
    for (size_t i = 0; i < count; i++) {
        const struct job_output *output = &outputs[i];
        check_name(output->name, 128, job->delivery->payload);
        FUZZ_CHECK(output->buffer < job->buffer_count);
        FUZZ_CHECK(job->instances == 0 || job->buffers[output->buffer].is_each);
        uint64_t bytes = job->buffers[output->buffer].bytes;
        FUZZ_CHECK(output->offset <= bytes && output->bytes <= bytes - output->offset);
        FUZZ_CHECK(output->is_whole == (output->bytes == bytes));
    }
}

static void check_long_job(const struct job *job, const struct long_job *long_job) {
    uint64_t shown = 0;
    FUZZ_CHECK(long_job->time_ms >= 1 && long_job->time_ms <= limits.long_ms_max);
    FUZZ_CHECK(!long_job->has_until ||
               (long_job->until < job->buffer_count && job->buffers[long_job->until].bytes == 4));
    FUZZ_CHECK(long_job->every_ms == 0 ? long_job->shown_count == 0
                                       : long_job->every_ms >= PROGRESS_EVERY_MS_MIN);
    check_outputs(job, long_job->shown, long_job->shown_count);
    for (size_t i = 0; i < long_job->shown_count; i++) shown += long_job->shown[i].bytes;
    FUZZ_CHECK(shown <= PROGRESS_BYTES_MAX / (job->instances > 0 ? job->instances : 1));
    FUZZ_CHECK(long_job->shown_count == 0 || long_job->found != NULL);
}

static void check_job(const struct job *job) {
    uint64_t launches = 0;
    FUZZ_CHECK(job->instances <= limits.instances_max);
    FUZZ_CHECK(job->step_count >= 1 && job->step_count <= limits.steps_max);
    FUZZ_CHECK(job->buffer_count <= limits.buffers_max);
    for (size_t i = 0; i < job->buffer_count; i++) check_buffer(job, &job->buffers[i]);
    for (size_t i = 0; i < job->step_count; i++) launches += check_step(job, &job->steps[i]);
    /* a long job is bounded round by round */
    uint64_t rounds = job->long_job != NULL ? 1 : job->repeat;
    FUZZ_CHECK(job->repeat >= 1 && launches <= limits.launches_max / rounds);
    check_outputs(job, job->outputs, job->output_count);
    if (job->long_job != NULL) check_long_job(job, job->long_job);
}

static void check_print(struct slice payload) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    FUZZ_CHECK(out != NULL);
    print_message_payload(payload, out);
    fclose(out);
    for (size_t i = 0; i < size; i++)
        FUZZ_CHECK(text[i] == '\n' || ((uint8_t)text[i] >= 0x20 && text[i] != 0x7f));
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const struct delivery message = {
        .position = {.topic = "fuzz"}, .payload = slice_of(data, size)};
    struct delivery *delivery = delivery_create(&message);
    struct job *job = job_create(delivery);
    struct error err = {0};
    size_t values;
    FUZZ_CHECK(delivery != NULL && job != NULL);
    enum err code = decode_job(job, &limits, &err);
    bool has_id = job->id.size > 0;
    if (code == ERR_OK) check_job(job);
    else FUZZ_CHECK(err.code == code && err.message[0] != 0 && err.fix[0] != 0);
    FUZZ_CHECK((code == ERR_BAD_MESSAGE) == !has_id);
    if (has_id) {
        check_name(job->id, 256, job->delivery->payload);
        check_inside(job->reply_to, job->delivery->payload);
        FUZZ_CHECK(wire_check(job->delivery->payload, &values, &err) == ERR_OK && values <= size);
    }
    check_print(message.payload);
    job_destroy(job);
    return 0;
}
