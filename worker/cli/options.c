#include "cli/options.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/invariant.h"
#include "base/nearest.h"
#include "base/number.h"
#include "cli/cli.h"

enum {
    LABEL_MAX = 19, /* a longer label has a line of its own */
    GAP = 2,
    FIRST = 256, /* the first option of the table, as getopt_long() calls it: no letter */
    FIRST_WORDS_MAX = 16,
    HELP = FIRST + CLI_OPTIONS_MAX,
    LABEL_SIZE = 64,
    USAGE_SIZE = LABEL_SIZE + 8,
    USAGE_COLUMNS = 90
};

/* --- what --help shows --- */

static bool is_shown(const struct cli_option *option) {
    return option->name != NULL && !option->is_hidden;
}

/* "--config FILE"; returns its length. */
static size_t write_label(const struct cli_option *option, char label[static LABEL_SIZE]) {
    snprintf(label, LABEL_SIZE, "--%s%s%s", option->name, option->takes != NULL ? " " : "",
        option->takes != NULL ? option->takes : "");
    return strlen(label);
}

static size_t widest_label(const struct cli_option *options) {
    char label[LABEL_SIZE];
    size_t widest = 0;
    for (; is_shown(options); options++) {
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
    static const struct cli_option none;
    const struct cli_option *next = is_shown(option + 1) ? option + 1 : &none;
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

/* Prints "this|that"; a row that is too long goes on in the next line, behind a bar. */
static void print_first(const struct cli_command *command, int indent, int *column) {
    const char *end = command->first_may_lack ? "]" : "";
    *column += printf(command->first_may_lack ? " [" : " ");
    for (const char *word = command->first; *word != 0;) {
        int length = (int)strcspn(word, "|") + (strchr(word, '|') != NULL);
        if (*column + length > USAGE_COLUMNS) *column = printf("\n%*s ", indent, "") - 1;
        *column += printf("%.*s", length, word);
        word += length;
    }
    *column += printf("%s", end);
}

static void print_usage(const struct cli_command *command) {
    char text[USAGE_SIZE];
    int indent = printf("usage: gpu-worker %s", command->name), column = indent;
    if (command->first != NULL) print_first(command, indent, &column);
    for (const struct cli_option *option = command->options; option != NULL && is_shown(option);
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
        for (const struct cli_option *option = command->options; is_shown(option); option++)
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

/* Each returns CLI_OK, or the exit code of what it has reported. */

static int take(
    const struct cli_command *command, const struct cli_option *option, const char *value) {
    if (option->flag != NULL) {
        *option->flag = true;
    } else if (option->number != NULL) {
        if (!read_number(value, option->number))
            return cli_fail_usage(
                command->name, "--%s takes a whole number, not '%s'", option->name, value);
    } else if (option->values != NULL) {
        if (option->values->count == CLI_VALUES_MAX)
            return cli_fail_usage(
                command->name, "--%s is given more than %d times", option->name, CLI_VALUES_MAX);
        option->values->items[option->values->count++] = value;
    } else {
        *option->text = value;
    }
    return CLI_OK;
}

/* `given` is "--confg" or "--confg=FILE". */
static int refuse_unknown(const struct cli_command *command, const char *given) {
    char name[LABEL_SIZE];
    struct nearest nearest;
    const char *start = given + strspn(given, "-");
    snprintf(name, sizeof name, "%.*s", (int)strcspn(start, "="), start);
    nearest_init(&nearest, name);
    for (const struct cli_option *option = command->options; option != NULL && is_shown(option);
         option++)
        nearest_offer(&nearest, option->name);
    nearest_offer(&nearest, "help");
    if (nearest.text == NULL)
        return cli_fail_usage(command->name, "there is no option '%s'", given);
    return cli_fail_usage(
        command->name, "there is no option '%s'; did you mean '--%s'?", given, nearest.text);
}

/* What getopt_long() does not take: `found` is '?' or ':', and `optopt` the option, or 0. */
static int refuse_option(const struct cli_command *command, int found, char **argv) {
    if (found == ':')
        return cli_fail_usage(command->name, "--%s needs a value: %s",
            command->options[optopt - FIRST].name, command->options[optopt - FIRST].takes);
    if (optopt == HELP) return cli_fail_usage(command->name, "--help takes no value");
    if (optopt >= FIRST)
        return cli_fail_usage(
            command->name, "--%s takes no value", command->options[optopt - FIRST].name);
    if (optopt != 0) return cli_fail_usage(command->name, "there is no option '-%c'", optopt);
    return refuse_unknown(command, argv[optind - 1]);
}

static void fill(struct option *long_options, const struct cli_option *options) {
    size_t count = 0;
    for (; options != NULL && options[count].name != NULL; count++) {
        INVARIANT(count < CLI_OPTIONS_MAX, "a command has at most CLI_OPTIONS_MAX options");
        bool is_flag = options[count].takes == NULL;
        long_options[count] = (struct option){.name = options[count].name,
            .has_arg = is_flag ? no_argument : required_argument,
            .val = FIRST + (int)count};
    }
    long_options[count] = (struct option){.name = "help", .has_arg = no_argument, .val = HELP};
}

static bool is_given(const struct cli_option *options, const bool *given, const char *name) {
    size_t i = 0;
    while (strcmp(options[i].name, name) != 0) i++;
    return given[i];
}

/* Whether the given options may be combined, and all required ones are there. */
static int check_options(const struct cli_command *command, const bool *given) {
    const struct cli_option *options = command->options;
    const char *taken = NULL; /* the given one of a row of alternatives */
    for (size_t i = 0; options != NULL && options[i].name != NULL; i++) {
        const char *name = options[i].name, *with = options[i].with;
        bool may = with == NULL || is_given(options, given, with);
        if (given[i] && !may)
            return cli_fail_usage(command->name, "--%s goes only with --%s", name, with);
        if (!given[i] && may && options[i].use == CLI_MUST)
            return cli_fail_usage(command->name, "--%s %s is missing%s%s", name, options[i].takes,
                with != NULL ? "; it goes with --" : "", with != NULL ? with : "");
        if (options[i].use != CLI_OR) taken = NULL;
        if (given[i] && taken != NULL)
            return cli_fail_usage(
                command->name, "--%s and --%s cannot be given together", taken, name);
        if (given[i]) taken = name;
    }
    return CLI_OK;
}

/* Whether `word` is in "this|that". */
static int check_first(const struct cli_command *command, const char *word) {
    char name[LABEL_SIZE],
        names[FIRST_WORDS_MAX][LABEL_SIZE]; /* a nearest one is kept until it is printed */
    struct nearest nearest;
    const char *rest = command->first;
    nearest_init(&nearest, word);
    for (size_t i = 0; *rest != 0; rest += strcspn(rest, "|"), rest += *rest == '|', i++) {
        INVARIANT(i < FIRST_WORDS_MAX, "a command has more first words than are compared");
        snprintf(name, sizeof name, "%.*s", (int)strcspn(rest, "|"), rest);
        if (strcmp(name, word) == 0) return CLI_OK;
        memcpy(names[i], name, sizeof name);
        nearest_offer(&nearest, names[i]);
    }
    if (nearest.text == NULL)
        return cli_fail_usage(command->name, "'%s' is none of %s", word, command->first);
    return cli_fail_usage(command->name, "'%s' is none of %s; did you mean '%s'?", word,
        command->first, nearest.text);
}

/* A file is probably the configuration. */
static int refuse_word(const struct cli_command *command, const bool *given, const char *word) {
    const struct cli_option *options = command->options;
    bool may_be_config = false;
    for (size_t i = 0; options != NULL && options[i].name != NULL; i++)
        may_be_config |= strcmp(options[i].name, "config") == 0 && !given[i];
    if (!may_be_config || access(word, R_OK) != 0)
        return cli_fail_usage(command->name, "'%s' is too much", word);
    return cli_fail_usage(
        command->name, "'%s' is too much; did you mean '--config %s'?", word, word);
}

static int check_words(const struct cli_command *command, const bool *given, char **words) {
    if (command->first != NULL && (words[0] != NULL || !command->first_may_lack)) {
        if (words[0] == NULL)
            return cli_fail_usage(command->name, "a word is missing: %s", command->first);
        int code = check_first(command, words[0]);
        if (code != CLI_OK) return code;
        words++;
    }
    if (command->words != NULL) {
        if (words[0] == NULL)
            return cli_fail_usage(command->name, "a word is missing: %s", command->words);
        if (strstr(command->words, "...") != NULL) return CLI_OK;
        words++;
    }
    return words[0] == NULL ? CLI_OK : refuse_word(command, given, words[0]);
}

bool cli_parse(
    const struct cli_command *command, int argc, char **argv, char ***ret_words, int *ret_exit) {
    struct option long_options[CLI_OPTIONS_MAX + 2] = {0};
    bool given[CLI_OPTIONS_MAX] = {0};
    int found;
    fill(long_options, command->options);
    *ret_exit = CLI_OK;
    while ((found = getopt_long(argc, argv, ":h", long_options, NULL)) != -1) {
        if (found == HELP || found == 'h') {
            print_help(command);
            return false;
        }
        if (found < FIRST) *ret_exit = refuse_option(command, found, argv);
        else *ret_exit = take(command, &command->options[found - FIRST], optarg);
        if (*ret_exit != CLI_OK) return false;
        given[found - FIRST] = true;
    }
    *ret_words = argv + optind;
    *ret_exit = check_words(command, given, *ret_words);
    if (*ret_exit == CLI_OK) *ret_exit = check_options(command, given);
    return *ret_exit == CLI_OK;
}
