#include "settings/value.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json_writer.h"
#include "base/nearest.h"
#include "base/number.h"
#include "settings/kafka_keys.h"
#include "settings/settings.h"

enum { SECRET_BYTES_MAX = 1 << 20 };

/* Where a value comes from, for problems. */
struct source {
    const struct setting *setting;
    const struct yaml_document *document;
    struct problems *problems;
};

struct unit {
    const char *name;
    uint64_t factor;
};

/* From the largest; the last one is also used if no unit is given. */
static const struct unit duration_units[] = {
    {"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}, {NULL, 0}};
static const struct unit size_units[] = {{"TiB", (uint64_t)1 << 40}, {"GiB", (uint64_t)1 << 30},
    {"MiB", (uint64_t)1 << 20}, {"KiB", (uint64_t)1 << 10}, {"", 1}, {NULL, 0}};
static const struct unit no_units[] = {{"", 1}, {NULL, 0}};

static const struct unit *units_of(enum setting_type type) {
    if (type == SETTING_DURATION) return duration_units;
    return type == SETTING_SIZE ? size_units : no_units;
}

const char *value_format_number(
    enum setting_type type, uint64_t value, char text[static VALUE_NUMBER_SIZE]) {
    const struct unit *unit = units_of(type);
    while (unit->factor > 1 && (value == 0 || value % unit->factor != 0)) unit++;
    snprintf(
        text, VALUE_NUMBER_SIZE, "%llu%s", (unsigned long long)(value / unit->factor), unit->name);
    return text;
}

/* Reads a number such as "64MiB" with the units of its type; false if it is not a number, has
 * another unit or is too large. */
static bool parse_number(enum setting_type type, const char *text, uint64_t *ret) {
    uint64_t value;
    size_t digits = number_read(text, &value);
    if (digits == 0) return false;
    for (const struct unit *unit = units_of(type); unit->name != NULL; unit++) {
        bool is_plain = text[digits] == 0 && unit->factor == 1;
        if (is_plain || strcmp(text + digits, unit->name) == 0)
            return !__builtin_mul_overflow(value, unit->factor, ret);
    }
    return false;
}

static const char *number_fix(enum setting_type type) {
    if (type == SETTING_DURATION) return "write a whole number with ms, s, m or h, such as 20s";
    if (type == SETTING_SIZE)
        return "write a whole number, of bytes or with KiB, MiB, GiB or TiB, such as 64MiB";
    return "write a whole number";
}

static void add_range_problem(const struct source *source, const struct yaml_node *node) {
    const struct setting *setting = source->setting;
    char min[VALUE_NUMBER_SIZE], max[VALUE_NUMBER_SIZE];
    yaml_problem(source->problems, source->document, node, "", "%s is %.40s, outside %s to %s",
        setting->path, node->text, value_format_number(setting->type, setting->min, min),
        value_format_number(setting->type, setting->max, max));
}

/* False, with a problem added, if the node is not a number of the setting's type and range. */
static bool read_number(const struct source *source, const struct yaml_node *node, uint64_t *ret) {
    if (node->kind != YAML_SCALAR || !parse_number(source->setting->type, node->text, ret)) {
        yaml_problem(source->problems, source->document, node, number_fix(source->setting->type),
            "%s cannot be '%.40s'", source->setting->path, node->text);
        return false;
    }
    if (*ret >= source->setting->min && *ret <= source->setting->max) return true;
    add_range_problem(source, node);
    return false;
}

/* False, with a problem added, if the node is none of the setting's names. */
static bool read_name(const struct source *source, const struct yaml_node *node, int *ret) {
    const char *text = node->kind == YAML_SCALAR ? node->text : "";
    struct nearest nearest;
    nearest_init(&nearest, text);
    char known[128] = "";
    for (int i = 0; source->setting->names[i] != NULL; i++) {
        const char *name = source->setting->names[i];
        if (strcmp(name, text) == 0) {
            *ret = i;
            return true;
        }
        nearest_offer(&nearest, name);
        snprintf(
            known + strlen(known), sizeof known - strlen(known), "%s%s", i > 0 ? ", " : "", name);
    }
    char fix[160];
    if (nearest.text != NULL) snprintf(fix, sizeof fix, "did you mean '%s'?", nearest.text);
    else snprintf(fix, sizeof fix, "write one of %s", known);
    yaml_problem(source->problems, source->document, node, fix, "%s cannot be '%.80s'",
        source->setting->path, text);
    return false;
}

/* The text of `{file: path}`; NULL, with a problem added, if it cannot be read. */
static char *read_secret_file(const struct source *source, const struct yaml_node *node) {
    char *text;
    size_t size;
    struct error err;
    if (file_read(node->text, SECRET_BYTES_MAX, &text, &size, &err) != ERR_OK) {
        yaml_problem(source->problems, source->document, node, err.fix, "%s", err.message);
        return NULL;
    }
    if (size > 0 && text[size - 1] == '\n') text[--size] = 0;
    if (size > 0 && text[size - 1] == '\r') text[--size] = 0;
    if (slice_is_utf8(slice_of(text, size))) return text;
    yaml_problem(source->problems, source->document, node, "", "%s: not a text file", node->text);
    free(text);
    return NULL;
}

static char *copy_text(const struct source *source, const char *text) {
    char *ret = strdup(text);
    if (ret == NULL) yaml_problem(source->problems, source->document, NULL, "", "out of memory");
    return ret;
}

static bool is_null(const struct yaml_node *node) {
    return !node->is_quoted && (strcmp(node->text, "null") == 0 || strcmp(node->text, "~") == 0);
}

/* A new string; NULL, with a problem added, if the node is not one. `name` is its name for
 * problems. */
static char *read_string(
    const struct source *source, const struct yaml_node *node, const char *name) {
    if (node->is_bad) return NULL;
    if (node->kind == YAML_SCALAR && !is_null(node)) return copy_text(source, node->text);
    const struct yaml_node *file = yaml_get(node, "file");
    if (file != NULL && node->count == 1 && file->kind == YAML_SCALAR)
        return read_secret_file(source, file);
    yaml_problem(source->problems, source->document, node,
        "write a string, or {file: path} to take a file's contents", "%s of %s is not a string",
        name, source->setting->path);
    return NULL;
}

static void add_empty_problem(const struct source *source, const struct yaml_node *node) {
    yaml_problem(source->problems, source->document, node, "give a value or remove the key",
        "%s is empty", source->setting->path);
}

static bool read_string_field(
    const struct source *source, const struct yaml_node *node, char **field) {
    char *text = read_string(source, node, "the value");
    if (text == NULL) return false;
    if (strlen(text) < source->setting->min) {
        add_empty_problem(source, node);
        free(text);
        return false;
    }
    free(*field);
    *field = text;
    return true;
}

static void free_texts(char **texts, size_t count) {
    for (size_t i = 0; i < count; i++) free(texts[i]);
    free(texts);
}

/* `count` strings from nodes; NULL, with problems added, if one of them is not a string. */
static char **read_texts(
    const struct source *source, struct yaml_node *const *nodes, char *const *names, size_t count) {
    char **texts = calloc(count + 1, sizeof *texts);
    if (texts == NULL) {
        yaml_problem(source->problems, source->document, NULL, "", "out of memory");
        return NULL;
    }
    bool all = true;
    for (size_t i = 0; i < count; i++) {
        texts[i] = read_string(source, nodes[i], names != NULL ? names[i] : "an item");
        all = all && texts[i] != NULL;
    }
    if (all) return texts;
    free_texts(texts, count);
    return NULL;
}

static void list_fini(struct string_list *list) {
    free_texts(list->items, list->count);
    *list = (struct string_list){0};
}

static bool read_list(
    const struct source *source, const struct yaml_node *node, struct string_list *field) {
    if (node->kind != YAML_SEQUENCE) {
        yaml_problem(source->problems, source->document, node, "write [first, second]",
            "%s is not a list", source->setting->path);
        return false;
    }
    if (node->count < source->setting->min) {
        add_empty_problem(source, node);
        return false;
    }
    char **items = read_texts(source, node->values, NULL, node->count);
    if (items == NULL) return false;
    list_fini(field);
    *field = (struct string_list){.items = items, .count = node->count};
    return true;
}

/* "all" is an empty list. */
static bool read_devices(
    const struct source *source, const struct yaml_node *node, struct string_list *field) {
    if (node->kind == YAML_SEQUENCE) return read_list(source, node, field);
    bool is_all = node->kind == YAML_SCALAR && strcmp(node->text, "all") == 0;
    if (is_all) list_fini(field);
    else
        yaml_problem(source->problems, source->document, node,
            "write all, a list of numbers such as [0, 2], or a list of UUIDs",
            "%s is neither a list nor the word all", source->setting->path);
    return is_all;
}

static void map_fini(struct string_map *map) {
    free_texts(map->keys, map->count);
    free_texts(map->values, map->count);
    *map = (struct string_map){0};
}

static char **copy_keys(const struct source *source, const struct yaml_node *node) {
    char **keys = calloc(node->count + 1, sizeof *keys);
    if (keys == NULL) {
        yaml_problem(source->problems, source->document, NULL, "", "out of memory");
        return NULL;
    }
    for (size_t i = 0; i < node->count; i++) {
        keys[i] = copy_text(source, node->keys[i]->text);
        if (keys[i] != NULL) continue;
        free_texts(keys, i);
        return NULL;
    }
    return keys;
}

static bool read_map(
    const struct source *source, const struct yaml_node *node, struct string_map *field) {
    bool is_empty = node->kind == YAML_SCALAR && node->text[0] == 0 && !node->is_quoted;
    if (node->kind != YAML_MAPPING && !is_empty) {
        yaml_problem(source->problems, source->document, node, "write {key: value}",
            "%s is not a map", source->setting->path);
        return false;
    }
    char **keys = copy_keys(source, node);
    if (keys == NULL) return false;
    char **values = read_texts(source, node->values, keys, node->count);
    if (values == NULL) {
        free_texts(keys, node->count);
        return false;
    }
    map_fini(field);
    *field = (struct string_map){.keys = keys, .values = values, .count = node->count};
    return true;
}

static bool read_number_field(
    const struct source *source, const struct yaml_node *node, void *field) {
    uint64_t number;
    if (!read_number(source, node, &number)) return false;
    if (source->setting->type == SETTING_SIZE) *(uint64_t *)field = number;
    else *(uint32_t *)field = (uint32_t)number;
    return true;
}

static bool read_name_field(
    const struct source *source, const struct yaml_node *node, void *field) {
    int name;
    if (!read_name(source, node, &name)) return false;
    if (source->setting->type == SETTING_BOOL) *(bool *)field = name != 0;
    else *(int *)field = name;
    return true;
}

bool value_read(const struct setting *setting, void *field, const struct yaml_document *document,
    const struct yaml_node *node, struct problems *problems) {
    struct source source = {.setting = setting, .document = document, .problems = problems};
    if (node->is_bad) return false;
    switch (setting->type) {
    case SETTING_UINT:
    case SETTING_DURATION:
    case SETTING_SIZE: return read_number_field(&source, node, field);
    case SETTING_ENUM:
    case SETTING_BOOL: return read_name_field(&source, node, field);
    case SETTING_STRING: return read_string_field(&source, node, field);
    case SETTING_LIST: return read_list(&source, node, field);
    case SETTING_MAP: return read_map(&source, node, field);
    case SETTING_DEVICES: return read_devices(&source, node, field);
    }
    return false;
}

void value_fini(const struct setting *setting, void *field) {
    if (setting->type == SETTING_LIST || setting->type == SETTING_DEVICES) list_fini(field);
    if (setting->type == SETTING_MAP) map_fini(field);
    if (setting->type == SETTING_STRING) {
        free(*(char **)field);
        *(char **)field = NULL;
    }
}

static bool texts_equal(char *const *a, char *const *b, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(a[i], b[i]) != 0) return false;
    return true;
}

static bool lists_equal(const struct string_list *a, const struct string_list *b) {
    return a->count == b->count && texts_equal(a->items, b->items, a->count);
}

static bool maps_equal(const struct string_map *a, const struct string_map *b) {
    return a->count == b->count && texts_equal(a->keys, b->keys, a->count) &&
           texts_equal(a->values, b->values, a->count);
}

bool value_equal(const struct setting *setting, const void *a, const void *b) {
    switch (setting->type) {
    case SETTING_UINT:
    case SETTING_DURATION: return *(const uint32_t *)a == *(const uint32_t *)b;
    case SETTING_SIZE: return *(const uint64_t *)a == *(const uint64_t *)b;
    case SETTING_ENUM: return *(const int *)a == *(const int *)b;
    case SETTING_BOOL: return *(const bool *)a == *(const bool *)b;
    case SETTING_STRING: return strcmp(*(char *const *)a, *(char *const *)b) == 0;
    case SETTING_LIST:
    case SETTING_DEVICES: return lists_equal(a, b);
    case SETTING_MAP: return maps_equal(a, b);
    }
    return false;
}

/* NULL when memory is short. */
static char **copy_texts(char *const *texts, size_t count) {
    char **ret = calloc(count + 1, sizeof *ret);
    for (size_t i = 0; i < count && ret != NULL; i++) {
        ret[i] = strdup(texts[i]);
        if (ret[i] != NULL) continue;
        free_texts(ret, i);
        ret = NULL;
    }
    return ret;
}

static bool copy_map(struct string_map *to, const struct string_map *from) {
    *to = (struct string_map){.keys = copy_texts(from->keys, from->count)};
    if (to->keys != NULL) to->values = copy_texts(from->values, from->count);
    to->count = from->count;
    if (to->values != NULL) return true;
    if (to->keys != NULL) free_texts(to->keys, to->count);
    *to = (struct string_map){0};
    return false;
}

static bool copy_list(struct string_list *to, const struct string_list *from) {
    char **items = copy_texts(from->items, from->count);
    *to = (struct string_list){.items = items, .count = items != NULL ? from->count : 0};
    return items != NULL;
}

bool value_copy(const struct setting *setting, void *to, const void *from) {
    switch (setting->type) {
    case SETTING_UINT:
    case SETTING_DURATION: *(uint32_t *)to = *(const uint32_t *)from; return true;
    case SETTING_SIZE: *(uint64_t *)to = *(const uint64_t *)from; return true;
    case SETTING_ENUM: *(int *)to = *(const int *)from; return true;
    case SETTING_BOOL: *(bool *)to = *(const bool *)from; return true;
    case SETTING_STRING: *(char **)to = strdup(*(char *const *)from); return *(char **)to != NULL;
    case SETTING_LIST:
    case SETTING_DEVICES: return copy_list(to, from);
    case SETTING_MAP: return copy_map(to, from);
    }
    return false;
}

/* In a form that JSON reads as well, with "$" doubled: the loader takes it for a variable. */
static void print_quoted(const char *text, FILE *out) {
    fputc('"', out);
    for (;;) {
        size_t size = strcspn(text, "$");
        json_escape(slice_of(text, size), out);
        if (text[size] == 0) break;
        fputs("$$", out);
        text += size + 1;
    }
    fputc('"', out);
}

static void print_list(const struct string_list *list, FILE *out) {
    struct json_writer json = {.out = out, .is_spaced = true};
    json_array(&json, NULL);
    for (size_t i = 0; i < list->count; i++) print_quoted(list->items[i], json_value(&json, NULL));
    json_end(&json);
}

static void print_devices(const struct string_list *list, FILE *out) {
    if (list->count == 0) fputs("all", out);
    else print_list(list, out);
}

/* Variables are not expanded in keys. */
static void print_map(const struct string_map *map, FILE *out) {
    struct json_writer json = {.out = out, .is_spaced = true};
    json_object(&json, NULL);
    for (size_t i = 0; i < map->count; i++)
        print_quoted(kafka_key_is_secret(map->keys[i]) ? "***" : map->values[i],
            json_value(&json, map->keys[i]));
    json_end(&json);
}

/* The part before the host of a URL is secret, also if the URL is not well-formed. */
static void print_string(const char *text, FILE *out) {
    const char *host = strrchr(text, '@'), *scheme = strstr(text, "://");
    if (host == NULL || scheme == NULL || scheme > host) {
        print_quoted(text, out);
        return;
    }
    char *masked;
    if (asprintf(&masked, "%.*s***%s", (int)(scheme + 3 - text), text, host) < 0) return;
    print_quoted(masked, out);
    free(masked);
}

void value_print(const struct setting *setting, const void *field, FILE *out) {
    char number[VALUE_NUMBER_SIZE];
    switch (setting->type) {
    case SETTING_UINT:
    case SETTING_DURATION:
        fputs(value_format_number(setting->type, *(const uint32_t *)field, number), out);
        break;
    case SETTING_SIZE:
        fputs(value_format_number(setting->type, *(const uint64_t *)field, number), out);
        break;
    case SETTING_ENUM: fputs(setting->names[*(const int *)field], out); break;
    case SETTING_BOOL: fputs(setting->names[*(const bool *)field], out); break;
    case SETTING_STRING: print_string(*(char *const *)field, out); break;
    case SETTING_LIST: print_list(field, out); break;
    case SETTING_MAP: print_map(field, out); break;
    case SETTING_DEVICES: print_devices(field, out); break;
    }
}
