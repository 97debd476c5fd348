#include "cli/options.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/exit.h"
#include "testing.h"

static struct {
    bool flag;
    const char *text;
    uint64_t number;
    struct cli_values values;
    const char *hidden;
} given;

static const struct cli_option options[] = {
    {"config", "FILE", "the configuration", .text = &given.text},
    {"dry-run", NULL, "says what would be done,\nand does nothing", .flag = &given.flag},
    {"count", "N", "at most so many", .number = &given.number},
    {"a-long-name-of-it", "WORDS", "what has a line of its own", .values = &given.values},
    {"child", "N", "which child it is", .is_hidden = true, .text = &given.hidden}, {0}};

static const struct cli_command plain = {.name = "test",
    .about = "Tests.\n",
    .options = options,
    .examples = "example:\n  gpu-worker test\n"};

static const char *chosen[9];

/* With all that options can be to each other. */
static const struct cli_option related[] = {
    {"config", "FILE", "must be there", CLI_MUST, .text = &chosen[0]},
    {"jobs", "FILE", "may be there", .text = &chosen[1]},
    {"results", "FILE", "must, with it", CLI_MUST, .with = "jobs", .text = &chosen[2]},
    {"letters", "FILE", "may, with it", .with = "jobs", .text = &chosen[3]},
    {"key", "KEY", "one of a row", .text = &chosen[4]},
    {"program", "NAME", "another one", CLI_OR, .text = &chosen[5]},
    {"everything", "YES|NO", "the last one", CLI_OR, .text = &chosen[6]},
    {"other", "NUMBER", "none of it", .text = &chosen[7]}, {0}};

static const struct cli_command strict = {.name = "test",
    .first = "start|stop",
    .words = "ID...",
    .about = "Tests.\n",
    .options = related};

static char **words;
static int exit_code;

/* ARGUMENTS after the command's name; the words stay where `words` says. */
#define PARSE_AS(command, ...)                                                                     \
    parse(command, (char *[]){"gpu-worker test", __VA_ARGS__, NULL},                               \
        (int)(sizeof((char *[]){__VA_ARGS__}) / sizeof(char *)) + 1)
#define PARSE(...) PARSE_AS(&plain, __VA_ARGS__)

static bool parse(const struct cli_command *as, char **argv, int argc) {
    static char *kept[2 * CLI_VALUES_MAX];
    assert_true((size_t)argc < sizeof kept / sizeof kept[0]);
    memcpy(kept, argv, ((size_t)argc + 1) * sizeof kept[0]);
    memset(&given, 0, sizeof given);
    exit_code = -1;
    optind = 0; /* getopt begins anew */
    return cli_parse(as, argc, kept, &words, &exit_code);
}

TEST(what_is_given_goes_where_the_table_says) {
    assert_true(PARSE("--config", "x.yaml", "--dry-run", "--count=12"));
    assert_string_equal(given.text, "x.yaml");
    assert_true(given.flag);
    assert_int_equal(given.number, 12);
    assert_null(*words);
}

TEST(what_help_does_not_show_can_be_given) {
    given.hidden = NULL;
    assert_true(PARSE("--child", "3"));
    assert_string_equal(given.hidden, "3");
}

TEST(what_is_not_given_stays_as_it_is) {
    assert_true(PARSE("--dry-run"));
    assert_null(given.text);
    assert_int_equal(given.number, 0);
    assert_int_equal(given.values.count, 0);
}

TEST(words_are_found_behind_options_wherever_they_stand) {
    assert_true(PARSE_AS(&strict, "start", "one", "--config", "3", "--", "--jobs"));
    assert_string_equal(words[0], "start");
    assert_string_equal(words[1], "one");
    assert_string_equal(words[2], "--jobs");
    assert_null(words[3]);
}

TEST(a_command_takes_just_the_words_that_it_names) {
    struct cli_command one = plain;
    one.words = "FILE";
    assert_false(PARSE("word"));
    assert_int_equal(exit_code, CLI_USAGE);
    assert_true(PARSE_AS(&one, "word"));
    assert_false(PARSE_AS(&one, "--dry-run"));
    assert_false(PARSE_AS(&one, "word", "word"));
    assert_true(PARSE_AS(&strict, "--config=f", "stop", "one", "two"));
    assert_false(PARSE_AS(&strict, "--config=f", "stop"));
    assert_false(PARSE_AS(&strict, "--config=f", "sto", "one"));
    assert_false(PARSE_AS(&strict, "--config=f", "start|stop", "one"));
    assert_false(PARSE_AS(&strict, "--config=f", "", "one"));
    assert_false(PARSE_AS(&strict, "--config=f"));
}

TEST(options_are_given_with_those_that_they_belong_to) {
    assert_false(PARSE_AS(&strict, "stop", "id"));
    assert_false(PARSE_AS(&strict, "stop", "id", "--config=f", "--jobs=f"));
    assert_false(PARSE_AS(&strict, "stop", "id", "--config=f", "--results=f"));
    assert_false(PARSE_AS(&strict, "stop", "id", "--config=f", "--letters=f"));
    assert_int_equal(exit_code, CLI_USAGE);
    assert_true(
        PARSE_AS(&strict, "stop", "id", "--config=f", "--letters=f", "--jobs=f", "--results=f"));
}

TEST(one_of_a_row_of_alternatives_is_taken) {
    assert_true(PARSE_AS(&strict, "stop", "id", "--config=f", "--key=k", "--other=1"));
    assert_true(PARSE_AS(&strict, "stop", "id", "--config=f", "--everything=YES"));
    assert_false(PARSE_AS(&strict, "stop", "id", "--config=f", "--key=k", "--program=p"));
    assert_false(PARSE_AS(&strict, "stop", "id", "--config=f", "--key=k", "--everything=YES"));
    assert_false(PARSE_AS(&strict, "stop", "id", "--config=f", "--program=k", "--everything=YES"));
}

TEST(what_may_be_given_again_is_kept_up_to_a_bound) {
    char *argv[CLI_VALUES_MAX + 3] = {"gpu-worker test"};
    for (int i = 1; i <= CLI_VALUES_MAX + 1; i++) argv[i] = "--a-long-name-of-it=x";
    argv[CLI_VALUES_MAX + 1] = NULL;
    assert_true(parse(&plain, argv, CLI_VALUES_MAX + 1));
    assert_int_equal(given.values.count, CLI_VALUES_MAX);
    assert_string_equal(given.values.items[CLI_VALUES_MAX - 1], "x");
    argv[CLI_VALUES_MAX + 1] = argv[1];
    argv[CLI_VALUES_MAX + 2] = NULL;
    assert_false(parse(&plain, argv, CLI_VALUES_MAX + 2));
    assert_int_equal(exit_code, CLI_USAGE);
}

TEST(what_is_no_option_or_no_number_is_refused) {
    static char *const bad[] = {"--nothing", "--count=", "--count=12x", "--count=-1", "--count=0x1",
        "--count=18446744073709551616", "--dry-run=yes", "--config", "-c"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(PARSE(bad[i]));
        assert_int_equal(exit_code, CLI_USAGE);
    }
}

/* What --help prints. */
static void read_help(const struct cli_command *as, char *text, size_t size) {
    FILE *kept = tmpfile();
    int before = dup(STDOUT_FILENO);
    assert_non_null(kept);
    fflush(stdout);
    dup2(fileno(kept), STDOUT_FILENO);
    bool goes_on = PARSE_AS(as, "--help", "--nothing");
    fflush(stdout);
    dup2(before, STDOUT_FILENO);
    close(before);
    assert_false(goes_on);
    rewind(kept);
    text[fread(text, 1, size - 1, kept)] = 0;
    fclose(kept);
}

TEST(help_shows_the_table_in_columns_and_ends_the_command_well) {
    static const char expected[] =
        "usage: gpu-worker test [--config FILE] [--dry-run] [--count N]\n"
        "                       [--a-long-name-of-it WORDS]...\n"
        "\n"
        "Tests.\n"
        "\n"
        "  --config FILE  the configuration\n"
        "  --dry-run      says what would be done,\n"
        "                 and does nothing\n"
        "  --count N      at most so many\n"
        "  --a-long-name-of-it WORDS\n"
        "                 what has a line of its own\n"
        "\n"
        "example:\n"
        "  gpu-worker test\n"
        "\n"
        "exit codes:\n"
        "  0  done\n";
    char text[4096];
    read_help(&plain, text, sizeof text);
    assert_int_equal(exit_code, CLI_OK);
    text[strlen(expected)] = 0;
    assert_string_equal(text, expected);
}

TEST(usage_shows_how_options_belong_together) {
    static const char expected[] =
        "usage: gpu-worker test start|stop --config FILE [--jobs FILE --results FILE\n"
        "                       [--letters FILE]] [--key KEY | --program NAME |\n"
        "                       --everything YES|NO] [--other NUMBER] ID...\n";
    char text[4096];
    read_help(&strict, text, sizeof text);
    text[strlen(expected)] = 0;
    assert_string_equal(text, expected);
}

TEST(usage_breaks_a_long_row_of_words_behind_a_bar) {
    static const struct cli_command many = {.name = "test",
        .first = "one-of-many-words|another-of-many-words|the-third-of-many-words|"
                 "the-fourth-of-many-words|and-the-last-word",
        .first_may_lack = true,
        .about = "Tests.\n",
        .options = options};
    static const char expected[] =
        "usage: gpu-worker test [one-of-many-words|another-of-many-words|the-third-of-many-words|\n"
        "                       the-fourth-of-many-words|and-the-last-word] [--config FILE]\n"
        "                       [--dry-run] [--count N]";
    char text[4096];
    read_help(&many, text, sizeof text);
    text[strlen(expected)] = 0;
    assert_string_equal(text, expected);
}

RUN_TESTS(T(what_is_given_goes_where_the_table_says), T(what_help_does_not_show_can_be_given),
    T(what_is_not_given_stays_as_it_is), T(words_are_found_behind_options_wherever_they_stand),
    T(a_command_takes_just_the_words_that_it_names),
    T(options_are_given_with_those_that_they_belong_to), T(one_of_a_row_of_alternatives_is_taken),
    T(what_may_be_given_again_is_kept_up_to_a_bound), T(what_is_no_option_or_no_number_is_refused),
    T(help_shows_the_table_in_columns_and_ends_the_command_well),
    T(usage_shows_how_options_belong_together), T(usage_breaks_a_long_row_of_words_behind_a_bar))
