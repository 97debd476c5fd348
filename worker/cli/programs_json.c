#include "cli/programs_json.h"

#include "base/json_writer.h"
#include "program/bounds.h"

enum { DOUBLE_DIGITS = 17 }; /* lead back to the same number */

/* JSON has no infinity: an end that excludes nothing is null. */
static void write_end(struct json_writer *json, const struct scalar *end) {
    char text[40];
    if (end->kind == SCALAR_FLOAT) {
        json_double(json, NULL, DOUBLE_DIGITS, end->number);
        return;
    }
    scalar_format(end, text, sizeof text);
    fputs(text, json_value(json, NULL));
}

static void write_arg(struct json_writer *json, const struct entry_arg *arg) {
    json_object(json, NULL);
    json_text(json, "name", arg->name);
    json_text(json, "role", arg_role_name(arg->role));
    if (arg->role == ROLE_VALUE) json_text(json, "type", arg_value_name(arg->value_kind));
    else if (arg->element_type == DATATYPE_NONE) json_null(json, "type");
    else json_text(json, "type", datatype_name(arg->element_type));
    if (arg->word_count > 0) json_uint(json, "count", arg->word_count);
    if (arg->between.is_set) {
        json_array(json, "between");
        write_end(json, &arg->between.min);
        write_end(json, &arg->between.max);
        json_end(json);
    }
    json_end(json);
}

static void write_term(
    struct json_writer *json, const char *key, const struct entry *entry, const struct term *term) {
    if (term->kind == TERM_CONSTANT) {
        json_uint(json, key, term->constant);
        return;
    }
    json_object(json, key);
    if (term->kind == TERM_ARG) json_text(json, "arg", entry->args[term->arg].name);
    else json_text(json, "launch", term->kind == TERM_BLOCKS ? "blocks" : "threads");
    json_end(json);
}

static void write_bound(
    struct json_writer *json, const struct entry *entry, const struct bound *bound) {
    json_object(json, NULL);
    write_term(json, "what", entry, &bound->what);
    write_term(json, "times", entry, &bound->times);
    write_term(json, "plus", entry, &bound->plus);
    json_object(json, "at_most");
    if (bound->buffer == BOUND_SHARED) json_text(json, "launch", "shared_bytes");
    else json_text(json, "arg", entry->args[bound->buffer].name);
    json_end(json);
    json_end(json);
}

static void write_entry(struct json_writer *json, const struct entry *entry) {
    json_line(json, 6);
    json_object(json, NULL);
    json_text(json, "name", entry->name);
    json_text(json, "symbol", entry->symbol);
    json_array(json, "block");
    for (size_t i = 0; i < 3; i++) json_uint(json, NULL, entry->block[i]);
    json_end(json);
    json_uint(json, "shared_bytes", entry->shared_bytes);
    json_uint(json, "shared_bytes_least", entry->shared_bytes_least);
    json_bool(json, "cooperative", entry->cooperative);
    json_bool(json, "batched", entry->batched != NULL);
    json_line(json, 7);
    json_array(json, "args");
    for (size_t i = 0; i < entry->arg_count; i++) write_arg(json, &entry->args[i]);
    json_end(json);
    json_line(json, 7);
    json_array(json, "bounds");
    for (size_t i = 0; i < entry->bound_count; i++) write_bound(json, entry, &entry->bounds[i]);
    json_end(json);
    json_end(json);
}

static void write_image(struct json_writer *json, const struct image *image) {
    char digest[DIGEST_TEXT_SIZE], architecture[16];
    json_line(json, 6);
    json_object(json, NULL);
    json_text(json, "kind", image_kind_name(image->kind));
    json_text(json, "file", image->file);
    json_text(json, "digest", digest_format(&image->digest, digest));
    snprintf(architecture, sizeof architecture, "%d.%d", image->architecture / 10,
        image->architecture % 10);
    if (image->kind == IMAGE_CUBIN) json_text(json, "architecture", architecture);
    json_uint(json, "bytes", image->bytes.size);
    json_end(json);
}

static void write_program(struct json_writer *json, const struct program *program) {
    json_line(json, 2);
    json_object(json, NULL);
    json_text(json, "name", program->name);
    json_text(json, "description", program->description);
    json_line(json, 3);
    json_array(json, "entries");
    for (size_t i = 0; i < program->entry_count; i++) write_entry(json, &program->entries[i]);
    json_end(json);
    json_line(json, 3);
    json_array(json, "images");
    for (size_t i = 0; i < program->image_count; i++) write_image(json, &program->images[i]);
    json_end(json);
    json_end(json);
}

void programs_print_json(const struct registry *registry, FILE *out) {
    struct json_writer json = {.out = out, .is_spaced = true};
    json_array(&json, NULL);
    for (size_t i = 0; i < registry_count(registry); i++)
        write_program(&json, registry_at(registry, i));
    json_line(&json, 0);
    json_end_line(&json);
}
