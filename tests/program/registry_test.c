#include "program/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "support/scratch.h"
#include "testing.h"

static char *root;
static struct problems problems;

static int set_up(void **state) {
    root = scratch_create();
    problems_init(&problems);
    return 0;
}

static int tear_down(void **state) {
    problems_fini(&problems);
    scratch_remove(root);
    return 0;
}

static void write_bytes(const char *folder, const char *name, const void *bytes, size_t size) {
    char path[200];
    snprintf(path, sizeof path, "%s/%s", root, folder);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/%s/%s", root, folder, name);
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    assert_int_equal(fwrite(bytes, 1, size, out), size);
    fclose(out);
}

static void write_text(const char *folder, const char *name, const char *text) {
    write_bytes(folder, name, text, strlen(text));
}

static void write_manifest(const char *folder, const char *name, const char *images) {
    char text[500];
    snprintf(text, sizeof text,
        "name: %s\nentries: [{name: first, args: []}, {name: second, args: []}]\nimages: [%s]\n",
        name, images);
    write_text(folder, "program.yaml", text);
}

#define PTX ".version 6.0\n.entry first()\n{}\n.entry second()\n{}\n"

static void write_program(const char *name, const char *ptx) {
    write_manifest(name, name, "{kind: ptx, file: k.ptx}");
    write_text(name, "k.ptx", ptx);
}

static struct registry *load(void) {
    struct registry *registry = registry_load(root, &problems);
    assert_non_null(registry);
    return registry;
}

TEST(programs_are_found_by_their_names) {
    write_program("beta", PTX);
    write_program("alpha", PTX);
    write_program("alpha2", PTX);
    struct registry *registry = load();
    assert_false(problems_any(&problems));
    assert_int_equal(registry_count(registry), 3);
    static const char *const names[] = {"alpha", "alpha2", "beta"};
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(registry_at(registry, i)->name, names[i]);
        assert_ptr_equal(
            registry_find(registry, slice_of_text(names[i])), registry_at(registry, i));
    }
    assert_null(registry_at(registry, 3));
    static const char *const absent[] = {"", "alph", "alpha3", "gamma", "ALPHA"};
    for (size_t i = 0; i < sizeof absent / sizeof absent[0]; i++)
        assert_null(registry_find(registry, slice_of_text(absent[i])));
    assert_null(registry_find(registry, slice_of(NULL, 0)));
    registry_destroy(registry);
}

TEST(images_carry_their_bytes_and_digests) {
    write_program("p", PTX);
    struct registry *registry = load();
    const struct image *image = &registry_at(registry, 0)->images[0];
    assert_true(slice_is_text(image->bytes, PTX));
    assert_int_equal(image->bytes.data[image->bytes.size], 0);
    struct digest digest = digest_of(slice_of_text(PTX));
    assert_true(digest_equal(&image->digest, &digest));
    registry_destroy(registry);
}

TEST(an_empty_entry_name_is_the_first_entry) {
    write_program("p", PTX);
    struct registry *registry = load();
    const struct program *program = registry_at(registry, 0);
    assert_string_equal(program_entry(program, slice_of(NULL, 0))->name, "first");
    assert_string_equal(program_entry(program, slice_of_text("second"))->name, "second");
    assert_null(program_entry(program, slice_of_text("third")));
    registry_destroy(registry);
}

TEST(the_image_fits_the_driver_and_the_architecture) {
    write_manifest("p", "p",
        "{kind: ptx, file: k.ptx}, {kind: cubin, file: k90, architecture: 9.0}, "
        "{kind: cpu, file: k.so}, {kind: ptx, file: old.ptx}");
    write_text("p", "k.ptx", PTX);
    write_text("p", "old.ptx", "// old\n" PTX);
    write_text("p", "k90", "cubin");
    write_text("p", "k.so", "cpu");
    struct registry *registry = load();
    const struct program *program = registry_at(registry, 0);
    assert_int_equal(program_image(program, true, 0, NULL)->kind, IMAGE_CPU);
    assert_int_equal(program_image(program, false, 90, NULL)->kind, IMAGE_CUBIN);
    assert_int_equal(program_image(program, false, 80, NULL)->kind, IMAGE_PTX);

    assert_string_equal(program_image(program, false, 80, NULL)->file, "k.ptx"); /* the first */
    struct digest old = digest_of(slice_of_text("// old\n" PTX));
    assert_string_equal(program_image(program, false, 90, &old)->file, "old.ptx");

    struct digest ptx = digest_of(slice_of_text(PTX)), other = digest_of(slice_of_text("other"));
    assert_int_equal(program_image(program, false, 90, &ptx)->kind, IMAGE_PTX);
    assert_null(program_image(program, false, 90, &other));
    assert_null(program_image(program, true, 0, &ptx));
    registry_destroy(registry);
}

TEST(a_program_without_a_cpu_image_has_none) {
    write_program("p", PTX);
    struct registry *registry = load();
    assert_null(program_image(registry_at(registry, 0), true, 0, NULL));
    registry_destroy(registry);
}

TEST(folders_without_a_manifest_and_dotted_ones_are_passed_over) {
    write_program("p", PTX);
    write_text("notes", "readme.txt", "none of ours");
    write_program("..data", PTX);
    write_text(".", "file.txt", "not even a folder");
    struct registry *registry = load();
    assert_false(problems_any(&problems));
    assert_int_equal(registry_count(registry), 1);
    registry_destroy(registry);
}

TEST(a_bad_program_is_reported_and_the_others_are_loaded) {
    write_program("a", PTX);
    write_manifest("b", "b", "{kind: ptx, file: k.ptx}, {kind: cpu, file: k.so}");
    write_text("b", "k.so", "cpu");
    write_text("c", "program.yaml", "name: c\n");
    write_program("d", PTX);
    struct registry *registry = load();
    assert_int_equal(registry_count(registry), 2);
    assert_string_equal(registry_at(registry, 1)->name, "d");
    assert_int_equal(problems_total(&problems), 3); /* b's image, c's entries and images */
    assert_non_null(strstr(problems.items[0].where, "/b/program.yaml:3:28"));
    assert_non_null(strstr(problems.items[0].what, "/b/k.ptx: No such file"));
    registry_destroy(registry);
}

TEST(a_program_has_its_folders_name) {
    write_manifest("a", "b", "{kind: ptx, file: k.ptx}");
    write_text("a", "k.ptx", PTX);
    struct registry *registry = load();
    assert_int_equal(registry_count(registry), 0);
    assert_string_equal(problems.items[0].what, "program 'b' in a folder named 'a'");
    registry_destroy(registry);
}

TEST(images_that_cannot_be_right_are_refused) {
    write_program("empty", "");
    write_manifest("nul", "nul", "{kind: ptx, file: k.ptx}");
    write_bytes("nul", "k.ptx", "a\0b", 3);
    struct registry *registry = load();
    assert_int_equal(registry_count(registry), 0);
    assert_int_equal(problems_total(&problems), 2);
    assert_non_null(strstr(problems.items[0].what, "k.ptx: empty"));
    assert_non_null(strstr(problems.items[1].what, "k.ptx: not a text file"));
    registry_destroy(registry);
}

TEST(a_manifest_with_a_key_twice_is_refused) {
    write_program("p", ".entry p() {}");
    write_text("p", "program.yaml",
        "name: p\nname: p\nentries: [{name: p, args: []}]\nimages: [{kind: ptx, file: k.ptx}]\n");
    struct registry *registry = load();
    assert_int_equal(registry_count(registry), 0);
    assert_int_equal(problems_total(&problems), 1);
    registry_destroy(registry);
}

TEST(a_folder_that_is_not_there_is_a_problem) {
    struct registry *registry = registry_load("/dev/null/at/all", &problems);
    assert_non_null(registry);
    assert_int_equal(registry_count(registry), 0);
    assert_string_equal(problems.items[0].where, "/dev/null/at/all");
    registry_destroy(registry);
}

static const struct program *find(const struct registry *registry, const char *name) {
    return registry_find(registry, slice_of_text(name));
}

TEST(what_is_loaded_again_shares_the_programs_that_have_not_changed) {
    write_program("same", PTX);
    write_program("image", PTX);
    write_program("manifest", PTX);
    write_program("gone", PTX);
    struct registry *earlier = load();
    write_program("image", PTX "// other\n");
    write_manifest("manifest", "manifest", "{kind: ptx, file: k.ptx} ");
    write_program("new", PTX);
    char path[200];
    snprintf(path, sizeof path, "%s/gone/program.yaml", root);
    assert_int_equal(remove(path), 0);
    struct registry *again = registry_load_again(root, earlier, &problems);
    assert_false(problems_any(&problems));
    assert_int_equal(registry_count(again), 4);
    assert_true(program_is_same(find(again, "same"), find(earlier, "same")));
    assert_ptr_equal(find(again, "same")->images, find(earlier, "same")->images);
    assert_false(program_is_same(find(again, "image"), find(earlier, "image")));
    assert_false(program_is_same(find(again, "manifest"), find(earlier, "manifest")));

    struct program held = *find(earlier, "gone");
    program_hold(&held);
    assert_true(program_is_installed(&held));
    registry_destroy(earlier);
    assert_string_equal(find(again, "same")->name, "same");
    assert_string_equal(held.name, "gone");
    assert_false(program_is_installed(&held));
    program_release(&held);
    registry_destroy(again);
}

TEST_MAIN() {
#define S(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {S(programs_are_found_by_their_names),
        S(images_carry_their_bytes_and_digests), S(an_empty_entry_name_is_the_first_entry),
        S(the_image_fits_the_driver_and_the_architecture),
        S(a_program_without_a_cpu_image_has_none),
        S(folders_without_a_manifest_and_dotted_ones_are_passed_over),
        S(a_bad_program_is_reported_and_the_others_are_loaded), S(a_program_has_its_folders_name),
        S(images_that_cannot_be_right_are_refused), S(a_manifest_with_a_key_twice_is_refused),
        S(a_folder_that_is_not_there_is_a_problem),
        S(what_is_loaded_again_shares_the_programs_that_have_not_changed)};
#undef S
    return cmocka_run_group_tests(tests, NULL, NULL);
}
