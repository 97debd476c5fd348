/* Any bytes as a manifest: refused with problems, or a program that holds to program.h. */
#include <string.h>

#include "fuzz.h"
#include "program/manifest.h"

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
