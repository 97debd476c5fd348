/** Checks for settings that cannot work together. Threads: any. */
#ifndef SETTINGS_RULES_H
#define SETTINGS_RULES_H

#include "base/yaml.h"
#include "settings/settings.h"
#include "settings/table.h"

/** Settings while they are read, and where each is in the file. */
struct loaded {
    struct settings *settings;
    const struct yaml_document *document;
    const struct yaml_node *nodes[SETTING_COUNT_MAX]; /* as in setting_table; NULL: the default */
    struct problems *problems;
};

/** Adds a problem for each rule that is broken; changes nothing. */
void rules_check(const struct loaded *loaded);

#endif
