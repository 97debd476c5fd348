#include <inttypes.h>

#include "decode/parts.h"

static enum err parse_output_buffer(struct walk *walk, const struct wire_value *value, void *ret) {
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

static enum err parse_output(struct walk *walk, const struct wire_value *value, void *ret) {
    struct job_output *output = ret;
    const struct wire_value *found[OUTPUT_KEYS];
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
    if (walk->job->instances > 0 && !buffer->is_each)
        return walk_fail(walk, ERR_BAD_JOB, "read a buffer that has \"each\"",
            "reads a buffer that all instances share, which no kernel writes");
    output->is_whole = output->bytes == buffer->bytes;
    if (found[KEY_AS] == NULL) output->name = buffer->name;
    return ERR_OK;
}

static enum err check_names(struct walk *walk, const struct job_output *outputs, size_t count) {
    for (size_t i = 0; i < count; i++)
        for (size_t earlier = 0; earlier < i; earlier++) {
            if (!slice_equal(outputs[earlier].name, outputs[i].name)) continue;
            walk_enter_index(walk, i);
            return walk_fail(walk, ERR_BAD_JOB, "name each output once, with \"as\"",
                "has the name of outputs[%zu]", earlier);
        }
    return ERR_OK;
}

enum err read_outputs(struct walk *walk, const struct wire_value *value,
    const struct job_output **ret, size_t *count) {
    const struct array_field field = {.max = walk->limits->outputs_max,
        .unit = "outputs",
        .item_size = sizeof(struct job_output),
        .parse = parse_output};
    void *outputs;
    enum err code = walk_array(walk, value, &field, &outputs, count);
    if (code == ERR_OK) code = check_names(walk, outputs, *count);
    if (code == ERR_OK) *ret = outputs;
    return code;
}

enum err parse_outputs(struct walk *walk, const struct wire_value *value, void *ret) {
    struct job *job = ret;
    return read_outputs(walk, value, &job->outputs, &job->output_count);
}
