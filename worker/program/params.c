#include "program/params.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "program/ptx.h"
#include "program/shared_object.h"

static const char *const class_names[] = {
    [PARAM_ANY] = "bits", [PARAM_WHOLE] = "a whole number", [PARAM_FLOAT] = "a float"};

struct kernel_param entry_param(const struct entry *entry, size_t index) {
    const struct entry_arg *arg = &entry->args[index];
    enum arg_kind kind = arg->role == ROLE_VALUE ? arg->value_kind : ARG_BUFFER;
    struct kernel_param ret = {.bytes = 8, .alignment = 8, .class = PARAM_WHOLE};
    if (kind == ARG_U32 || kind == ARG_I32 || kind == ARG_F32) ret.bytes = ret.alignment = 4;
    if (kind == ARG_F32 || kind == ARG_F64) ret.class = PARAM_FLOAT;
    /* the kernel may declare a parameter block as any type */
    if (kind == ARG_WORDS && !entry->params_in_buffer)
        ret = (struct kernel_param){.bytes = 4 * arg->word_count};
    return ret;
}

struct kernel_param batched_param(size_t index) {
    uint32_t bytes = index == 0 ? 8 : 4;
    return (struct kernel_param){.bytes = bytes, .alignment = bytes, .class = PARAM_WHOLE};
}

/* ---- one kernel ---- */

struct comparison {
    const struct yaml_document *document;
    const struct image *image;
    struct problems *problems;
};

static bool agree(const struct kernel_param *wanted, const struct kernel_param *found) {
    bool is_aligned =
        wanted->alignment == 0 || found->alignment == 0 || wanted->alignment == found->alignment;
    bool is_class =
        wanted->class == PARAM_ANY || found->class == PARAM_ANY || wanted->class == found->class;
    return wanted->bytes == found->bytes && is_aligned && is_class;
}

/* Writes "4 bytes", and what else is known and differs. */
static void describe(
    const struct kernel_param *wanted, const struct kernel_param *found, char *ret, size_t size) {
    int used = snprintf(ret, size, "%" PRIu32 " bytes", found->bytes);
    if (found->alignment != 0 && found->alignment != wanted->alignment)
        used +=
            snprintf(ret + used, size - (size_t)used, ", aligned to %" PRIu32, found->alignment);
    if (found->class != PARAM_ANY && found->class != wanted->class)
        snprintf(ret + used, size - (size_t)used, ", %s", class_names[found->class]);
}

static const char *kind_name(const struct entry_arg *arg) {
    return arg->role == ROLE_VALUE ? arg_value_name(arg->value_kind) : "a buffer";
}

static void compare_entry(const struct comparison *comparison, const struct yaml_node *node,
    const struct entry *entry, const struct kernel_params *found) {
    static const char fix[] = "declare the arguments as the kernel has them";
    const struct yaml_node *args = yaml_get(node, "args");
    if (found->count != entry->arg_count) {
        yaml_problem(comparison->problems, comparison->document, args, fix,
            "entry '%s' has %zu arguments, but '%s' in %s has %zu parameters", entry->name,
            entry->arg_count, entry->symbol, comparison->image->file, found->count);
        return;
    }
    for (size_t i = 0; i < entry->arg_count; i++) {
        struct kernel_param wanted = entry_param(entry, i);
        if (agree(&wanted, &found->items[i])) continue;
        char text[100];
        describe(&wanted, &found->items[i], text, sizeof text);
        yaml_problem(comparison->problems, comparison->document, args->values[i], fix,
            "argument '%s' is %s (%" PRIu32 " bytes), but parameter %zu of '%s' in %s has %s",
            entry->args[i].name, kind_name(&entry->args[i]), wanted.bytes, i + 1, entry->symbol,
            comparison->image->file, text);
    }
}

static void compare_batched(const struct comparison *comparison, const struct yaml_node *node,
    const struct entry *entry, const struct kernel_params *found) {
    bool is_right = found->count == BATCHED_PARAMS;
    for (size_t i = 0; i < BATCHED_PARAMS && is_right; i++) {
        struct kernel_param wanted = batched_param(i);
        is_right = agree(&wanted, &found->items[i]);
    }
    if (is_right) return;
    yaml_problem(comparison->problems, comparison->document, yaml_get(node, "batched"),
        "let it take a pointer to the rows, and a uint32_t: the number of jobs",
        "'%s' in %s is not a batched kernel: it has %zu parameters, or others than (rows, jobs)",
        entry->batched, comparison->image->file, found->count);
}

static void report_absent(const struct comparison *comparison, const struct yaml_node *node,
    const char *key, const char *name) {
    yaml_problem(comparison->problems, comparison->document, yaml_get(node, key),
        "name a kernel that the image has, or build the image again", "%s has no kernel '%s'",
        comparison->image->file, name);
}

/* Where the manifest says what the images call an entry. */
static const char *symbol_key(const struct yaml_node *node) {
    return yaml_get(node, "symbol") != NULL ? "symbol" : "name";
}

/* ---- PTX ---- */

enum { SEEN_ENTRY = 1, SEEN_BATCHED = 2 };

static void compare_named(const struct comparison *comparison, const struct yaml_node *entries,
    const struct program *program, struct slice name, const struct kernel_params *found,
    uint8_t *seen) {
    for (size_t i = 0; i < program->entry_count; i++) {
        const struct entry *entry = &program->entries[i];
        if (!(seen[i] & SEEN_ENTRY) && slice_is_text(name, entry->symbol)) {
            seen[i] |= SEEN_ENTRY;
            compare_entry(comparison, entries->values[i], entry, found);
        }
        if (entry->batched != NULL && !(seen[i] & SEEN_BATCHED) &&
            slice_is_text(name, entry->batched)) {
            seen[i] |= SEEN_BATCHED;
            compare_batched(comparison, entries->values[i], entry, found);
        }
    }
}

static void check_ptx(const struct comparison *comparison, const struct yaml_node *entries,
    const struct program *program) {
    uint8_t seen[PROGRAM_ENTRIES_MAX] = {0};
    struct kernel_params found;
    struct slice name;
    struct ptx ptx;
    enum ptx_step step;
    ptx_init(&ptx, comparison->image->bytes);
    while ((step = ptx_next(&ptx, &name, &found)) == PTX_ENTRY)
        compare_named(comparison, entries, program, name, &found, seen);
    if (step == PTX_UNREADABLE) {
        yaml_problem(comparison->problems, comparison->document, entries, "build the image again",
            "%s:%zu: the parameters of an entry cannot be read", comparison->image->file, ptx.line);
        return;
    }
    for (size_t i = 0; i < program->entry_count; i++) {
        const struct entry *entry = &program->entries[i];
        if (!(seen[i] & SEEN_ENTRY))
            report_absent(
                comparison, entries->values[i], symbol_key(entries->values[i]), entry->symbol);
        if (entry->batched != NULL && !(seen[i] & SEEN_BATCHED))
            report_absent(comparison, entries->values[i], "batched", entry->batched);
    }
}

/* ---- shared objects ---- */

static void check_shared_object(const struct comparison *comparison,
    const struct yaml_node *entries, const struct program *program) {
    struct slice bytes = comparison->image->bytes;
    struct kernel_params found;
    if (shared_object_is_cut(bytes))
        yaml_problem(comparison->problems, comparison->document, entries,
            "copy the image again, or build it again", "%s is cut off", comparison->image->file);
    if (shared_object_is_cut(bytes) || !shared_object_is_one(bytes)) return;
    for (size_t i = 0; i < program->entry_count; i++) {
        const struct entry *entry = &program->entries[i];
        const struct yaml_node *node = entries->values[i];
        if (!shared_object_find(bytes, entry->symbol, &found))
            report_absent(comparison, node, symbol_key(node), entry->symbol);
        else compare_entry(comparison, node, entry, &found);
        if (entry->batched == NULL) continue;
        if (!shared_object_find(bytes, entry->batched, &found))
            report_absent(comparison, node, "batched", entry->batched);
        else compare_batched(comparison, node, entry, &found);
    }
}

void params_check(const struct yaml_document *document, const struct program *program,
    const struct image *image, struct problems *problems) {
    const struct comparison comparison = {
        .document = document, .image = image, .problems = problems};
    const struct yaml_node *entries = yaml_get(yaml_root(document), "entries");
    if (image->kind == IMAGE_PTX) check_ptx(&comparison, entries, program);
    if (image->kind == IMAGE_CPU) check_shared_object(&comparison, entries, program);
}
