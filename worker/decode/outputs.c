#include <inttypes.h>

#include "decode/parts.h"

static enum err parse_output_buffer(struct walk *walk, const msgpack_object *value, void *ret) {
    return find_buffer(walk, value, ret);
}

enum output_key { KEY_BUFFER, KEY_OFFSET, KEY_BYTES, KEY_AS, OUTPUT_KEYS };

static const struct field output_fields[] = {
    [KEY_BUFFER] = {KEY("buffer"), REQUIRED, parse_output_buffer,
        offsetof(struct job_output, buffer)},
    [KEY_OFFSET] = {KEY("offset"), OPTIONAL, parse_u64, offsetof(struct job_output, offset)},
    [KEY_BYTES] = {KEY("bytes"), OPTIONAL, parse_u64, offsetof(struct job_output, bytes)},
    [KEY_AS] = {KEY("as"), OPTIONAL, parse_name, offsetof(struct job_output, name)},
};

static enum err parse_output(
    struct walk *walk, const msgpack_object *value, struct job_output *output) {
    const msgpack_object *found[OUTPUT_KEYS];
    enum err code = walk_map(walk, value, FIELDS(output_fields), output, found);
    if (code != ERR_OK) return code;
    const struct job_buffer *buffer = &walk->job->buffers[output->buffer];
    bool starts_inside = output->offset <= buffer->bytes;
    uint64_t rest = starts_inside ? buffer->bytes - output->offset : 0;
    if (found[KEY_BYTES] == NULL) output->bytes = rest;
    if (!starts_inside || output->bytes > rest)
        return walk_fail(walk, ERR_BAD_JOB, "keep offset + bytes within the buffer",
            "reads %" PRIu64 " bytes at offset %" PRIu64 " of a buffer of %" PRIu64 " bytes",
            output->bytes, output->offset, buffer->bytes);
    output->is_whole = output->bytes == buffer->bytes;
    if (found[KEY_AS] == NULL) output->name = buffer->name;
    return ERR_OK;
}

enum err parse_outputs(struct walk *walk, const msgpack_object *value, void *ret) {
    struct job *job = ret;
    enum err code = walk_is_array(walk, value);
    if (code != ERR_OK) return code;
    const msgpack_object_array *items = &value->via.array;
    code = walk_limit(walk, items->size, walk->limits->outputs_max, "outputs", NULL);
    if (code != ERR_OK) return code;
    struct job_output *outputs;
    code = walk_alloc(walk, items->size, sizeof *outputs, (void **)&outputs);
    if (code != ERR_OK) return code;
    for (size_t i = 0; i < items->size; i++) {
        walk_enter_index(walk, i);
        code = parse_output(walk, &items->ptr[i], &outputs[i]);
        if (code != ERR_OK) return code;
        for (size_t earlier = 0; earlier < i; earlier++)
            if (slice_equal(outputs[earlier].name, outputs[i].name))
                return walk_fail(walk, ERR_BAD_JOB, "name each output once, with \"as\"",
                    "has the name of outputs[%zu]", earlier);
        walk_leave(walk);
    }
    job->outputs = outputs;
    job->output_count = items->size;
    return ERR_OK;
}
