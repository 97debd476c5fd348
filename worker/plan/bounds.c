#include "plan/bounds.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "program/bounds.h"

/* Wide enough for the product of two arguments, and a third. */
typedef unsigned __int128 wide;

enum { TEXT_SIZE = 40 };

struct check {
    const struct job *job;
    const struct plan_launch *launch;
    const struct entry
        *entry;        /* the launch's entry, or one of its phases, which have the same arguments */
    uint32_t instance; /* of an array, whose arguments are looked at */
    size_t step_index;
    struct error *err;
};

static size_t value_count(const struct job_arg *arg) {
    return arg->kind == ARG_WORDS ? arg->word_count : 1;
}

/* Value `index` of an argument. */
static struct scalar value_of(const struct check *check, size_t index_of_arg, size_t index) {
    const struct job_arg *arg = &check->launch->args[index_of_arg];
    uint64_t bits = job_arg_bits(arg, check->instance);
    struct scalar ret = {.kind = SCALAR_UINT, .uint = bits};
    uint32_t narrow = (uint32_t)bits;
    float number;
    switch (arg->kind) {
    case ARG_U32: ret.uint = narrow; break;
    case ARG_WORDS:
        memcpy(&narrow, job_arg_words(arg, check->instance).data + 4 * index, sizeof narrow);
        ret.uint = narrow;
        break;
    case ARG_I32: ret = (struct scalar){.kind = SCALAR_INT, .integer = (int32_t)narrow}; break;
    case ARG_I64: ret = (struct scalar){.kind = SCALAR_INT, .integer = (int64_t)bits}; break;
    case ARG_F32:
        memcpy(&number, &narrow, sizeof number);
        ret = (struct scalar){.kind = SCALAR_FLOAT, .number = number};
        break;
    case ARG_F64:
        ret = (struct scalar){.kind = SCALAR_FLOAT};
        memcpy(&ret.number, &bits, sizeof ret.number);
        break;
    default: break;
    }
    return ret;
}

/* Rounded up; false if it is negative or NaN. */
static bool count_of(const struct scalar *value, uint64_t *ret) {
    *ret = value->kind == SCALAR_UINT ? value->uint : (uint64_t)value->integer;
    if (value->kind == SCALAR_UINT) return true;
    if (value->kind == SCALAR_INT) return value->integer >= 0;
    if (!(value->number >= 0)) return false;
    *ret = value->number < 0x1p64 ? (uint64_t)ceil(value->number) : UINT64_MAX;
    return true;
}

static uint64_t product(const uint32_t sides[static 3]) {
    /* no overflow: the sides are below 2^31, 2^16 and 2^16 on every device so far */
    return (uint64_t)sides[0] * sides[1] * sides[2];
}

/* Value `index` of the term; false if it cannot be a count. */
static bool term_value(
    const struct check *check, const struct term *term, size_t index, uint64_t *ret) {
    if (term->kind == TERM_ARG) {
        struct scalar value = value_of(check, term->arg, index);
        return count_of(&value, ret);
    }
    *ret = term->kind == TERM_BLOCKS    ? product(check->launch->grid)
           : term->kind == TERM_THREADS ? product(check->launch->block)
                                        : term->constant;
    return true;
}

/* In elements, or in bytes. */
static uint64_t room_of(const struct check *check, size_t buffer) {
    if (buffer == BOUND_SHARED) return check->launch->shared_bytes;
    enum datatype type = check->entry->args[buffer].element_type;
    uint64_t bytes = check->job->buffers[check->launch->args[buffer].buffer].bytes;
    return type == DATATYPE_NONE ? bytes : bytes / datatype_bytes(type);
}

/* ---- what is wrong, in words ---- */

static void describe_what(
    const struct check *check, const struct bound *bound, size_t index, char *ret, size_t size) {
    char number[TEXT_SIZE];
    uint64_t count;
    switch (bound->what.kind) {
    case TERM_ARG: {
        struct scalar value = value_of(check, bound->what.arg, index);
        scalar_format(&value, number, sizeof number);
        snprintf(
            ret, size, "argument '%s' is %s", check->entry->args[bound->what.arg].name, number);
        return;
    }
    case TERM_CONSTANT: snprintf(ret, size, "'%s' runs", check->entry->name); return;
    default:
        (void)term_value(check, &bound->what, 0, &count);
        snprintf(ret, size, "%" PRIu64 " %s", count,
            bound->what.kind == TERM_BLOCKS ? "blocks in the grid" : "threads in a block");
    }
}

static enum err refuse_shared(
    const struct check *check, const char *what, const char *bound, const char *needed) {
    return error_set(check->err, ERR_BAD_ARGUMENT, 0,
        "raise shared_bytes of the step, or make what needs it smaller",
        "steps[%zu]: %s, and the kernel needs %s: %s bytes; shared_bytes is %" PRIu32,
        check->step_index, what, bound, needed, check->launch->shared_bytes);
}

static enum err refuse(
    const struct check *check, const struct bound *bound, size_t index, wide needed) {
    char what[160], text[260], number[TEXT_SIZE];
    bool is_wide = needed > UINT64_MAX;
    describe_what(check, bound, index, what, sizeof what);
    bound_format(check->entry, bound, text, sizeof text);
    snprintf(number, sizeof number, "%s%" PRIu64, is_wide ? "more than " : "",
        is_wide ? UINT64_MAX : (uint64_t)needed);
    if (bound->buffer == BOUND_SHARED) return refuse_shared(check, what, text, number);
    const struct entry_arg *arg = &check->entry->args[bound->buffer];
    const struct job_buffer *buffer =
        &check->job->buffers[check->launch->args[bound->buffer].buffer];
    return error_set(check->err, ERR_BAD_ARGUMENT, 0,
        "send a larger buffer, or a smaller number: the kernel would go past the buffer's end",
        "steps[%zu]: %s, and the kernel needs %s: %s elements; buffer '%.*s' has %" PRIu64 " (%s)",
        check->step_index, what, text, number, SLICE_TEXT(buffer->name),
        room_of(check, bound->buffer),
        arg->element_type == DATATYPE_NONE ? "bytes" : datatype_name(arg->element_type));
}

static enum err refuse_count(const struct check *check, const struct bound *bound) {
    char text[260];
    bound_format(check->entry, bound, text, sizeof text);
    return error_set(check->err, ERR_BAD_ARGUMENT, 0, "send numbers that are 0 or more",
        "steps[%zu]: the kernel needs %s, but a number in it is negative or NaN", check->step_index,
        text);
}

/* ---- the checks ---- */

static enum err check_value(const struct check *check, const struct bound *bound, size_t index) {
    uint64_t what, times, plus;
    if (!term_value(check, &bound->what, index, &what) ||
        !term_value(check, &bound->times, 0, &times) || !term_value(check, &bound->plus, 0, &plus))
        return refuse_count(check, bound);
    wide needed = (wide)what * times + plus; /* always below 2^128 */
    return needed <= room_of(check, bound->buffer) ? ERR_OK : refuse(check, bound, index, needed);
}

/* Of the words of an argument only the greatest counts; 0 where it is no words. */
static size_t greatest_word(const struct check *check, const struct term *term) {
    const struct job_arg *arg = term->kind == TERM_ARG ? &check->launch->args[term->arg] : NULL;
    size_t greatest = 0;
    for (size_t i = 1; arg != NULL && i < value_count(arg); i++)
        if (value_of(check, term->arg, i).uint > value_of(check, term->arg, greatest).uint)
            greatest = i;
    return greatest;
}

static bool is_each(const struct check *check, const struct term *term) {
    return term->kind == TERM_ARG && check->launch->args[term->arg].each != NULL;
}

/* What is the same for all instances is looked at once: shared words for each instance would be as
 * much work as the product of both. */
static enum err check_bound(struct check *check, const struct bound *bound) {
    bool has_each = is_each(check, &bound->what) || is_each(check, &bound->times) ||
                    is_each(check, &bound->plus);
    uint32_t count = has_each ? check->job->instances : 1;
    size_t word = 0;
    enum err code = ERR_OK;
    for (check->instance = 0; check->instance < count && code == ERR_OK; check->instance++) {
        bool is_other = check->instance == 0 || is_each(check, &bound->what);
        if (is_other) word = greatest_word(check, &bound->what);
        code = check_value(check, bound, word);
    }
    return code;
}

static __int128 whole(const struct scalar *value) {
    return value->kind == SCALAR_UINT ? (__int128)value->uint : (__int128)value->integer;
}

/* a <= b; false with NaN. If the manifest has a whole number, `number` is set too. */
static bool is_ordered(const struct scalar *a, const struct scalar *b) {
    if (a->kind == SCALAR_FLOAT || b->kind == SCALAR_FLOAT) return a->number <= b->number;
    return whole(a) <= whole(b);
}

static enum err check_in_range(const struct check *check, size_t arg, size_t index) {
    const struct range *between = &check->entry->args[arg].between;
    const struct scalar value = value_of(check, arg, index);
    if (is_ordered(&between->min, &value) && is_ordered(&value, &between->max)) return ERR_OK;
    char text[TEXT_SIZE], min[TEXT_SIZE], max[TEXT_SIZE], fix[120];
    scalar_format(&value, text, sizeof text);
    scalar_format(&between->min, min, sizeof min);
    scalar_format(&between->max, max, sizeof max);
    snprintf(fix, sizeof fix, "send a number from %s to %s", min, max);
    return error_set(check->err, ERR_BAD_ARGUMENT, 0, fix,
        "steps[%zu]: argument '%s' is %s, and the kernel takes %s to %s", check->step_index,
        check->entry->args[arg].name, text, min, max);
}

static enum err check_between(struct check *check, size_t arg) {
    const struct job_arg *given = &check->launch->args[arg];
    uint32_t count = given->each != NULL ? check->job->instances : 1;
    enum err code = ERR_OK;
    if (!check->entry->args[arg].between.is_set) return ERR_OK;
    for (check->instance = 0; check->instance < count && code == ERR_OK; check->instance++)
        for (size_t i = 0; i < value_count(given) && code == ERR_OK; i++)
            code = check_in_range(check, arg, i);
    return code;
}

static enum err check_entry(struct check *check) {
    enum err code = ERR_OK;
    for (size_t i = 0; i < check->entry->arg_count && code == ERR_OK; i++)
        code = check_between(check, i);
    for (size_t i = 0; i < check->entry->bound_count && code == ERR_OK; i++)
        code = check_bound(check, &check->entry->bounds[i]);
    return code;
}

enum err plan_check_bounds(
    const struct job *job, const struct plan_launch *launch, size_t step_index, struct error *err) {
    struct check check = {
        .job = job, .launch = launch, .entry = launch->entry, .step_index = step_index, .err = err};
    enum err code = check_entry(&check);
    for (size_t i = 0; i < launch->entry->phase_count && code == ERR_OK; i++) {
        check.entry = &launch->program->entries[launch->entry->phases[i]];
        code = check_entry(&check);
    }
    return code;
}
