/* The settings as YAML, as JSON Schema and as a table for config/README.md, all from setting_table.
 */
#include "base/json_writer.h"
#include "settings/kafka_keys.h"
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
    struct json_writer json = {.out = out, .is_spaced = true};
    const struct section *section = NULL;
    json_object(&json, NULL);
    for (size_t i = 0; i < setting_count; i++) {
        const struct setting *setting = &setting_table[i];
        const void *field = (const char *)settings + setting->offset;
        if (setting_section(setting) != section) {
            if (section != NULL) json_end(&json);
            section = setting_section(setting);
            json_object(&json, section->name);
        }
        json_value(&json, setting_key(setting));
        const char *quote = is_word(setting, field) ? "\"" : "";
        fputs(quote, out);
        value_print(setting, field, out);
        fputs(quote, out);
    }
    json_end_line(&json);
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

/* ---- the schema ---- */

static void write_ref(struct json_writer *json, const char *definition) {
    char path[32];
    snprintf(path, sizeof path, "#/$defs/%s", definition);
    json_text(json, "$ref", path);
}

static void write_ref_object(struct json_writer *json, const char *key, const char *definition) {
    json_object(json, key);
    write_ref(json, definition);
    json_end(json);
}

static void write_range(struct json_writer *json, const struct setting *setting) {
    json_uint(json, "minimum", setting->min);
    json_uint(json, "maximum", setting->max);
}

/* Ends what "anyOf" has listed: any of it may be a variable instead. */
static void end_any_of(struct json_writer *json) {
    write_ref_object(json, NULL, "variable");
    json_end(json);
}

static void write_list(struct json_writer *json, const struct setting *setting) {
    json_text(json, "type", "array");
    write_ref_object(json, "items", "text");
    json_uint(json, "minItems", setting->min);
}

static void write_nullable_object(struct json_writer *json) {
    json_array(json, "type");
    json_text(json, NULL, "object");
    json_text(json, NULL, "null");
    json_end(json);
}

static void write_map(struct json_writer *json) {
    write_nullable_object(json);
    write_ref_object(json, "additionalProperties", "text");
    json_object(json, "propertyNames");
    json_object(json, "not");
    json_array(json, "enum");
    for (size_t i = 0; i < kafka_refusal_count; i++) json_text(json, NULL, kafka_refusals[i].key);
    json_end(json);
    json_end(json);
    json_end(json);
}

/* The keywords that say which values are valid. */
static void write_constraint(struct json_writer *json, const struct setting *setting) {
    switch (setting->type) {
    case SETTING_UINT:
        json_array(json, "anyOf");
        json_object(json, NULL);
        json_text(json, "type", "integer");
        write_range(json, setting);
        json_end(json);
        end_any_of(json);
        break;
    case SETTING_DURATION:
    case SETTING_SIZE:
        write_ref(json, setting->type == SETTING_SIZE ? "size" : "duration");
        write_range(json, setting);
        break;
    case SETTING_ENUM:
        json_array(json, "anyOf");
        json_object(json, NULL);
        json_array(json, "enum");
        for (size_t i = 0; setting->names[i] != NULL; i++) json_text(json, NULL, setting->names[i]);
        json_end(json);
        json_end(json);
        end_any_of(json);
        break;
    case SETTING_BOOL:
        json_array(json, "anyOf");
        json_object(json, NULL);
        json_text(json, "type", "boolean");
        json_end(json);
        end_any_of(json);
        break;
    case SETTING_STRING:
        write_ref(json, "text");
        json_uint(json, "minLength", setting->min);
        break;
    case SETTING_LIST: write_list(json, setting); break;
    case SETTING_DEVICES:
        json_array(json, "anyOf");
        json_object(json, NULL);
        json_text(json, "const", "all");
        json_end(json);
        json_object(json, NULL);
        write_list(json, setting);
        json_end(json);
        json_end(json);
        break;
    case SETTING_MAP: write_map(json); break;
    }
}

static void write_properties(struct json_writer *json, const struct section *section, int indent) {
    char help[HELP_SIZE];
    for (size_t i = 0; i < setting_count; i++) {
        const struct setting *setting = &setting_table[i];
        if (setting_section(setting) != section) continue;
        json_line(json, indent);
        json_object(json, setting_key(setting));
        json_text(json, "description", describe(setting, help));
        if (fallback_is_json(setting)) fputs(setting->fallback, json_value(json, "default"));
        else json_text(json, "default", setting->fallback);
        write_constraint(json, setting);
        json_end(json);
    }
}

static void write_section(struct json_writer *json, const struct section *section) {
    json_line(json, 4);
    json_object(json, section->name);
    json_text(json, "description", section->help);
    write_nullable_object(json);
    json_bool(json, "additionalProperties", false);
    json_object(json, "properties");
    write_properties(json, section, 6);
    json_line(json, 4);
    json_end(json);
    json_end(json);
}

/* What the constraints refer to. A constant, which is easier to read as the JSON that it is. */
static const char definitions[] =
    "{\n"
    "    \"variable\": {\"type\": \"string\", \"pattern\": \"\\\\$\\\\{\"},\n"
    "    \"duration\": {\"type\": [\"integer\", \"string\"],\n"
    "      \"pattern\": \"^(0|[1-9][0-9]*)(ms|s|m|h)?$|\\\\$\\\\{\"},\n"
    "    \"size\": {\"type\": [\"integer\", \"string\"],\n"
    "      \"pattern\": \"^(0|[1-9][0-9]*)(KiB|MiB|GiB|TiB)?$|\\\\$\\\\{\"},\n"
    "    \"text\": {\"anyOf\": [{\"type\": [\"string\", \"number\", \"boolean\"]},\n"
    "      {\"type\": \"object\", \"required\": [\"file\"], \"additionalProperties\": false,\n"
    "        \"properties\": {\"file\": {\"type\": \"string\"}}}]}\n"
    "  }";

void settings_print_schema(FILE *out) {
    struct json_writer writer = {.out = out, .is_spaced = true}, *json = &writer;
    json_object(json, NULL);
    json_line(json, 2);
    json_text(json, "$schema", "https://json-schema.org/draft/2020-12/schema");
    json_line(json, 2);
    json_text(json, "title", "Configuration of gpu-worker");
    json_line(json, 2);
    write_nullable_object(json);
    json_line(json, 2);
    json_bool(json, "additionalProperties", false);
    json_line(json, 2);
    json_object(json, "properties");
    write_properties(json, NULL, 4);
    for (size_t i = 0; i < section_count; i++) write_section(json, &section_table[i]);
    json_line(json, 2);
    json_end(json);
    json_line(json, 2);
    fputs(definitions, json_value(json, "$defs"));
    json_line(json, 0);
    json_end_line(json);
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
