#include "cli/job_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "program/program.h"

/* The entry that a step launches; NULL: it says none that is installed. */
static const struct entry *entry_of(const struct registry *registry, const struct yaml_node *step) {
    const struct yaml_node *name = yaml_get(step, "program"), *entry = yaml_get(step, "entry");
    if (name == NULL || name->kind != YAML_SCALAR) return NULL;
    struct slice program_name = slice_of(name->text, strcspn(name->text, "@"));
    const struct program *program = registry_find(registry, program_name);
    bool is_named = entry != NULL && entry->kind == YAML_SCALAR;
    return program == NULL ? NULL
                           : program_entry(program, slice_of_text(is_named ? entry->text : ""));
}

/* Replaces argument `i` of a step by `value`; false if it is no number there. */
static bool replace(const struct yaml_node *step, size_t i, const char *value) {
    const struct yaml_node *args = yaml_get(step, "args");
    if (args == NULL || args->kind != YAML_SEQUENCE || i >= args->count) return false;
    const struct yaml_node *arg = args->values[i];
    if (arg->kind != YAML_MAPPING || arg->count != 1 || arg->values[0]->kind != YAML_SCALAR)
        return false;
    arg->values[0]->text = (char *)(uintptr_t)value; /* the encoder only reads it */
    arg->values[0]->is_quoted = false;
    return true;
}

static enum err set_one(const struct registry *registry, const struct yaml_node *steps,
    const char *set, struct error *err) {
    const char *value = strchr(set, '=');
    char name[128];
    struct nearest nearest;
    size_t changed = 0;
    if (value == NULL || value == set || (size_t)(value - set) >= sizeof name)
        return error_set(err, ERR_CONFIG, 0, "write --set NAME=VALUE", "--set %s", set);
    snprintf(name, sizeof name, "%.*s", (int)(value - set), set);
    nearest_init(&nearest, name);
    for (size_t s = 0; s < steps->count; s++) {
        const struct entry *entry = entry_of(registry, steps->values[s]);
        for (size_t i = 0; entry != NULL && i < entry->arg_count; i++) {
            if (strcmp(entry->args[i].name, name) != 0) {
                nearest_offer(&nearest, entry->args[i].name);
            } else if (replace(steps->values[s], i, value + 1)) {
                changed++;
            } else {
                return error_set(err, ERR_CONFIG, 0, "change it in the job's file",
                    "--set %s: '%s' is no number in step %zu", set, name, s + 1);
            }
        }
    }
    if (changed > 0) return ERR_OK;
    if (nearest.text != NULL)
        return error_set(err, ERR_CONFIG, 0, "see gpu-worker programs",
            "--set %s: the job's kernels have no argument '%s'; did you mean '%s'?", set, name,
            nearest.text);
    return error_set(err, ERR_CONFIG, 0, "see gpu-worker programs",
        "--set %s: the job's kernels have no argument '%s'", set, name);
}

enum err job_set(const struct yaml_document *document, const struct cli_values *sets,
    const struct settings *settings, struct problems *problems, struct error *err) {
    const struct yaml_node *steps = yaml_get(yaml_root(document), "steps");
    enum err code = ERR_OK;
    if (sets->count == 0) return ERR_OK;
    if (steps == NULL || steps->kind != YAML_SEQUENCE)
        return error_set(err, ERR_CONFIG, 0, "add `steps`", "--set: the job has no steps");
    char *dir = settings_programs_dir(settings);
    struct registry *registry = dir != NULL ? registry_load(dir, problems) : NULL;
    free(dir);
    if (registry == NULL) code = error_no_memory(err, "no memory for the programs");
    else if (problems_any(problems))
        code = error_set(err, ERR_CONFIG, 0, "", "--set needs the programs' manifests");
    for (size_t i = 0; code == ERR_OK && i < sets->count; i++)
        code = set_one(registry, steps, sets->items[i], err);
    registry_destroy(registry);
    return code;
}
