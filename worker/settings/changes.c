#include "settings/changes.h"

#include "base/yaml.h"
#include "settings/rules.h"
#include "settings/table.h"
#include "settings/value.h"

static const void *value_in(const struct settings *settings, const struct setting *setting) {
    return (const char *)settings + setting->offset;
}

bool settings_copy(const struct settings *settings, struct settings *ret) {
    *ret = (struct settings){0};
    for (size_t i = 0; i < setting_count; i++) {
        const struct setting *setting = &setting_table[i];
        if (value_copy(setting, (char *)ret + setting->offset, value_in(settings, setting)))
            continue;
        settings_fini(ret);
        return false;
    }
    return true;
}

static bool has_changed(
    const struct setting *setting, const struct settings *running, const struct settings *loaded) {
    return !value_equal(setting, value_in(running, setting), value_in(loaded, setting));
}

struct fixed_changes settings_find_fixed_changes(
    const struct settings *running, const struct settings *loaded) {
    struct fixed_changes ret = {0};
    for (size_t i = 0; i < setting_count; i++) {
        const struct setting *setting = &setting_table[i];
        if (setting->reloads || !has_changed(setting, running, loaded)) continue;
        if (ret.count++ == 0) ret.first = setting->path;
    }
    return ret;
}

const char *fixed_changes_describe(
    const struct fixed_changes *changes, char text[static FIXED_CHANGES_TEXT_SIZE]) {
    if (changes->count == 1)
        snprintf(text, FIXED_CHANGES_TEXT_SIZE, "%s has changed; it takes effect at the next start",
            changes->first);
    else
        snprintf(text, FIXED_CHANGES_TEXT_SIZE,
            "%s and %zu more setting%s have changed; they take effect at the next start",
            changes->first, changes->count - 1, changes->count == 2 ? "" : "s");
    return text;
}

static void refuse_changes(const struct settings *running, const struct settings *loaded,
    const char *file, struct problems *problems) {
    for (size_t i = 0; i < setting_count; i++)
        if (setting_table[i].is_for_life && has_changed(&setting_table[i], running, loaded))
            problems_add(problems, file, 0, 0,
                "change it back, or stop the worker and start it again",
                "%s has changed, which a worker that runs cannot follow", setting_table[i].path);
}

void settings_keep_fixed(const struct settings *running, struct settings *loaded, const char *file,
    struct problems *problems) {
    refuse_changes(running, loaded, file, problems);
    for (size_t i = 0; i < setting_count; i++) {
        const struct setting *setting = &setting_table[i];
        void *field = (char *)loaded + setting->offset;
        if (setting->reloads || !has_changed(setting, running, loaded)) continue;
        value_fini(setting, field);
        if (value_copy(setting, field, value_in(running, setting))) continue;
        problems_add(problems, file, 0, 0, "give the process more memory", "out of memory");
        return;
    }
    struct yaml_document *empty =
        yaml_parse(file, slice_of_text(""), YAML_KEEP_VARIABLES, problems);
    if (empty == NULL) return;
    struct loaded merged = {.settings = loaded, .document = empty, .problems = problems};
    rules_check(&merged);
    yaml_destroy(empty);
}
