/**
 * The value of one setting: reads it from the file into its field, and prints it. `field` points to
 * the C type of the setting's type (table.h). Threads: any.
 */
#ifndef SETTINGS_VALUE_H
#define SETTINGS_VALUE_H

#include <stdio.h>

#include "base/yaml.h"
#include "settings/table.h"

/**
 * Replaces the field's value by that of `node`. If that is wrong, adds a problem, keeps the field's
 * value and returns false.
 */
MUST_CHECK bool value_read(const struct setting *setting, void *field,
    const struct yaml_document *document, const struct yaml_node *node, struct problems *problems);

/** Frees what the field owns. */
void value_fini(const struct setting *setting, void *field);

/** Whether two fields of a setting have the same value. */
bool value_equal(const struct setting *setting, const void *a, const void *b);

/**
 * Copies into a field that owns nothing. False when memory is short; the field still owns nothing
 * then.
 */
MUST_CHECK bool value_copy(const struct setting *setting, void *to, const void *from);

/** As YAML on one line, texts in quotes as JSON has them; secrets of maps and URLs as "***". */
void value_print(const struct setting *setting, const void *field, FILE *out);

enum { VALUE_NUMBER_SIZE = 32 };

/** Writes a number in the largest unit of the type that divides it, "64MiB", and returns it. */
const char *value_format_number(
    enum setting_type type, uint64_t value, char text[static VALUE_NUMBER_SIZE]);

#endif
