/**
 * Helpers that read fields of a manifest by name, kind and range, and add a problem with its
 * position if a field is wrong. Private to program/.
 *
 * Lifetime: what they read lives in the manifest's arena. Threads: one at a time.
 */
#ifndef PROGRAM_FIELDS_H
#define PROGRAM_FIELDS_H

#include "base/arena.h"
#include "base/yaml.h"

struct manifest {
    const struct yaml_document *document;
    struct arena *arena;
    struct problems *problems;
};

#define MANIFEST_ADD(manifest, node, fix, ...)                                                     \
    yaml_problem((manifest)->problems, (manifest)->document, (node), (fix), __VA_ARGS__)

/** Zeroed memory; NULL, with a problem added, if memory is short. */
void *manifest_alloc(const struct manifest *manifest, size_t count, size_t size);

/** `known` are the keys that a mapping may have, ended by NULL. */
bool manifest_check_mapping(const struct manifest *manifest, const struct yaml_node *node,
    const char *what, const char *const *known);

/** NULL, with a problem added, if the key is missing. */
const struct yaml_node *manifest_require(
    const struct manifest *manifest, const struct yaml_node *node, const char *key);

/** A list of `count_min` to `count_max` items; NULL, with a problem added, if it is not one. */
const struct yaml_node *manifest_require_list(const struct manifest *manifest,
    const struct yaml_node *node, const char *key, size_t count_min, size_t count_max);

/** NULL, with a problem added, if the node is not a scalar. */
char *manifest_read_text(const struct manifest *manifest, const struct yaml_node *node);

/** A name of letters, digits, '_' and, except for the first character, those of `more`. */
char *manifest_read_name(const struct manifest *manifest, const struct yaml_node *parent,
    const char *key, size_t size_max, const char *more);

/**
 * The index of the name, from `first` on; -1, with a problem added, if the node is not one of them.
 */
int manifest_read_choice(const struct manifest *manifest, const struct yaml_node *node,
    const char *what, const char *const *names, int first);

/** `min`, with a problem added, if the node is not a whole number in that range. */
uint32_t manifest_read_number(const struct manifest *manifest, const struct yaml_node *node,
    const char *what, uint32_t min, uint32_t max);

#endif
