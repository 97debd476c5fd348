#include "cli/programs_json.h"

#include <inttypes.h>
#include <math.h>

#include "program/bounds.h"
#include "settings/quote.h"

/* What stands before item `i` of a list. */
static const char *comma(size_t i) {
    return i == 0 ? "" : ", ";
}

static void print_text(const char *key, const char *text, FILE *out) {
    fprintf(out, "\"%s\": ", key);
    quote_json(text, out);
}

/* JSON has no infinity: an end that excludes nothing is null. */
static void print_end(const struct scalar *end, FILE *out) {
    char text[40];
    scalar_format(end, text, sizeof text);
    if (end->kind != SCALAR_FLOAT) fputs(text, out);
    else if (isfinite(end->number)) fprintf(out, "%.17g", end->number);
    else fputs("null", out);
}

static void print_arg(const struct entry_arg *arg, FILE *out) {
    fputc('{', out);
    print_text("name", arg->name, out);
    fputs(", ", out);
    print_text("role", arg_role_name(arg->role), out);
    fputs(", ", out);
    if (arg->role == ROLE_VALUE) print_text("type", arg_value_name(arg->value_kind), out);
    else if (arg->element_type == DATATYPE_NONE) fputs("\"type\": null", out);
    else print_text("type", datatype_name(arg->element_type), out);
    if (arg->word_count > 0) fprintf(out, ", \"count\": %" PRIu32, arg->word_count);
    if (arg->between.is_set) {
        fputs(", \"between\": [", out);
        print_end(&arg->between.min, out);
        fputs(", ", out);
        print_end(&arg->between.max, out);
        fputc(']', out);
    }
    fputc('}', out);
}

static void print_term(
    const char *key, const struct entry *entry, const struct term *term, FILE *out) {
    fprintf(out, "\"%s\": ", key);
    if (term->kind == TERM_CONSTANT) {
        fprintf(out, "%" PRIu64, term->constant);
        return;
    }
    fputc('{', out);
    if (term->kind == TERM_ARG) print_text("arg", entry->args[term->arg].name, out);
    else print_text("launch", term->kind == TERM_BLOCKS ? "blocks" : "threads", out);
    fputc('}', out);
}

static void print_bound(const struct entry *entry, const struct bound *bound, FILE *out) {
    fputc('{', out);
    print_term("what", entry, &bound->what, out);
    fputs(", ", out);
    print_term("times", entry, &bound->times, out);
    fputs(", ", out);
    print_term("plus", entry, &bound->plus, out);
    fputs(", \"at_most\": {", out);
    if (bound->buffer == BOUND_SHARED) print_text("launch", "shared_bytes", out);
    else print_text("arg", entry->args[bound->buffer].name, out);
    fputs("}}", out);
}

static void print_entry(const struct entry *entry, FILE *out) {
    fputs("\n      {", out);
    print_text("name", entry->name, out);
    fputs(", ", out);
    print_text("symbol", entry->symbol, out);
    fprintf(out,
        ", \"block\": [%" PRIu32 ", %" PRIu32 ", %" PRIu32 "], \"shared_bytes\": %" PRIu32
        ", \"shared_bytes_least\": %" PRIu32
        ", \"cooperative\": %s, \"batched\": %s,\n       \"args\": [",
        entry->block[0], entry->block[1], entry->block[2], entry->shared_bytes,
        entry->shared_bytes_least, entry->cooperative ? "true" : "false",
        entry->batched != NULL ? "true" : "false");
    for (size_t i = 0; i < entry->arg_count; i++) {
        fputs(comma(i), out);
        print_arg(&entry->args[i], out);
    }
    fputs("],\n       \"bounds\": [", out);
    for (size_t i = 0; i < entry->bound_count; i++) {
        fputs(comma(i), out);
        print_bound(entry, &entry->bounds[i], out);
    }
    fputs("]}", out);
}

static void print_image(const struct image *image, FILE *out) {
    char digest[DIGEST_TEXT_SIZE];
    fputs("\n      {", out);
    print_text("kind", image_kind_name(image->kind), out);
    fputs(", ", out);
    print_text("file", image->file, out);
    fputs(", ", out);
    print_text("digest", digest_format(&image->digest, digest), out);
    if (image->kind == IMAGE_CUBIN)
        fprintf(out, ", \"architecture\": \"%d.%d\"", image->architecture / 10,
            image->architecture % 10);
    fprintf(out, ", \"bytes\": %zu}", image->bytes.size);
}

static void print_program(const struct program *program, FILE *out) {
    fputs("  {", out);
    print_text("name", program->name, out);
    fputs(", ", out);
    print_text("description", program->description, out);
    fputs(",\n   \"entries\": [", out);
    for (size_t i = 0; i < program->entry_count; i++) {
        fputs(i == 0 ? "" : ",", out);
        print_entry(&program->entries[i], out);
    }
    fputs("],\n   \"images\": [", out);
    for (size_t i = 0; i < program->image_count; i++) {
        fputs(i == 0 ? "" : ",", out);
        print_image(&program->images[i], out);
    }
    fputs("]}", out);
}

void programs_print_json(const struct registry *registry, FILE *out) {
    fputs("[\n", out);
    for (size_t i = 0; i < registry_count(registry); i++) {
        fputs(i == 0 ? "" : ",\n", out);
        print_program(registry_at(registry, i), out);
    }
    fputs("\n]\n", out);
}
