#include "base/yaml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testing.h"

static struct problems problems;

static struct yaml_document *parse(const char *text) {
    problems_fini(&problems);
    return yaml_parse("t.yaml", slice_of_text(text), YAML_EXPAND_VARIABLES, &problems);
}

/* Whether or not a document comes of it, the text has this problem alone. */
static void expect_problem(const char *text, const char *where, const char *what) {
    yaml_destroy(parse(text));
    assert_int_equal(problems_total(&problems), 1);
    assert_string_equal(problems.items[0].where, where);
    assert_string_equal(problems.items[0].what, what);
}

static const struct yaml_node *expect_scalar(
    const struct yaml_node *node, const char *text, int line, int column) {
    assert_non_null(node);
    assert_int_equal(node->kind, YAML_SCALAR);
    assert_string_equal(node->text, text);
    assert_int_equal(node->line, line);
    assert_int_equal(node->column, column);
    return node;
}

TEST(a_byte_order_mark_is_no_part_of_the_text) {
    struct yaml_document *document = parse("\xef\xbb\xbf"
                                           "a: 1\nb: 2\n");
    assert_non_null(document);
    expect_scalar(yaml_root(document)->keys[0], "a", 1, 1);
    expect_scalar(yaml_root(document)->keys[1], "b", 2, 1);
    yaml_destroy(document);
}

TEST(a_file_that_cannot_be_read_is_named_once) {
    problems_fini(&problems);
    assert_null(yaml_load("/nowhere/t.yaml", YAML_EXPAND_VARIABLES, &problems));
    assert_int_equal(problems_total(&problems), 1);
    assert_string_equal(problems.items[0].where, "/nowhere/t.yaml");
    assert_string_equal(problems.items[0].what, "No such file or directory");
}

TEST(every_node_knows_its_place) {
    struct yaml_document *document = parse("a: 1\nb:\n  - x\n  - {c: y}\n");
    assert_non_null(document);
    const struct yaml_node *root = yaml_root(document);
    assert_int_equal(root->kind, YAML_MAPPING);
    assert_int_equal(root->count, 2);
    expect_scalar(root->keys[1], "b", 2, 1);
    expect_scalar(yaml_get(root, "a"), "1", 1, 4);
    const struct yaml_node *list = yaml_get(root, "b");
    assert_int_equal(list->kind, YAML_SEQUENCE);
    assert_int_equal(list->count, 2);
    expect_scalar(list->values[0], "x", 3, 5);
    expect_scalar(yaml_get(list->values[1], "c"), "y", 4, 9);
    assert_null(yaml_get(root, "c"));
    assert_null(yaml_get(list, "c"));
    assert_string_equal(yaml_file(document), "t.yaml");
    yaml_destroy(document);
}

TEST(lists_and_maps_grow) {
    char text[64 * 100] = "";
    for (int i = 0; i < 100; i++) sprintf(text + strlen(text), "key%d: [%d, %d]\n", i, i, i + 1);
    struct yaml_document *document = parse(text);
    assert_non_null(document);
    assert_int_equal(yaml_root(document)->count, 100);
    assert_string_equal(yaml_get(yaml_root(document), "key77")->values[1]->text, "78");
    yaml_destroy(document);
}

TEST(an_empty_document_is_an_empty_map) {
    const char *const texts[] = {"", "# a comment\n", "---\n", "---\n# c\n...\n"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct yaml_document *document = parse(texts[i]);
        assert_non_null(document);
        assert_int_equal(yaml_root(document)->kind, YAML_MAPPING);
        assert_int_equal(yaml_root(document)->count, 0);
        yaml_destroy(document);
    }
}

TEST(quotes_are_remembered) {
    struct yaml_document *document = parse("[plain, 'single', \"double\", \"\"]");
    assert_non_null(document);
    const struct yaml_node *list = yaml_root(document);
    assert_false(list->values[0]->is_quoted);
    for (size_t i = 1; i < 4; i++) assert_true(list->values[i]->is_quoted);
    yaml_destroy(document);
}

TEST(variables_are_replaced_in_values_only) {
    setenv("YAML_TEST", "value", 1);
    struct yaml_document *document = parse("${YAML_TEST}: ${YAML_TEST}\n");
    assert_non_null(document);
    assert_string_equal(yaml_get(yaml_root(document), "${YAML_TEST}")->text, "value");
    yaml_destroy(document);
    problems_fini(&problems);
    document =
        yaml_parse("t.yaml", slice_of_text("a: ${YAML_TEST}"), YAML_KEEP_VARIABLES, &problems);
    assert_string_equal(yaml_get(yaml_root(document), "a")->text, "${YAML_TEST}");
    yaml_destroy(document);
}

TEST(an_unset_variable_is_a_problem_and_the_rest_is_read) {
    unsetenv("YAML_TEST");
    struct yaml_document *document = parse("a: ${YAML_TEST}\nb: fine\n");
    assert_non_null(document);
    assert_int_equal(problems.count, 1);
    assert_string_equal(problems.items[0].where, "t.yaml:1:4");
    assert_string_equal(problems.items[0].what, "environment variable 'YAML_TEST' is not set");
    assert_true(yaml_get(yaml_root(document), "a")->is_bad);
    assert_string_equal(yaml_get(yaml_root(document), "b")->text, "fine");
    yaml_destroy(document);
}

TEST(what_is_no_yaml_is_refused_with_its_place) {
    expect_problem("a: [1, 2\nb: 3\n", "t.yaml:2:2",
        "while parsing a flow sequence: did not find expected ',' or ']'");
    expect_problem(
        "a: }\n", "t.yaml:1:4", "while parsing a block node: did not find expected node content");
}

TEST(bytes_that_are_no_text_are_refused_with_their_place) {
    assert_null(parse("a: 1\nb: \xff\n"));
    assert_string_equal(problems.items[0].where, "t.yaml:2:4");
    assert_non_null(strstr(problems.items[0].fix, "UTF-8"));
    assert_null(parse("a: 1\nb: \x01\n"));
    assert_string_equal(problems.items[0].where, "t.yaml:2:4");
}

TEST(a_nul_in_a_string_is_refused) {
    expect_problem("a: \"x\\0y\"\n", "t.yaml:1:4", "a NUL character in a string");
}

TEST(a_key_that_appears_twice_is_refused_where_it_repeats) {
    expect_problem(
        "b: 1\na: 1\nc: 1\na: 2\n", "t.yaml:4:1", "key 'a' appears twice, first in line 2");
}

TEST(anchors_aliases_and_tags_are_refused) {
    expect_problem("a: &x 1\n", "t.yaml:1:4", "anchors ('&') are not allowed");
    expect_problem("a: !!str 1\n", "t.yaml:1:4", "tags ('!') are not allowed");
    expect_problem("a: *x\n", "t.yaml:1:4", "aliases ('*') are not allowed");
    expect_problem("a: &x [1]\n", "t.yaml:1:4", "anchors ('&') are not allowed");
    expect_problem("a: !t {b: 1}\n", "t.yaml:1:4", "tags ('!') are not allowed");
}

TEST(a_second_document_is_refused) {
    expect_problem("a: 1\n---\nb: 2\n", "t.yaml:2:1", "a second document in one file");
}

TEST(a_key_is_a_plain_name) {
    expect_problem("? [a, b]\n: 1\n", "t.yaml:1:3", "a key that is not a plain name");
}

TEST(nesting_is_bounded) {
    char text[64] = "";
    for (int i = 0; i < 16; i++) strcat(text, "[");
    for (int i = 0; i < 16; i++) strcat(text, "]");
    struct yaml_document *document = parse(text);
    assert_non_null(document);
    yaml_destroy(document);
    memmove(text + 1, text, 33);
    strcat(text, "]");
    expect_problem(text, "t.yaml:1:17", "nested too deeply (more than 16 levels)");
}

TEST(size_is_bounded) {
    size_t size = (16 << 20) + 1;
    char *text = malloc(size);
    memset(text, '#', size);
    problems_fini(&problems);
    assert_null(yaml_parse("t.yaml", slice_of(text, size), YAML_KEEP_VARIABLES, &problems));
    assert_string_equal(problems.items[0].what, "more than 16 MiB");
    free(text);
}

TEST(a_tree_that_outgrows_its_text_is_refused) {
    size_t pairs = 2 << 20;
    char *text = malloc(2 * pairs + 3), *end = text;
    *end++ = '[';
    for (size_t i = 0; i < pairs; i++) end = stpcpy(end, "a,");
    *end++ = ']';
    problems_fini(&problems);
    assert_null(
        yaml_parse("t.yaml", slice_of(text, (size_t)(end - text)), YAML_KEEP_VARIABLES, &problems));
    assert_string_equal(problems.items[0].what, "more than fits in memory (64 MiB as a tree)");
    free(text);
}

TEST(a_file_that_is_not_there_is_a_problem_of_the_file) {
    problems_fini(&problems);
    assert_null(yaml_load("/dev/null/a.yaml", YAML_KEEP_VARIABLES, &problems));
    assert_string_equal(problems.items[0].where, "/dev/null/a.yaml");
}

TEST(numbers_are_plain_decimals) {
    struct yaml_document *document =
        parse("[0, 18446744073709551615, 18446744073709551616, 007, -1, 1.5, '', 1 2, [1]]");
    const struct yaml_node *list = yaml_root(document);
    uint64_t value = 5;
    assert_true(yaml_read_uint(list->values[0], &value));
    assert_int_equal(value, 0);
    assert_true(yaml_read_uint(list->values[1], &value));
    assert_true(value == UINT64_MAX);
    for (size_t i = 2; i < list->count; i++) assert_false(yaml_read_uint(list->values[i], &value));
    assert_true(value == UINT64_MAX);
    yaml_destroy(document);
}

TEST(truth_is_true_or_false) {
    struct yaml_document *document = parse("[true, false, yes, True, 'true', [true]]");
    const struct yaml_node *list = yaml_root(document);
    bool value = false;
    assert_true(yaml_read_bool(list->values[0], &value) && value);
    assert_true(yaml_read_bool(list->values[1], &value) && !value);
    for (size_t i = 2; i < list->count; i++) assert_false(yaml_read_bool(list->values[i], &value));
    yaml_destroy(document);
}

static int forget_problems(void **state) {
    problems_fini(&problems);
    return 0;
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {T(a_byte_order_mark_is_no_part_of_the_text),
        T(a_file_that_cannot_be_read_is_named_once), T(every_node_knows_its_place),
        T(lists_and_maps_grow), T(an_empty_document_is_an_empty_map), T(quotes_are_remembered),
        T(variables_are_replaced_in_values_only),
        T(an_unset_variable_is_a_problem_and_the_rest_is_read),
        T(what_is_no_yaml_is_refused_with_its_place),
        T(bytes_that_are_no_text_are_refused_with_their_place), T(a_nul_in_a_string_is_refused),
        T(a_key_that_appears_twice_is_refused_where_it_repeats),
        T(anchors_aliases_and_tags_are_refused), T(a_second_document_is_refused),
        T(a_key_is_a_plain_name), T(nesting_is_bounded), T(size_is_bounded),
        T(a_tree_that_outgrows_its_text_is_refused),
        T(a_file_that_is_not_there_is_a_problem_of_the_file), T(numbers_are_plain_decimals),
        T(truth_is_true_or_false)};
    return cmocka_run_group_tests(tests, NULL, forget_problems);
}
