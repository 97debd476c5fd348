/**
 * Changes numbers of a job that is written as YAML, by the names that the manifests of its programs
 * give them. Threads: one at a time.
 */
#ifndef CLI_JOB_SET_H
#define CLI_JOB_SET_H

#include "base/yaml.h"
#include "cli/options.h"
#include "settings/settings.h"

/**
 * Each of `sets` is "NAME=VALUE", which replaces the number of that argument in each step that has
 * it. The values must outlive `document`. Errors: ERR_CONFIG, with `problems` if the programs
 * cannot be read; ERR_NO_MEMORY.
 */
MUST_CHECK enum err job_set(const struct yaml_document *document, const struct cli_values *sets,
    const struct settings *settings, struct problems *problems, struct error *err);

#endif
