#include <inttypes.h>
#include <math.h>

#include "decode/parts.h"

static enum err parse_arg_u32(struct walk *walk, const struct wire_value *value, void *ret) {
    struct job_arg *arg = ret;
    arg->kind = ARG_U32;
    return walk_uint(walk, value, 0, UINT32_MAX, &arg->bits);
}

static enum err parse_arg_i32(struct walk *walk, const struct wire_value *value, void *ret) {
    struct job_arg *arg = ret;
    int64_t wide = 0;
    enum err code = walk_int(walk, value, INT32_MIN, INT32_MAX, &wide);
    arg->kind = ARG_I32;
    arg->bits = (uint32_t)wide;
    return code;
}

static enum err parse_arg_u64(struct walk *walk, const struct wire_value *value, void *ret) {
    struct job_arg *arg = ret;
    arg->kind = ARG_U64;
    return walk_uint(walk, value, 0, UINT64_MAX, &arg->bits);
}

static enum err parse_arg_i64(struct walk *walk, const struct wire_value *value, void *ret) {
    struct job_arg *arg = ret;
    int64_t wide = 0;
    enum err code = walk_int(walk, value, INT64_MIN, INT64_MAX, &wide);
    arg->kind = ARG_I64;
    arg->bits = (uint64_t)wide;
    return code;
}

static enum err parse_arg_f32(struct walk *walk, const struct wire_value *value, void *ret) {
    struct job_arg *arg = ret;
    double wide = 0;
    enum err code = walk_number(walk, value, &wide);
    if (code != ERR_OK) return code;
    float narrow = (float)wide;
    if (isinf(narrow) && !isinf(wide))
        return walk_fail(walk, ERR_BAD_JOB, "send a number that 32 bits can hold, or use f64",
            "is %g, too large for 32 bits", wide);
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    arg->kind = ARG_F32;
    arg->bits = bits;
    return ERR_OK;
}

static enum err parse_arg_f64(struct walk *walk, const struct wire_value *value, void *ret) {
    struct job_arg *arg = ret;
    double wide = 0;
    enum err code = walk_number(walk, value, &wide);
    arg->kind = ARG_F64;
    memcpy(&arg->bits, &wide, sizeof arg->bits);
    return code;
}

static enum err parse_arg_words(struct walk *walk, const struct wire_value *value, void *ret) {
    static const struct array_field field = {
        .max = UINT64_MAX, .item_size = sizeof(uint32_t), .parse = parse_u32};
    struct job_arg *arg = ret;
    void *words;
    enum err code = walk_array(walk, value, &field, &words, &arg->word_count);
    arg->kind = ARG_WORDS;
    if (code == ERR_OK) arg->words = words;
    return code;
}

/* {each: {words: <bin>}}: a parameter block for each instance; all have as many words. */
static enum err check_words_each(struct walk *walk, struct job_arg *arg, size_t size) {
    uint64_t instances = walk->job->instances;
    if (size % (4 * instances) != 0)
        return walk_fail(walk, ERR_BAD_JOB, "send the words of all instances",
            "has %zu bytes, which are not as many words of 4 bytes for each of %" PRIu64
            " instances",
            size, instances);
    arg->word_count = size / (4 * instances);
    walk_leave(walk);
    return ERR_OK;
}

/* {each: {f32: <bin>}}: one value for each instance, as they lie in memory. */
static enum err parse_arg_each(struct walk *walk, const struct wire_value *value, void *ret) {
    static const struct {
        struct slice key;
        enum arg_kind kind;
    } kinds[] = {{KEY("u32"), ARG_U32}, {KEY("i32"), ARG_I32}, {KEY("u64"), ARG_U64},
        {KEY("i64"), ARG_I64}, {KEY("f32"), ARG_F32}, {KEY("f64"), ARG_F64},
        {KEY("words"), ARG_WORDS}};
    struct job_arg *arg = ret;
    struct slice bytes, key;
    uint32_t instances = walk->job->instances;
    if (instances == 0)
        return walk_fail(walk, ERR_BAD_JOB, "say with \"count\" how many instances the job has",
            "is for each instance, but the job has no \"count\"");
    enum err code = walk_is_map(walk, value);
    if (code != ERR_OK) return code;
    if (value->count != 1 || value[1].type != WIRE_TEXT)
        return walk_fail(walk, ERR_BAD_JOB, "give one type and its values, such as {f32: <binary>}",
            "is a map of %" PRIu32 " keys; it must have one string", value->count);
    key = wire_slice(&value[1]);
    arg->kind = ARG_BUFFER;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (slice_equal(key, kinds[i].key)) arg->kind = kinds[i].kind;
    char quoted[QUOTED_SIZE];
    if (arg->kind == ARG_BUFFER)
        return walk_fail(walk, ERR_BAD_JOB, "use one of u32, i32, u64, i64, f32, f64 and words",
            "has the type %s, which cannot be given for each instance", walk_quote(key, quoted));
    walk_enter_key(walk, key);
    code = parse_bytes(walk, wire_next(&value[1]), &bytes);
    if (code != ERR_OK) return code;
    arg->each = bytes.data;
    if (arg->kind == ARG_WORDS) return check_words_each(walk, arg, bytes.size);
    if (bytes.size != (uint64_t)instances * arg_kind_bytes(arg->kind))
        return walk_fail(walk, ERR_BAD_JOB, "send the values of all instances",
            "has %zu bytes for %" PRIu32 " instances of %zu bytes", bytes.size, instances,
            arg_kind_bytes(arg->kind));
    walk_leave(walk);
    return ERR_OK;
}

static const struct field arg_fields[] = {
    {KEY("u32"), OPTIONAL, parse_arg_u32, 0},
    {KEY("i32"), OPTIONAL, parse_arg_i32, 0},
    {KEY("u64"), OPTIONAL, parse_arg_u64, 0},
    {KEY("i64"), OPTIONAL, parse_arg_i64, 0},
    {KEY("f32"), OPTIONAL, parse_arg_f32, 0},
    {KEY("f64"), OPTIONAL, parse_arg_f64, 0},
    {KEY("words"), OPTIONAL, parse_arg_words, 0},
    {KEY("each"), OPTIONAL, parse_arg_each, 0},
};

static enum err parse_arg(struct walk *walk, const struct wire_value *value, void *ret) {
    struct job_arg *arg = ret;
    if (value->type == WIRE_TEXT) {
        arg->kind = ARG_BUFFER;
        return find_buffer(walk, value, &arg->buffer);
    }
    if (value->type != WIRE_MAP)
        return walk_wrong_type(walk, value, "a buffer's name or a map such as {u32: 7}");
    if (value->count != 1)
        return walk_fail(walk, ERR_BAD_JOB, "give one type and its value, such as {u32: 7}",
            "is a map of %" PRIu32 " keys; it must have exactly one", value->count);
    const struct wire_value *found[FIELDS_MAX];
    return walk_map(walk, value, FIELDS(arg_fields), arg, found);
}

static enum err parse_args(struct walk *walk, const struct wire_value *value, void *ret) {
    const struct array_field field = {.max = walk->limits->args_max,
        .unit = "arguments",
        .item_size = sizeof(struct job_arg),
        .parse = parse_arg};
    struct job_step *step = ret;
    void *args;
    enum err code = walk_array(walk, value, &field, &args, &step->arg_count);
    if (code == ERR_OK) step->args = args;
    return code;
}

/* "name" or "name@sha256:<hex>" */
static enum err parse_program(struct walk *walk, const struct wire_value *value, void *ret) {
    struct job_step *step = ret;
    if (value->type != WIRE_TEXT) return walk_wrong_type(walk, value, "a string");
    step->program = wire_slice(value);
    const uint8_t *at = memchr(step->program.data, '@', step->program.size);
    if (at != NULL) {
        size_t name_bytes = (size_t)(at - step->program.data);
        struct slice pin = slice_of(at + 1, step->program.size - name_bytes - 1);
        step->program.size = name_bytes;
        step->has_image = true;
        if (!digest_parse(pin, &step->image))
            return walk_fail(walk, ERR_BAD_JOB, "pin as name@sha256:<64 lower-case hex digits>",
                "has no SHA-256 digest after the @");
    }
    return walk_check_text(walk, step->program, NAME_BYTES_MAX);
}

/* [x, y?, z?]; what is not given is 1. */
static enum err parse_dimensions(struct walk *walk, const struct wire_value *value, void *ret) {
    uint32_t *dimensions = ret;
    enum err code = walk_is_array(walk, value);
    if (code != ERR_OK) return code;
    if (value->count < 1 || value->count > 3)
        return walk_fail(walk, ERR_BAD_JOB, "give [x], [x, y] or [x, y, z]",
            "has %" PRIu32 " dimensions; 1 to 3 are allowed", value->count);
    for (uint32_t i = 0; i < 3; i++) dimensions[i] = 1;
    const struct wire_value *item = value + 1;
    for (uint32_t i = 0; i < value->count; i++, item = wire_next(item)) {
        walk_enter_index(walk, i);
        code = parse_count_u32(walk, item, &dimensions[i]);
        if (code != ERR_OK) return code;
        walk_leave(walk);
    }
    return ERR_OK;
}

enum step_key {
    KEY_PROGRAM,
    KEY_ENTRY,
    KEY_ARGS,
    KEY_GRID,
    KEY_ELEMENTS,
    KEY_BLOCK,
    KEY_SHARED_BYTES,
    KEY_ITERATIONS,
    KEY_COOPERATIVE,
    STEP_KEYS
};

static const struct field step_fields[] = {
    [KEY_PROGRAM] = {KEY("program"), REQUIRED, parse_program, 0},
    [KEY_ENTRY] = {KEY("entry"), OPTIONAL, parse_name, offsetof(struct job_step, entry)},
    [KEY_ARGS] = {KEY("args"), REQUIRED, parse_args, 0},
    [KEY_GRID] = {KEY("grid"), OPTIONAL, parse_dimensions, offsetof(struct job_step, grid)},
    [KEY_ELEMENTS] = {KEY("elements"), OPTIONAL, parse_count_u64,
        offsetof(struct job_step, elements)},
    [KEY_BLOCK] = {KEY("block"), OPTIONAL, parse_dimensions, offsetof(struct job_step, block)},
    [KEY_SHARED_BYTES] = {KEY("shared_bytes"), OPTIONAL, parse_u32,
        offsetof(struct job_step, shared_bytes)},
    [KEY_ITERATIONS] = {KEY("iterations"), OPTIONAL, parse_count_u32,
        offsetof(struct job_step, iterations)},
    [KEY_COOPERATIVE] = {KEY("cooperative"), OPTIONAL, parse_bool,
        offsetof(struct job_step, cooperative)},
};

static enum err parse_step(struct walk *walk, const struct wire_value *value, void *ret) {
    struct job_step *step = ret;
    const struct wire_value *found[STEP_KEYS];
    step->iterations = 1;
    enum err code = walk_map(walk, value, FIELDS(step_fields), step, found);
    if (code != ERR_OK) return code;
    code = walk_one_of(walk, "grid", found[KEY_GRID], "elements", found[KEY_ELEMENTS]);
    if (code != ERR_OK) return code;
    step->has_block = found[KEY_BLOCK] != NULL;
    step->has_shared_bytes = found[KEY_SHARED_BYTES] != NULL;
    return ERR_OK;
}

enum err parse_steps(struct walk *walk, const struct wire_value *value, void *ret) {
    const struct array_field field = {.max = walk->limits->steps_max,
        .unit = "steps",
        .setting = "limits.steps_per_job",
        .item_size = sizeof(struct job_step),
        .parse = parse_step};
    struct job *job = ret;
    void *steps;
    enum err code = walk_array(walk, value, &field, &steps, &job->step_count);
    if (code != ERR_OK) return code;
    if (job->step_count == 0) return walk_fail(walk, ERR_BAD_JOB, "add a step", "is empty");
    job->steps = steps;
    return ERR_OK;
}
