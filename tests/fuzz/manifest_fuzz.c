/* Any bytes as a manifest: refused with problems, or a program that holds to program.h. */
#include <string.h>

#include "fuzz.h"
#include "program/bounds.h"
#include "program/manifest.h"

static void check_term(const struct entry *entry, const struct term *term, bool is_factor) {
    if (term->kind != TERM_ARG) return;
    FUZZ_CHECK(term->arg < entry->arg_count && entry->args[term->arg].role == ROLE_VALUE);
    FUZZ_CHECK(!is_factor || entry->args[term->arg].value_kind <= ARG_I64);
}

static void check_bounds(const struct entry *entry) {
    for (size_t i = 0; i < entry->bound_count; i++) {
        const struct bound *bound = &entry->bounds[i];
        char text[300];
        bound_format(entry, bound, text, sizeof text);
        check_term(entry, &bound->what, false);
        check_term(entry, &bound->times, true);
        check_term(entry, &bound->plus, true);
        FUZZ_CHECK(bound->buffer == BOUND_SHARED || bound->buffer < entry->arg_count);
        FUZZ_CHECK(bound->buffer == BOUND_SHARED || entry->args[bound->buffer].role != ROLE_VALUE);
    }
}

static void check_entry(const struct program *program, const struct entry *entry) {
    FUZZ_CHECK(entry->name != NULL && entry->name[0] != 0);
    FUZZ_CHECK(program_entry(program, slice_of_text(entry->name)) == entry);
    FUZZ_CHECK(entry->block[0] * entry->block[1] * entry->block[2] - 1 < 1024);
    for (size_t i = 0; i < entry->arg_count; i++) {
        const struct entry_arg *arg = &entry->args[i];
        FUZZ_CHECK(arg->name != NULL && arg->name[0] != 0);
        FUZZ_CHECK(arg_role_name(arg->role) != NULL);
        FUZZ_CHECK((arg->role == ROLE_VALUE) == (arg->value_kind != ARG_BUFFER));
    }
    check_bounds(entry);
}

static void check_program(const struct program *program) {
    FUZZ_CHECK(program->name != NULL && program->description != NULL);
    FUZZ_CHECK(program->entry_count > 0 && program->image_count > 0);
    FUZZ_CHECK(strchr(program->name, '@') == NULL && strchr(program->name, '/') == NULL);
    for (size_t i = 0; i < program->entry_count; i++) check_entry(program, &program->entries[i]);
    for (size_t i = 0; i < program->image_count; i++) {
        const struct image *image = &program->images[i];
        FUZZ_CHECK(strchr(image->file, '/') == NULL && image->file[0] != '.');
        FUZZ_CHECK((image->kind == IMAGE_CUBIN) == (image->architecture != 0));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct problems problems;
    struct arena arena;
    struct program program;
    problems_init(&problems);
    arena_init(&arena, 1 << 20);
    struct yaml_document *document =
        yaml_parse("fuzz", slice_of(data, size), YAML_KEEP_VARIABLES, &problems);
    if (document != NULL) {
        bool good = manifest_read(document, &arena, &program, &problems);
        FUZZ_CHECK(good || problems_any(&problems));
        if (good) check_program(&program);
    }
    yaml_destroy(document);
    arena_fini(&arena);
    problems_fini(&problems);
    return 0;
}
