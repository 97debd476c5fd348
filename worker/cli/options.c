#include "cli/options.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "base/invariant.h"
#include "base/number.h"
#include "cli/cli.h"

enum {
    LABEL_MAX = 19, /* a longer label has a line of its own */
    GAP = 2,
    HELP = CLI_OPTIONS_MAX, /* an index after those of the table */
    LABEL_SIZE = 64,
    USAGE_SIZE = LABEL_SIZE + 8,
    USAGE_COLUMNS = 90
};

/* --- what --help shows --- */

/* "--config FILE"; returns its length. */
static size_t write_label(const struct cli_option *option, char label[static LABEL_SIZE]) {
    snprintf(label, LABEL_SIZE, "--%s%s%s", option->name, option->takes != NULL ? " " : "",
        option->takes != NULL ? option->takes : "");
    return strlen(label);
}

static size_t widest_label(const struct cli_option *options) {
    char label[LABEL_SIZE];
    size_t widest = 0;
    for (; options->name != NULL; options++) {
        size_t width = write_label(options, label);
        if (width <= LABEL_MAX && width > widest) widest = width;
    }
    return widest;
}

/* Prints an option; all lines of its help begin at the same column. */
static void print_option(const struct cli_option *option, int column) {
    char label[LABEL_SIZE];
    bool is_long = write_label(option, label) > LABEL_MAX;
    if (is_long) printf("  %s\n%*s", label, column, "");
    else printf("  %-*s", column - 2, label);
    for (const char *line = option->help; line != NULL;) {
        const char *end = strchr(line, '\n');
        printf("%.*s\n", end != NULL ? (int)(end - line) : (int)strlen(line), line);
        line = end != NULL ? end + 1 : NULL;
        if (line != NULL) printf("%*s", column, "");
    }
}

/* Writes "[--config FILE]"; the brackets include options that are given with it or instead of it.
 * */
static void write_usage(const struct cli_option *option, char ret[static USAGE_SIZE]) {
    const struct cli_option *next = option + 1; /* or the end of the table */
    char label[LABEL_SIZE];
    (void)write_label(option, label);
    bool is_owner = next->with != NULL && strcmp(next->with, option->name) == 0;
    bool is_last =
        option->with != NULL && (next->with == NULL || strcmp(next->with, option->with) != 0);
    const char *end = option->use == CLI_MUST || is_owner ? "" : "]";
    snprintf(ret, USAGE_SIZE, "%s%s%s%s%s", option->use == CLI_MAY ? "[" : "", label,
        next->use == CLI_OR ? " |" : end, option->values != NULL ? "..." : "", is_last ? "]" : "");
}

static void print_usage_word(const char *word, int indent, int *column) {
    if (*column + 1 + (int)strlen(word) > USAGE_COLUMNS) *column = printf("\n%*s", indent, "") - 1;
    *column += printf(" %s", word);
}

static void print_usage(const struct cli_command *command) {
    char text[USAGE_SIZE];
    int indent = printf("usage: gpu-worker %s", command->name), column = indent;
    if (command->first != NULL) print_usage_word(command->first, indent, &column);
    for (const struct cli_option *option = command->options; option != NULL && option->name != NULL;
         option++) {
        write_usage(option, text);
        print_usage_word(text, indent, &column);
    }
    if (command->words != NULL) print_usage_word(command->words, indent, &column);
    printf("\n");
}

static void print_help(const struct cli_command *command) {
    print_usage(command);
    if (command->about != NULL) printf("\n%s", command->about);
    if (command->options != NULL) {
        int column = 2 + (int)widest_label(command->options) + GAP;
        printf("\n");
        for (const struct cli_option *option = command->options; option->name != NULL; option++)
            print_option(option, column);
    }
    if (command->examples != NULL) printf("\n%s", command->examples);
    cli_print_exits();
}

/* --- what was given --- */

static bool read_number(const char *text, uint64_t *ret) {
    size_t digits = number_read(text, ret);
    return digits > 0 && text[digits] == 0;
}

static bool add_value(struct cli_values *values, const char *value) {
    if (values->count == CLI_VALUES_MAX) return false;
    values->items[values->count++] = value;
    return true;
}

static bool take(const struct cli_option *option, const char *value) {
    if (option->flag != NULL) return *option->flag = true;
    if (option->number != NULL) return read_number(value, option->number);
    if (option->values != NULL) return add_value(option->values, value);
    *option->text = value;
    return true;
}

static void fill(struct option *long_options, const struct cli_option *options) {
    size_t count = 0;
    for (; options != NULL && options[count].name != NULL; count++) {
        INVARIANT(count < CLI_OPTIONS_MAX, "a command has at most CLI_OPTIONS_MAX options");
        bool is_flag = options[count].takes == NULL;
        long_options[count] = (struct option){.name = options[count].name,
            .has_arg = is_flag ? no_argument : required_argument,
            .val = (int)count};
    }
    long_options[count] = (struct option){.name = "help", .has_arg = no_argument, .val = HELP};
}

static bool is_given(const struct cli_option *options, const bool *given, const char *name) {
    size_t i = 0;
    while (strcmp(options[i].name, name) != 0) i++;
    return given[i];
}

/* Whether the given options may be combined, and all required ones are there. */
static bool can_be_given(const struct cli_option *options, const bool *given) {
    bool is_taken = false; /* one of a row of alternatives was given */
    for (size_t i = 0; options != NULL && options[i].name != NULL; i++) {
        const char *with = options[i].with;
        bool may = with == NULL || is_given(options, given, with);
        if (given[i] ? !may : may && options[i].use == CLI_MUST) return false;
        if (options[i].use != CLI_OR) is_taken = false;
        if (given[i] && is_taken) return false;
        is_taken = is_taken || given[i];
    }
    return true;
}

/* Whether it is in "this|that". */
static bool is_one_of(const char *names, const char *word) {
    for (size_t size; (size = strcspn(names, "|")) > 0; names += size + (names[size] == '|'))
        if (strlen(word) == size && memcmp(names, word, size) == 0) return true;
    return false;
}

static bool are_words_right(const struct cli_command *command, char **words) {
    size_t count = 0;
    while (words[count] != NULL) count++;
    if (command->first != NULL) {
        if (count == 0 || !is_one_of(command->first, words[0])) return false;
        count--;
    }
    if (command->words == NULL) return count == 0;
    return strstr(command->words, "...") != NULL ? count > 0 : count == 1;
}

bool cli_parse(
    const struct cli_command *command, int argc, char **argv, char ***ret_words, int *ret_exit) {
    struct option long_options[CLI_OPTIONS_MAX + 2] = {0};
    bool given[CLI_OPTIONS_MAX] = {0};
    int found;
    fill(long_options, command->options);
    while ((found = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        if (found == HELP) {
            print_help(command);
            *ret_exit = CLI_OK;
            return false;
        }
        if (found == '?' || !take(&command->options[found], optarg)) {
            *ret_exit = cli_fail_usage(command->name);
            return false;
        }
        given[found] = true;
    }
    *ret_words = argv + optind;
    if (can_be_given(command->options, given) && are_words_right(command, *ret_words)) return true;
    *ret_exit = cli_fail_usage(command->name);
    return false;
}
