#include "settings/settings.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/nearest.h"
#include "base/number.h"
#include "base/yaml.h"
#include "settings/rules.h"
#include "settings/table.h"
#include "settings/value.h"

static void *field_of(struct settings *settings, const struct setting *setting) {
    return (char *)settings + setting->offset;
}

/* A default goes the way of every value, so that the table can hold it as text. */
static void read_fallback(const struct setting *setting, void *field) {
    struct problems problems;
    problems_init(&problems);
    struct yaml_document *document =
        yaml_parse(setting->path, slice_of_text(setting->fallback), YAML_KEEP_VARIABLES, &problems);
    bool is_read =
        document != NULL && value_read(setting, field, document, yaml_root(document), &problems);
    /* A default that is refused is a bug, and callers need not handle a failure to allocate the
     * process's first kilobytes. */
    if (!is_read) abort();
    yaml_destroy(document);
    problems_fini(&problems);
}

void settings_init(struct settings *settings) {
    *settings = (struct settings){0};
    for (size_t i = 0; i < setting_count; i++)
        read_fallback(&setting_table[i], field_of(settings, &setting_table[i]));
}

void settings_fini(struct settings *settings) {
    for (size_t i = 0; i < setting_count; i++)
        value_fini(&setting_table[i], field_of(settings, &setting_table[i]));
}

/* Finds a setting with this name, with or without its section, in another place. */
static const struct setting *find_misplaced(const char *key) {
    for (size_t i = 0; i < setting_count; i++)
        if (strcmp(setting_table[i].path, key) == 0 ||
            strcmp(setting_key(&setting_table[i]), key) == 0)
            return &setting_table[i];
    return NULL;
}

static void refuse_key(
    const struct loaded *loaded, const struct section *section, const struct yaml_node *key) {
    struct nearest nearest;
    nearest_init(&nearest, key->text);
    for (size_t i = 0; i < setting_count; i++)
        if (setting_section(&setting_table[i]) == section)
            nearest_offer(&nearest, setting_key(&setting_table[i]));
    for (size_t i = 0; i < section_count && section == NULL; i++)
        nearest_offer(&nearest, section_table[i].name);

    char fix[160] = "'gpu-worker config defaults' prints all keys";
    const struct setting *elsewhere = find_misplaced(key->text);
    if (nearest.text != NULL) {
        snprintf(fix, sizeof fix, "did you mean '%s'?", nearest.text);
    } else if (elsewhere != NULL) {
        const struct section *home = setting_section(elsewhere);
        snprintf(fix, sizeof fix, "did you mean '%s' %s%s?", setting_key(elsewhere),
            home == NULL ? "at the top level" : "in the section ", home == NULL ? "" : home->name);
    }
    yaml_problem(loaded->problems, loaded->document, key, fix, "unknown key '%.80s'", key->text);
}

static void read_setting(
    struct loaded *loaded, const struct setting *setting, const struct yaml_node *value) {
    /* A key that appears twice may have a wrong value the second time: the first one counts. */
    if (value_read(setting, field_of(loaded->settings, setting), loaded->document, value,
            loaded->problems))
        loaded->nodes[setting - setting_table] = value;
}

static const struct setting *find_in_section(const struct section *section, const char *key) {
    for (size_t i = 0; i < setting_count; i++)
        if (setting_section(&setting_table[i]) == section &&
            strcmp(setting_key(&setting_table[i]), key) == 0)
            return &setting_table[i];
    return NULL;
}

static void read_section(
    struct loaded *loaded, const struct section *section, const struct yaml_node *node) {
    bool is_empty = node->kind == YAML_SCALAR && !node->is_quoted && node->text[0] == 0;
    if (is_empty || node->is_bad) return;
    if (node->kind != YAML_MAPPING) {
        yaml_problem(loaded->problems, loaded->document, node, "write keys and values below it",
            "%s is not a section", section == NULL ? "the file" : section->name);
        return;
    }
    for (size_t i = 0; i < node->count; i++) {
        const struct yaml_node *key = node->keys[i];
        if (key->is_bad) continue;
        const struct setting *setting = find_in_section(section, key->text);
        const struct section *inner = section == NULL ? section_find(key->text) : NULL;
        if (setting != NULL) read_setting(loaded, setting, node->values[i]);
        else if (inner != NULL) read_section(loaded, inner, node->values[i]);
        else refuse_key(loaded, section, key);
    }
}

/* Takes ownership of `document`. NULL: it could not be read, and its problems were added. */
static void read_document(
    struct settings *settings, struct yaml_document *document, struct problems *problems) {
    if (document == NULL) return;
    if (yaml_is_empty(document)) /* as a file that is being written */
        yaml_problem(problems, document, NULL,
            "write what shall differ from the defaults, or {} if nothing shall",
            "nothing stands in it");
    struct loaded loaded = {.settings = settings, .document = document, .problems = problems};
    read_section(&loaded, NULL, yaml_root(document));
    rules_check(&loaded);
    yaml_destroy(document);
}

void settings_load(struct settings *settings, const char *path, struct problems *problems) {
    if (path == NULL) settings_parse(settings, "defaults", slice_of_text("{}"), problems);
    else read_document(settings, yaml_load(path, YAML_EXPAND_VARIABLES, problems), problems);
}

void settings_parse(
    struct settings *settings, const char *file, struct slice text, struct problems *problems) {
    read_document(settings, yaml_parse(file, text, YAML_EXPAND_VARIABLES, problems), problems);
}

/* The parent of the binary's folder; false if it is unknown. */
static bool find_prefix(char *path, size_t size) {
    ssize_t length = readlink("/proc/self/exe", path, size - 1);
    if (length < 0) return false;
    path[length] = 0;
    for (int level = 0; level < 2; level++) {
        char *slash = strrchr(path, '/');
        if (slash == NULL) return false;
        *slash = 0;
    }
    return true;
}

char *settings_programs_dir(const struct settings *settings) {
    if (settings->programs.dir[0] != 0) return strdup(settings->programs.dir);
    char prefix[PATH_MAX], *ret;
    if (!find_prefix(prefix, sizeof prefix)) prefix[0] = 0;
    return asprintf(&ret, "%s/share/gpu-worker/programs", prefix) < 0 ? NULL : ret;
}

char *settings_state_dir(const struct settings *settings) {
    if (settings->state.dir[0] != 0) return strdup(settings->state.dir);
    const char *state_home = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    char *ret;
    int length;
    if (state_home != NULL && state_home[0] == '/')
        length = asprintf(&ret, "%s/gpu-worker", state_home);
    else if (home != NULL && home[0] == '/' && home[1] != 0)
        length = asprintf(&ret, "%s/.local/state/gpu-worker", home);
    else length = asprintf(&ret, "/var/lib/gpu-worker");
    return length < 0 ? NULL : ret;
}

bool settings_first_device(const struct settings *settings, uint32_t *ret) {
    uint64_t number = 0;
    bool is_known =
        settings->devices.count == 0 || number_read(settings->devices.items[0], &number) > 0;
    if (is_known) *ret = (uint32_t)number;
    return is_known;
}
