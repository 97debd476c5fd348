/**
 * The table of settings: where each is in the file and in struct settings, its range, its default
 * and its help.
 */
#ifndef SETTINGS_TABLE_H
#define SETTINGS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The type of a setting, with the C type of its field. */
enum setting_type {
    SETTING_UINT,     /* uint32_t */
    SETTING_DURATION, /* uint32_t milliseconds: 250, 250ms, 20s, 5m, 1h */
    SETTING_SIZE,     /* uint64_t bytes: 1048576, 64KiB, 1GiB */
    SETTING_ENUM,     /* an enum, by one of `names` */
    SETTING_BOOL,     /* bool: true, false */
    SETTING_STRING,   /* char *, never NULL */
    SETTING_LIST,     /* struct string_list */
    SETTING_MAP,      /* struct string_map */
    SETTING_DEVICES   /* struct string_list: all, which is the empty one, or a list */
};

struct setting {
    const char *path; /* "limits.message_bytes"; at most one section deep */
    enum setting_type type;
    size_t offset;            /* in struct settings */
    uint64_t min, max;        /* of numbers; `min` also of the length of a string or list */
    const char *const *names; /* ENUM, BOOL: by value, ended by NULL */
    const char *fallback;     /* the default, as in the file */
    bool reloads;             /* SIGHUP changes it while the worker runs */
    bool is_for_life;         /* a file that changes it is refused while the worker runs */
    const char *help;
};

struct section {
    const char *name;
    const char *help;
};

enum { SETTING_COUNT_MAX = 96, SETTING_PATH_MAX = 64 };

/* In the order in which they are printed; a section's settings are together. */
extern const struct setting setting_table[];
extern const size_t setting_count;
extern const struct section section_table[];
extern const size_t section_count;

/** NULL if there is no section of that name. */
const struct section *section_find(const char *name);

/** The section of a setting; NULL at the top level. */
const struct section *setting_section(const struct setting *setting);

/** The last part of its path: the key in the file. */
const char *setting_key(const struct setting *setting);

#endif
