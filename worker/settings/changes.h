/**
 * A configuration that is read again while its worker runs: settings that reload (by the table)
 * change, and all others stay as they are.
 *
 * Threads: any; many may read the same settings at once.
 */
#ifndef SETTINGS_CHANGES_H
#define SETTINGS_CHANGES_H

#include "settings/settings.h"

/** False when memory is short; nothing has to be freed then. */
MUST_CHECK bool settings_copy(const struct settings *settings, struct settings *ret);

/** Settings that have changed but do not reload. */
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
 * Gives settings of `loaded` that do not reload the values of `running`. Adds a problem if the
 * driver or the broker has changed, the result is not valid, or memory is short; `loaded` may then
 * only be passed to settings_fini().
 */
void settings_keep_fixed(const struct settings *running, struct settings *loaded, const char *file,
    struct problems *problems);

#endif
