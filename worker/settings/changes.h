/**
 * A configuration that is read again while its worker runs: what may change then does (the rows of
 * the table that reload), and everything else stays as it is.
 *
 * Threads: any; what is only read may be read by many.
 */
#ifndef SETTINGS_CHANGES_H
#define SETTINGS_CHANGES_H

#include "settings/settings.h"

/** False when memory is short: nothing is to be freed then. */
MUST_CHECK bool settings_copy(const struct settings *settings, struct settings *ret);

/** Settings that have changed, and do not reload. */
struct fixed_changes {
    size_t count;
    const char *first; /* its path */
};
enum { FIXED_CHANGES_TEXT_SIZE = 160 };

struct fixed_changes settings_find_fixed_changes(
    const struct settings *running, const struct settings *loaded);

/** "kafka.group and 2 more settings have changed; they take effect at the next start" */
const char *fixed_changes_describe(
    const struct fixed_changes *changes, char text[static FIXED_CHANGES_TEXT_SIZE]);

/**
 * Gives `loaded` the values of `running` where they do not reload. Adds a problem where the two do
 * not go together, or memory is short: then `loaded` is good for settings_fini() alone.
 */
void settings_keep_fixed(const struct settings *running, struct settings *loaded, const char *file,
    struct problems *problems);

#endif
