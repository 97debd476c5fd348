#include "cli/options.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "base/invariant.h"
#include "base/number.h"
#include "cli/cli.h"

enum {
    LABEL_MAX = 19, /* one that is longer has a line of its own */
    GAP = 2,
    HELP = CLI_OPTIONS_MAX, /* beside the places of the table */
    LABEL_SIZE = 64
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

/* Every line of its help begins at the same column. */
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

static void print_help(const struct cli_command *command) {
    printf("%s", command->usage);
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
        INVARIANT(count < CLI_OPTIONS_MAX, "a command has no more options than that");
        bool is_flag = options[count].takes == NULL;
        long_options[count] = (struct option){.name = options[count].name,
            .has_arg = is_flag ? no_argument : required_argument,
            .val = (int)count};
    }
    long_options[count] = (struct option){.name = "help", .has_arg = no_argument, .val = HELP};
}

bool cli_parse(
    const struct cli_command *command, int argc, char **argv, char ***ret_words, int *ret_exit) {
    struct option long_options[CLI_OPTIONS_MAX + 2] = {0};
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
    }
    *ret_words = argv + optind;
    return true;
}
