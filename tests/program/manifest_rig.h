/** What a manifest's text says, for tests of what reads it. */
#ifndef TESTS_PROGRAM_MANIFEST_RIG_H
#define TESTS_PROGRAM_MANIFEST_RIG_H

#include "program/manifest.h"
#include "testing.h"

static struct problems problems;
static struct arena arena;
static struct program program;

static inline int set_up(void **state) {
    problems_init(&problems);
    arena_init(&arena, 1 << 20);
    return 0;
}

static inline int tear_down(void **state) {
    problems_fini(&problems);
    arena_fini(&arena);
    return 0;
}

#define S(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/** Into `program`; false where `problems` says what is wrong. What was read before is gone. */
static inline bool read_manifest(const char *text) {
    tear_down(NULL);
    set_up(NULL);
    struct yaml_document *document =
        yaml_parse("program.yaml", slice_of_text(text), YAML_KEEP_VARIABLES, &problems);
    bool is_good = document != NULL && manifest_read(document, &arena, &program, &problems);
    yaml_destroy(document);
    return is_good;
}

#endif
