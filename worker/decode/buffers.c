#include <inttypes.h>

#include "decode/parts.h"

enum { RANK_MAX = 32 };

enum write_key { WRITE_INSTANCE, WRITE_OFFSET, WRITE_DATA, WRITE_KEYS };

static const struct field write_fields[] = {
    [WRITE_INSTANCE] = {KEY("instance"), OPTIONAL, parse_u32, offsetof(struct job_write, instance)},
    [WRITE_OFFSET] = {KEY("offset"), REQUIRED, parse_u64, offsetof(struct job_write, offset)},
    [WRITE_DATA] = {KEY("data"), REQUIRED, parse_bytes, offsetof(struct job_write, data)},
};

static enum err parse_write(struct walk *walk, const struct wire_value *value, void *ret) {
    const struct wire_value *found[WRITE_KEYS];
    struct job_write *write = ret;
    enum err code = walk_map(walk, value, FIELDS(write_fields), write, found);
    write->names_instance = found[WRITE_INSTANCE] != NULL;
    return code;
}

static enum err parse_writes(struct walk *walk, const struct wire_value *value, void *ret) {
    const struct array_field field = {.max = walk->limits->writes_max,
        .unit = "writes",
        .item_size = sizeof(struct job_write),
        .parse = parse_write};
    struct job_buffer *buffer = ret;
    void *writes;
    enum err code = walk_array(walk, value, &field, &writes, &buffer->write_count);
    if (code == ERR_OK) buffer->writes = writes;
    return code;
}

enum init_key { INIT_DATA, INIT_FILL, INIT_KEYS };

static const struct field init_fields[] = {
    [INIT_DATA] = {KEY("data"), OPTIONAL, parse_bytes, offsetof(struct job_buffer, data)},
    [INIT_FILL] = {KEY("fill"), OPTIONAL, parse_u8, offsetof(struct job_buffer, fill)},
};

static enum err parse_init(struct walk *walk, const struct wire_value *value, void *ret) {
    struct job_buffer *buffer = ret;
    const struct wire_value *found[INIT_KEYS];
    enum err code = walk_map(walk, value, FIELDS(init_fields), buffer, found);
    if (code != ERR_OK) return code;
    code = walk_one_of(walk, "data", found[INIT_DATA], "fill", found[INIT_FILL]);
    if (code != ERR_OK) return code;
    buffer->init = found[INIT_DATA] != NULL ? RESIDENT_INIT_DATA : RESIDENT_INIT_FILL;
    return ERR_OK;
}

static enum err parse_datatype(struct walk *walk, const struct wire_value *value, void *ret) {
    struct slice name;
    enum err code = walk_text(walk, value, NAME_BYTES_MAX, &name);
    if (code != ERR_OK) return code;
    enum datatype type = datatype_find(name);
    char quoted[QUOTED_SIZE];
    if (type == DATATYPE_NONE)
        return walk_fail(walk, ERR_BAD_JOB,
            "use BOOL, INT8 to INT64, UINT8 to UINT64, FP16, BF16, FP32 or FP64",
            "is %s, no known datatype", walk_quote(name, quoted));
    *(enum datatype *)ret = type;
    return ERR_OK;
}

static enum err parse_shape(struct walk *walk, const struct wire_value *value, void *ret) {
    static const struct array_field field = {
        .max = RANK_MAX, .item_size = sizeof(uint64_t), .parse = parse_u64};
    struct job_buffer *buffer = ret;
    void *shape;
    if (value->type == WIRE_ARRAY && value->count > RANK_MAX)
        return walk_fail(walk, ERR_BAD_JOB, "flatten the shape",
            "has %" PRIu32 " dimensions; at most %d are allowed", value->count, RANK_MAX);
    enum err code = walk_array(walk, value, &field, &shape, &buffer->rank);
    if (code == ERR_OK) buffer->shape = shape;
    return code;
}

enum buffer_key {
    KEY_BYTES,
    KEY_EACH,
    KEY_DATA,
    KEY_STATIC,
    KEY_BLOB,
    KEY_FILL,
    KEY_RESIDENT,
    KEY_INIT,
    KEY_EXPECT,
    KEY_WRITES,
    KEY_DATATYPE,
    KEY_SHAPE,
    BUFFER_KEYS
};

static const struct field buffer_fields[] = {
    [KEY_BYTES] = {KEY("bytes"), REQUIRED, parse_u64, offsetof(struct job_buffer, bytes)},
    [KEY_EACH] = {KEY("each"), OPTIONAL, parse_bool, offsetof(struct job_buffer, is_each)},
    [KEY_DATA] = {KEY("data"), OPTIONAL, parse_bytes, offsetof(struct job_buffer, data)},
    [KEY_STATIC] = {KEY("static"), OPTIONAL, parse_digest, offsetof(struct job_buffer, digest)},
    [KEY_BLOB] = {KEY("blob"), OPTIONAL, parse_digest, offsetof(struct job_buffer, digest)},
    [KEY_FILL] = {KEY("fill"), OPTIONAL, parse_u8, offsetof(struct job_buffer, fill)},
    [KEY_RESIDENT] = {KEY("resident"), OPTIONAL, parse_name, offsetof(struct job_buffer, resident)},
    [KEY_INIT] = {KEY("init"), OPTIONAL, parse_init, 0},
    [KEY_EXPECT] = {KEY("expect"), OPTIONAL, parse_u64, offsetof(struct job_buffer, expect)},
    [KEY_WRITES] = {KEY("writes"), OPTIONAL, parse_writes, 0},
    [KEY_DATATYPE] = {KEY("datatype"), OPTIONAL, parse_datatype,
        offsetof(struct job_buffer, datatype)},
    [KEY_SHAPE] = {KEY("shape"), OPTIONAL, parse_shape, 0},
};

/* The key that names the buffer's source, BUFFER_KEYS if there is none. `data` beside `static` is
 * the payload of a static that may be cold, no source of its own. */
static enum err find_source(struct walk *walk, const struct wire_value **found, size_t *ret) {
    static const enum buffer_key keys[] = {KEY_STATIC, KEY_BLOB, KEY_FILL, KEY_RESIDENT, KEY_DATA};
    *ret = BUFFER_KEYS;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (found[keys[i]] == NULL) continue;
        if (*ret == KEY_STATIC && keys[i] == KEY_DATA) continue;
        if (*ret != BUFFER_KEYS)
            return walk_fail(walk, ERR_BAD_JOB,
                "give a buffer one source; only a static may bring data along",
                "has two sources: \"%s\" and \"%s\"", field_name(&buffer_fields[*ret]),
                field_name(&buffer_fields[keys[i]]));
        *ret = keys[i];
    }
    return ERR_OK;
}

static enum err resolve_source(
    struct walk *walk, struct job_buffer *buffer, const struct wire_value **found) {
    size_t key;
    enum err code = find_source(walk, found, &key);
    if (code != ERR_OK) return code;
    switch (key) {
    case KEY_DATA: buffer->source = BUFFER_DATA; break;
    case KEY_STATIC: buffer->source = BUFFER_STATIC; break;
    case KEY_BLOB: buffer->source = BUFFER_BLOB; break;
    case KEY_RESIDENT: buffer->source = BUFFER_RESIDENT; break;
    default: buffer->source = BUFFER_FILL; break;
    }
    buffer->has_data = buffer->source == BUFFER_STATIC && found[KEY_DATA] != NULL;
    buffer->has_expect = found[KEY_EXPECT] != NULL;
    if (buffer->source != BUFFER_RESIDENT && (found[KEY_INIT] != NULL || buffer->has_expect))
        return walk_fail(walk, ERR_BAD_JOB, "name the resident, or remove the key",
            "has the key \"%s\", which only a resident may have",
            found[KEY_INIT] != NULL ? "init" : "expect");
    if (buffer->source == BUFFER_STATIC && buffer->write_count > 0)
        return walk_fail(walk, ERR_BAD_JOB, "send a blob, which is for this job only",
            "has writes, but a static never changes");
    return ERR_OK;
}

/* Of all instances; check_each() has found that it does not overflow. */
static uint64_t total_bytes(const struct walk *walk, const struct job_buffer *buffer) {
    return buffer->is_each ? buffer->bytes * walk->job->instances : buffer->bytes;
}

static enum err check_each(struct walk *walk, const struct job_buffer *buffer) {
    uint64_t total;
    if (!buffer->is_each) return ERR_OK;
    if (walk->job->instances == 0)
        return walk_fail(walk, ERR_BAD_JOB, "say with \"count\" how many instances the job has",
            "is for each instance, but the job has no \"count\"");
    if (buffer->source == BUFFER_STATIC)
        return walk_fail(walk, ERR_BAD_JOB, "send it as data or blob, or leave out \"each\"",
            "is a static for each instance, but a static is shared");
    if (__builtin_mul_overflow(buffer->bytes, walk->job->instances, &total)) total = UINT64_MAX;
    return walk_limit(
        walk, total, walk->limits->array_bytes_max, "bytes in all instances", "limits.array_bytes");
}

static enum err check_data(
    struct walk *walk, const struct job_buffer *buffer, const struct wire_value **found) {
    bool is_given = found[KEY_DATA] != NULL || buffer->init == RESIDENT_INIT_DATA;
    if (!is_given || buffer->data.size == total_bytes(walk, buffer)) return ERR_OK;
    if (buffer->is_each)
        return walk_fail(walk, ERR_BAD_JOB, "send the bytes of all instances, one behind the other",
            "has %zu bytes of data for %" PRIu32 " instances of %" PRIu64 " bytes",
            buffer->data.size, walk->job->instances, buffer->bytes);
    return walk_fail(walk, ERR_BAD_JOB, "make bytes and the length of data equal",
        "has %zu bytes of data for a buffer of %" PRIu64 " bytes", buffer->data.size,
        buffer->bytes);
}

static enum err check_writes(struct walk *walk, const struct job_buffer *buffer) {
    for (size_t i = 0; i < buffer->write_count; i++) {
        const struct job_write *write = &buffer->writes[i];
        bool is_inside =
            write->offset <= buffer->bytes && write->data.size <= buffer->bytes - write->offset;
        bool is_placed = write->names_instance == buffer->is_each &&
                         (!buffer->is_each || write->instance < walk->job->instances);
        if (is_inside && is_placed) continue;
        walk_enter_key(walk, slice_of_text("writes"));
        walk_enter_index(walk, i);
        if (write->names_instance != buffer->is_each)
            return walk_fail(walk, ERR_BAD_JOB,
                "name the instance in writes of \"each\" buffers, and only there",
                buffer->is_each ? "names no instance" : "names an instance of a shared buffer");
        if (!is_placed)
            return walk_fail(walk, ERR_BAD_JOB, "number the instances from 0 to count - 1",
                "names instance %" PRIu32 " of %" PRIu32, write->instance, walk->job->instances);
        return walk_fail(walk, ERR_BAD_JOB, "keep offset + length within the buffer",
            "puts %zu bytes at offset %" PRIu64 " of a buffer of %" PRIu64 " bytes",
            write->data.size, write->offset, buffer->bytes);
    }
    return ERR_OK;
}

/* Bytes of a tensor of `buffer`'s shape; false where 64 bits cannot hold them. */
static bool shape_bytes(const struct job_buffer *buffer, uint64_t *ret) {
    *ret = datatype_bytes(buffer->datatype);
    bool fits = true, is_empty = false;
    for (size_t i = 0; i < buffer->rank; i++) {
        is_empty = is_empty || buffer->shape[i] == 0;
        if (__builtin_mul_overflow(*ret, buffer->shape[i], ret)) fits = false;
    }
    if (is_empty) *ret = 0;
    return fits || is_empty;
}

static enum err check_tensor(
    struct walk *walk, const struct job_buffer *buffer, const struct wire_value **found) {
    if (buffer->datatype == DATATYPE_NONE) return ERR_OK;
    const char *name = datatype_name(buffer->datatype);
    size_t element = datatype_bytes(buffer->datatype);
    uint64_t bytes;
    if (buffer->bytes % element != 0)
        return walk_fail(walk, ERR_BAD_JOB, "make bytes a multiple of the element's size",
            "has %" PRIu64 " bytes, which is not a whole number of %s of %zu bytes", buffer->bytes,
            name, element);
    if (found[KEY_SHAPE] == NULL) return ERR_OK;
    if (!shape_bytes(buffer, &bytes))
        return walk_fail(walk, ERR_BAD_JOB, "make shape x datatype equal bytes",
            "has a shape of %s that 64 bits cannot count", name);
    if (bytes == buffer->bytes) return ERR_OK;
    return walk_fail(walk, ERR_BAD_JOB, "make shape x datatype equal bytes",
        "has %" PRIu64 " bytes, but its shape of %s takes %" PRIu64, buffer->bytes, name, bytes);
}

static enum err parse_buffer(
    struct walk *walk, const struct wire_value *value, struct job_buffer *buffer) {
    const struct wire_value *found[BUFFER_KEYS];
    enum err code = walk_map(walk, value, FIELDS(buffer_fields), buffer, found);
    if (code != ERR_OK) return code;
    code = walk_limit(
        walk, buffer->bytes, walk->limits->buffer_bytes_max, "bytes", "limits.job_bytes");
    if (code != ERR_OK) return code;
    code = resolve_source(walk, buffer, found);
    if (code == ERR_OK) code = check_each(walk, buffer);
    if (code != ERR_OK) return code;
    code = check_data(walk, buffer, found);
    if (code != ERR_OK) return code;
    code = check_writes(walk, buffer);
    if (code != ERR_OK) return code;
    return check_tensor(walk, buffer, found);
}

/* Names are looked for one by one: a job has few buffers, and their number has a limit. */
static bool has_name(const struct job_buffer *buffers, size_t count, struct slice name, size_t *i) {
    for (*i = 0; *i < count; (*i)++)
        if (slice_equal(buffers[*i].name, name)) return true;
    return false;
}

static enum err parse_buffer_name(
    struct walk *walk, const struct wire_value *key, struct slice *ret) {
    if (key->type != WIRE_TEXT)
        return walk_fail(walk, ERR_BAD_JOB, "name buffers by strings",
            "has a name that is %s; it must be a string", walk_type_name(key));
    *ret = wire_slice(key);
    if (text_is_valid(*ret, NAME_BYTES_MAX)) return ERR_OK;
    char quoted[QUOTED_SIZE];
    return walk_fail(walk, ERR_BAD_JOB, "choose another name",
        "has the name %s of %zu bytes; 1 to %d bytes of UTF-8 without NUL are allowed",
        walk_quote(*ret, quoted), ret->size, NAME_BYTES_MAX);
}

enum err parse_buffers(struct walk *walk, const struct wire_value *value, void *ret) {
    struct job *job = ret;
    enum err code = walk_is_map(walk, value);
    if (code != ERR_OK) return code;
    code = walk_limit(
        walk, value->count, walk->limits->buffers_max, "buffers", "limits.buffers_per_job");
    if (code != ERR_OK) return code;
    struct job_buffer *buffers;
    code = walk_alloc(walk, value->count, sizeof *buffers, (void **)&buffers);
    if (code != ERR_OK) return code;
    const struct wire_value *key = value + 1;
    for (size_t i = 0; i < value->count; i++, key = wire_next(wire_next(key))) {
        size_t earlier;
        code = parse_buffer_name(walk, key, &buffers[i].name);
        if (code != ERR_OK) return code;
        walk_enter_key(walk, buffers[i].name);
        if (has_name(buffers, i, buffers[i].name, &earlier))
            return walk_fail(walk, ERR_BAD_JOB, "name each buffer once", "is there twice");
        code = parse_buffer(walk, wire_next(key), &buffers[i]);
        if (code != ERR_OK) return code;
        walk_leave(walk);
    }
    job->buffers = buffers;
    job->buffer_count = value->count;
    return ERR_OK;
}

enum err find_buffer(struct walk *walk, const struct wire_value *value, size_t *ret) {
    struct slice name;
    enum err code = parse_name(walk, value, &name);
    if (code != ERR_OK) return code;
    if (has_name(walk->job->buffers, walk->job->buffer_count, name, ret)) return ERR_OK;
    char quoted[QUOTED_SIZE];
    return walk_fail(walk, ERR_BAD_JOB, "name one of the job's buffers",
        "names the buffer %s, which the job does not have", walk_quote(name, quoted));
}
