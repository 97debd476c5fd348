/* The settings as YAML, as JSON Schema and as a table for config/README.md, all from setting_table.
 */
#include <inttypes.h>

#include "settings/kafka_keys.h"
#include "settings/quote.h"
#include "settings/settings.h"
#include "settings/table.h"
#include "settings/value.h"

enum { COMMENT_COLUMNS = 100, HELP_SIZE = 600 };

/* The help, followed by the allowed values. */
static const char *describe(const struct setting *setting, char text[static HELP_SIZE]) {
    char min[VALUE_NUMBER_SIZE], max[VALUE_NUMBER_SIZE];
    size_t used = (size_t)snprintf(text, HELP_SIZE, "%s", setting->help);
    if (setting->type == SETTING_ENUM) {
        for (size_t i = 0; setting->names[i] != NULL; i++)
            used += (size_t)snprintf(text + used, HELP_SIZE - used, "%s%s",
                i == 0 ? " One of " : ", ", setting->names[i]);
        used += (size_t)snprintf(text + used, HELP_SIZE - used, ".");
    } else if (setting->max > 0) {
        used += (size_t)snprintf(text + used, HELP_SIZE - used, " From %s to %s.",
            value_format_number(setting->type, setting->min, min),
            value_format_number(setting->type, setting->max, max));
    }
    if (setting->reloads) snprintf(text + used, HELP_SIZE - used, " Reloads.");
    return text;
}

/* Prints whole words in lines that begin with "# ". */
static void print_comment(const char *text, int indent, FILE *out) {
    int column = fprintf(out, "%*s#", indent, "");
    while (*text != 0) {
        int size = (int)strcspn(text, " ");
        if (column + 1 + size > COMMENT_COLUMNS) column = fprintf(out, "\n%*s#", indent, "") - 1;
        column += fprintf(out, " %.*s", size, text);
        text += size;
        text += strspn(text, " ");
    }
    fputc('\n', out);
}

static void print_yaml(const struct settings *settings, bool with_help, FILE *out) {
    const struct section *section = NULL;
    char help[HELP_SIZE];
    for (size_t i = 0; i < setting_count; i++) {
        const struct setting *setting = &setting_table[i];
        if (with_help) fputc('\n', out);
        if (setting_section(setting) != section) {
            section = setting_section(setting);
            if (with_help) print_comment(section->help, 0, out);
            fprintf(out, "%s:\n", section->name);
        }
        int indent = section == NULL ? 0 : 2;
        if (with_help) print_comment(describe(setting, help), indent, out);
        fprintf(out, "%*s%s: ", indent, "", setting_key(setting));
        value_print(setting, (const char *)settings + setting->offset, out);
        fputc('\n', out);
    }
}

void settings_print(const struct settings *settings, FILE *out) {
    print_yaml(settings, false, out);
}

/* Words that stand bare in YAML, and need quotes in JSON. */
static bool is_word(const struct setting *setting, const void *field) {
    return setting->type == SETTING_DURATION || setting->type == SETTING_SIZE ||
           setting->type == SETTING_ENUM ||
           (setting->type == SETTING_DEVICES && ((const struct string_list *)field)->count == 0);
}

void settings_print_json(const struct settings *settings, FILE *out) {
    const struct section *section = NULL;
    const char *separator = "{";
    for (size_t i = 0; i < setting_count; i++) {
        const struct setting *setting = &setting_table[i];
        const void *field = (const char *)settings + setting->offset;
        if (setting_section(setting) != section) {
            fprintf(
                out, "%s, \"%s\": ", section != NULL ? "}" : "", setting_section(setting)->name);
            section = setting_section(setting);
            separator = "{";
        }
        const char *quote = is_word(setting, field) ? "\"" : "";
        fprintf(out, "%s\"%s\": %s", separator, setting_key(setting), quote);
        value_print(setting, field, out);
        fputs(quote, out);
        separator = ", ";
    }
    fputs("}}\n", out);
}

void settings_print_defaults(FILE *out) {
    struct settings defaults;
    settings_init(&defaults);
    fputs("# Every setting of gpu-worker with its default; keep what you change.\n"
          "# ${NAME} and ${NAME:-default} take a value from the environment, $$ is a dollar sign,\n"
          "# and {file: path} takes a text, such as a password, from a file.\n",
        out);
    print_yaml(&defaults, true, out);
    settings_fini(&defaults);
}

/* The table has defaults in YAML. For these types that is JSON as well. */
static bool fallback_is_json(const struct setting *setting) {
    return setting->type == SETTING_UINT || setting->type == SETTING_BOOL ||
           setting->type == SETTING_STRING || setting->type == SETTING_LIST ||
           setting->type == SETTING_MAP;
}

static void print_names(const char *const *names, FILE *out) {
    fputc('[', out);
    for (size_t i = 0; names[i] != NULL; i++) {
        if (i > 0) fputs(", ", out);
        quote_json(names[i], out);
    }
    fputc(']', out);
}

static void print_refused_keys(FILE *out) {
    fputc('[', out);
    for (size_t i = 0; i < kafka_refusal_count; i++) {
        if (i > 0) fputs(", ", out);
        quote_json(kafka_refusals[i].key, out);
    }
    fputc(']', out);
}

/* Prints the keywords that say which values are valid. */
static void print_constraint(const struct setting *setting, FILE *out) {
    switch (setting->type) {
    case SETTING_UINT:
        fprintf(out,
            "\"anyOf\": [{\"type\": \"integer\", \"minimum\": %" PRIu64 ", \"maximum\": %" PRIu64
            "}, {\"$ref\": \"#/$defs/variable\"}]",
            setting->min, setting->max);
        break;
    case SETTING_DURATION:
    case SETTING_SIZE:
        fprintf(out, "\"$ref\": \"#/$defs/%s\", \"minimum\": %" PRIu64 ", \"maximum\": %" PRIu64,
            setting->type == SETTING_SIZE ? "size" : "duration", setting->min, setting->max);
        break;
    case SETTING_ENUM:
        fputs("\"anyOf\": [{\"enum\": ", out);
        print_names(setting->names, out);
        fputs("}, {\"$ref\": \"#/$defs/variable\"}]", out);
        break;
    case SETTING_BOOL:
        fputs("\"anyOf\": [{\"type\": \"boolean\"}, {\"$ref\": \"#/$defs/variable\"}]", out);
        break;
    case SETTING_STRING:
        fprintf(out, "\"$ref\": \"#/$defs/text\", \"minLength\": %" PRIu64, setting->min);
        break;
    case SETTING_LIST:
        fprintf(out,
            "\"type\": \"array\", \"items\": {\"$ref\": \"#/$defs/text\"}, \"minItems\": %" PRIu64,
            setting->min);
        break;
    case SETTING_DEVICES:
        fprintf(out,
            "\"anyOf\": [{\"const\": \"all\"}, {\"type\": \"array\", \"items\": {\"$ref\": "
            "\"#/$defs/text\"}, \"minItems\": %" PRIu64 "}]",
            setting->min);
        break;
    case SETTING_MAP:
        fputs("\"type\": [\"object\", \"null\"], \"additionalProperties\": {\"$ref\": "
              "\"#/$defs/text\"}, \"propertyNames\": {\"not\": {\"enum\": ",
            out);
        print_refused_keys(out);
        fputs("}}", out);
        break;
    }
}

static void print_property(const struct setting *setting, int indent, FILE *out) {
    char help[HELP_SIZE];
    fprintf(out, "%*s", indent, "");
    quote_json(setting_key(setting), out);
    fputs(": {\"description\": ", out);
    quote_json(describe(setting, help), out);
    fputs(", \"default\": ", out);
    if (fallback_is_json(setting)) fputs(setting->fallback, out);
    else quote_json(setting->fallback, out);
    fputs(", ", out);
    print_constraint(setting, out);
    fputc('}', out);
}

static void print_properties(const struct section *section, int indent, FILE *out) {
    const char *separator = "";
    for (size_t i = 0; i < setting_count; i++) {
        if (setting_section(&setting_table[i]) != section) continue;
        fprintf(out, "%s\n", separator);
        print_property(&setting_table[i], indent, out);
        separator = ",";
    }
}

static void print_section(const struct section *section, FILE *out) {
    fprintf(out, ",\n    \"%s\": {\"description\": ", section->name);
    quote_json(section->help, out);
    fputs(", \"type\": [\"object\", \"null\"], \"additionalProperties\": false, \"properties\": {",
        out);
    print_properties(section, 6, out);
    fputs("\n    }}", out);
}

void settings_print_schema(FILE *out) {
    fputs("{\n"
          "  \"$schema\": \"https://json-schema.org/draft/2020-12/schema\",\n"
          "  \"title\": \"Configuration of gpu-worker\",\n"
          "  \"type\": [\"object\", \"null\"],\n"
          "  \"additionalProperties\": false,\n"
          "  \"properties\": {",
        out);
    print_properties(NULL, 4, out);
    for (size_t i = 0; i < section_count; i++) print_section(&section_table[i], out);
    fputs(
        "\n  },\n"
        "  \"$defs\": {\n"
        "    \"variable\": {\"type\": \"string\", \"pattern\": \"\\\\$\\\\{\"},\n"
        "    \"duration\": {\"type\": [\"integer\", \"string\"],\n"
        "      \"pattern\": \"^(0|[1-9][0-9]*)(ms|s|m|h)?$|\\\\$\\\\{\"},\n"
        "    \"size\": {\"type\": [\"integer\", \"string\"],\n"
        "      \"pattern\": \"^(0|[1-9][0-9]*)(KiB|MiB|GiB|TiB)?$|\\\\$\\\\{\"},\n"
        "    \"text\": {\"anyOf\": [{\"type\": [\"string\", \"number\", \"boolean\"]},\n"
        "      {\"type\": \"object\", \"required\": [\"file\"], \"additionalProperties\": false,\n"
        "        \"properties\": {\"file\": {\"type\": \"string\"}}}]}\n"
        "  }\n"
        "}\n",
        out);
}

void settings_print_table(FILE *out) {
    static const char *const types[] = {[SETTING_UINT] = "number",
        [SETTING_DURATION] = "duration",
        [SETTING_SIZE] = "size",
        [SETTING_ENUM] = "name",
        [SETTING_BOOL] = "true or false",
        [SETTING_STRING] = "text",
        [SETTING_LIST] = "list of texts",
        [SETTING_MAP] = "map of texts",
        [SETTING_DEVICES] = "all or a list"};
    char help[HELP_SIZE];
    fputs("| key | type | default | meaning |\n| --- | --- | --- | --- |\n", out);
    for (size_t i = 0; i < setting_count; i++) {
        const struct setting *setting = &setting_table[i];
        fprintf(out, "| `%s` | %s | `%s` | %s |\n", setting->path, types[setting->type],
            setting->fallback, describe(setting, help));
    }
}
