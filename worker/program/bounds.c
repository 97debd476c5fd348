#include "program/bounds.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/nearest.h"

enum { AT_MOST_MAX = 64 };

/* What a bound may name besides the entry's arguments. An argument of the same name wins. */
static const char BLOCKS[] = "blocks", THREADS[] = "threads", SHARED[] = "shared_bytes";

struct bounds {
    const struct manifest *manifest;
    const struct entry *entry;
    struct bound *items;
    size_t count;
};

static const char *text_of(const struct yaml_node *node) {
    return node->kind == YAML_SCALAR ? node->text : "";
}

/* arg_count if there is no argument of that name. */
static size_t find_arg(const struct entry *entry, const char *name) {
    size_t i = 0;
    while (i < entry->arg_count && strcmp(entry->args[i].name, name) != 0) i++;
    return i;
}

static bool is_whole_number(const struct entry_arg *arg) {
    return arg->role == ROLE_VALUE && (arg->value_kind == ARG_U32 || arg->value_kind == ARG_I32 ||
                                          arg->value_kind == ARG_U64 || arg->value_kind == ARG_I64);
}

static bool read_term(const struct bounds *bounds, const struct yaml_node *node, struct term *ret) {
    const struct entry *entry = bounds->entry;
    const char *text = text_of(node);
    size_t arg = find_arg(entry, text);
    *ret = (struct term){.kind = TERM_CONSTANT};
    if (yaml_read_uint(node, &ret->constant)) return true;
    if (arg < entry->arg_count && is_whole_number(&entry->args[arg]))
        *ret = (struct term){.kind = TERM_ARG, .arg = arg};
    else if (arg < entry->arg_count || (strcmp(text, BLOCKS) != 0 && strcmp(text, THREADS) != 0))
        return false;
    else ret->kind = strcmp(text, BLOCKS) == 0 ? TERM_BLOCKS : TERM_THREADS;
    return true;
}

/* `key` of an item, or `otherwise` if it has none. */
static struct term read_factor(const struct bounds *bounds, const struct yaml_node *item,
    const char *key, uint64_t otherwise) {
    struct term ret = {.kind = TERM_CONSTANT, .constant = otherwise};
    const struct yaml_node *node = yaml_get(item, key);
    if (node != NULL && !read_term(bounds, node, &ret))
        MANIFEST_ADD(bounds->manifest, node,
            "write a whole number, or name an argument of u32, i32, u64 or i64, blocks or threads",
            "'%s' cannot be '%.80s'", key, text_of(node));
    return ret;
}

static size_t read_buffer(const struct bounds *bounds, const struct yaml_node *node) {
    const struct entry *entry = bounds->entry;
    const char *text = text_of(node);
    size_t arg = find_arg(entry, text);
    if (arg < entry->arg_count && entry->args[arg].role != ROLE_VALUE) return arg;
    if (arg == entry->arg_count && strcmp(text, SHARED) == 0) return BOUND_SHARED;
    struct nearest nearest;
    nearest_init(&nearest, text);
    nearest_offer(&nearest, SHARED);
    for (size_t i = 0; i < entry->arg_count; i++)
        if (entry->args[i].role != ROLE_VALUE) nearest_offer(&nearest, entry->args[i].name);
    char fix[120] = "name a buffer among the arguments, or shared_bytes";
    if (nearest.text != NULL) snprintf(fix, sizeof fix, "did you mean '%s'?", nearest.text);
    MANIFEST_ADD(bounds->manifest, node, fix, "'%.80s' is not a buffer of this entry", text);
    return BOUND_SHARED;
}

/* Reads an item: a buffer's name, or a map with a factor and a summand. */
static void read_item(
    struct bounds *bounds, const struct yaml_node *item, const struct term *what) {
    static const char *const known[] = {"buffer", "times", "plus", NULL};
    struct bound *bound = &bounds->items[bounds->count++];
    *bound = (struct bound){.what = *what, .times.constant = 1};
    if (item->kind != YAML_MAPPING) {
        bound->buffer = read_buffer(bounds, item);
        return;
    }
    if (!manifest_check_mapping(bounds->manifest, item, "a bound", known)) return;
    const struct yaml_node *buffer = manifest_require(bounds->manifest, item, "buffer");
    if (buffer != NULL) bound->buffer = read_buffer(bounds, buffer);
    bound->times = read_factor(bounds, item, "times", 1);
    bound->plus = read_factor(bounds, item, "plus", 0);
}

static size_t count_at_most(const struct yaml_node *node) {
    const struct yaml_node *list = node != NULL ? yaml_get(node, "at_most") : NULL;
    return list != NULL && list->kind == YAML_SEQUENCE ? list->count : 0;
}

static void read_at_most(
    struct bounds *bounds, const struct yaml_node *node, const struct term *what) {
    if (yaml_get(node, "at_most") == NULL) return;
    const struct yaml_node *list =
        manifest_require_list(bounds->manifest, node, "at_most", 1, AT_MOST_MAX);
    for (size_t i = 0; list != NULL && i < list->count; i++)
        read_item(bounds, list->values[i], what);
}

static void read_at_least(struct bounds *bounds, const struct yaml_node *node, size_t buffer) {
    const struct yaml_node *least = yaml_get(node, "at_least");
    if (least == NULL) return;
    uint32_t count = manifest_read_number(bounds->manifest, least, "'at_least'", 1, UINT32_MAX);
    bounds->items[bounds->count++] =
        (struct bound){.what.constant = count, .times.constant = 1, .buffer = buffer};
}

/* ---- between ---- */

struct limits {
    bool is_signed, is_float;
    uint64_t max;
};

static const struct limits limits_of[] = {
    [ARG_U32] = {.max = UINT32_MAX},
    [ARG_I32] = {.is_signed = true, .max = INT32_MAX},
    [ARG_U64] = {.max = UINT64_MAX},
    [ARG_I64] = {.is_signed = true, .max = INT64_MAX},
    [ARG_F32] = {.is_float = true},
    [ARG_F64] = {.is_float = true},
    [ARG_WORDS] = {.max = UINT32_MAX},
};

static bool fits(const struct scalar *scalar, const struct limits *limits) {
    if (scalar->kind == SCALAR_FLOAT) return limits->is_float && !isnan(scalar->number);
    if (scalar->kind == SCALAR_UINT) return limits->is_float || scalar->uint <= limits->max;
    bool is_in_range = limits->is_signed && scalar->integer >= -(int64_t)limits->max - 1;
    return scalar->kind == SCALAR_INT && (limits->is_float || is_in_range);
}

static bool is_ordered(const struct scalar *min, const struct scalar *max) {
    if (min->kind == SCALAR_UINT && max->kind == SCALAR_UINT) return min->uint <= max->uint;
    if (min->kind == SCALAR_INT && max->kind == SCALAR_INT) return min->integer <= max->integer;
    return min->number <= max->number;
}

static void read_between(
    const struct manifest *manifest, const struct yaml_node *node, struct entry_arg *arg) {
    if (yaml_get(node, "between") == NULL) return;
    const struct yaml_node *list = manifest_require_list(manifest, node, "between", 2, 2);
    if (list == NULL) return;
    struct scalar ends[2];
    for (size_t i = 0; i < 2; i++) {
        ends[i] = (struct scalar){.kind = SCALAR_TEXT};
        if (list->values[i]->kind == YAML_SCALAR) ends[i] = scalar_of(list->values[i]);
        if (fits(&ends[i], &limits_of[arg->value_kind])) continue;
        MANIFEST_ADD(manifest, list->values[i], "write two numbers: [lowest, highest]",
            "'%.80s' is not a number that %s can be", text_of(list->values[i]),
            arg_value_name(arg->value_kind));
        return;
    }
    arg->between = (struct range){.is_set = true, .min = ends[0], .max = ends[1]};
    if (!is_ordered(&ends[0], &ends[1]))
        MANIFEST_ADD(manifest, list, "write the lower one first",
            "no number lies between '%.80s' and '%.80s'", list->values[0]->text,
            list->values[1]->text);
}

/* ---- the whole ---- */

/* `blocks` or `threads` of an entry: a map with `at_most`. */
static void read_launch(
    struct bounds *bounds, const struct yaml_node *entry, const char *key, enum term_kind kind) {
    static const char *const known[] = {"at_most", NULL};
    const struct yaml_node *node = yaml_get(entry, key);
    if (node == NULL || !manifest_check_mapping(bounds->manifest, node, key, known)) return;
    const struct term what = {.kind = kind};
    read_at_most(bounds, node, &what);
}

static size_t count_all(const struct yaml_node *node, const struct yaml_node *args) {
    size_t count = count_at_most(yaml_get(node, BLOCKS)) + count_at_most(yaml_get(node, THREADS));
    for (size_t i = 0; i < args->count; i++)
        count += count_at_most(args->values[i]) + (yaml_get(args->values[i], "at_least") != NULL);
    return count;
}

void bounds_read(
    const struct manifest *manifest, const struct yaml_node *node, struct entry *entry) {
    const struct yaml_node *args = yaml_get(node, "args");
    struct bounds bounds = {.manifest = manifest, .entry = entry};
    bounds.items = manifest_alloc(manifest, count_all(node, args) + 1, sizeof *bounds.items);
    if (bounds.items == NULL) return;
    for (size_t i = 0; i < entry->arg_count; i++) {
        const struct term what = {.kind = TERM_ARG, .arg = i};
        if (entry->args[i].role == ROLE_VALUE) {
            read_at_most(&bounds, args->values[i], &what);
            read_between(manifest, args->values[i], &entry->args[i]);
        } else {
            read_at_least(&bounds, args->values[i], i);
        }
    }
    read_launch(&bounds, node, BLOCKS, TERM_BLOCKS);
    read_launch(&bounds, node, THREADS, TERM_THREADS);
    entry->bounds = bounds.items;
    entry->bound_count = bounds.count;
}

/* ---- as text ---- */

static void term_format(
    const struct entry *entry, const struct term *term, char *ret, size_t size) {
    switch (term->kind) {
    case TERM_CONSTANT: snprintf(ret, size, "%" PRIu64, term->constant); break;
    case TERM_ARG: snprintf(ret, size, "%s", entry->args[term->arg].name); break;
    case TERM_BLOCKS: snprintf(ret, size, "%s", BLOCKS); break;
    case TERM_THREADS: snprintf(ret, size, "%s", THREADS); break;
    }
}

static bool is_constant(const struct term *term, uint64_t constant) {
    return term->kind == TERM_CONSTANT && term->constant == constant;
}

void bound_format(const struct entry *entry, const struct bound *bound, char *ret, size_t size) {
    char what[80], times[80], plus[80];
    term_format(entry, &bound->what, what, sizeof what);
    term_format(entry, &bound->times, times, sizeof times);
    term_format(entry, &bound->plus, plus, sizeof plus);
    bool is_multiplied = !is_constant(&bound->times, 1), is_added = !is_constant(&bound->plus, 0);
    snprintf(ret, size, "%s%s%s%s%s <= %s", what, is_multiplied ? " * " : "",
        is_multiplied ? times : "", is_added ? " + " : "", is_added ? plus : "",
        bound->buffer == BOUND_SHARED ? SHARED : entry->args[bound->buffer].name);
}

void scalar_format(const struct scalar *scalar, char *ret, size_t size) {
    if (scalar->kind == SCALAR_UINT) snprintf(ret, size, "%" PRIu64, scalar->uint);
    else if (scalar->kind == SCALAR_INT) snprintf(ret, size, "%" PRId64, scalar->integer);
    else snprintf(ret, size, "%.9g", scalar->number);
}
