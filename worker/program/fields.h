/**
 * What the readers of a manifest share: fields by name, kind and range, each with its problem and
 * place where it is not as it must be. Private to program/.
 *
 * Lifetime: what is read lives in the manifest's arena. Threads: one at a time.
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

/** Zeroed; NULL, and a problem added, where memory is short. */
void *manifest_alloc(const struct manifest *manifest, size_t count, size_t size);

/** `known` are the keys that a mapping may have; NULL ends them. */
bool manifest_check_mapping(const struct manifest *manifest, const struct yaml_node *node,
    const char *what, const char *const *known);

/** NULL, and a problem added, where the key is missing. */
const struct yaml_node *manifest_require(
    const struct manifest *manifest, const struct yaml_node *node, const char *key);

/** A list of `count_min` to `count_max` items; NULL, and a problem added, where it is none. */
const struct yaml_node *manifest_require_list(const struct manifest *manifest,
    const struct yaml_node *node, const char *key, size_t count_min, size_t count_max);

/** NULL, and a problem added, where the node is no scalar. */
char *manifest_read_text(const struct manifest *manifest, const struct yaml_node *node);

/** A name of letters, digits, '_' and, but for the first, the characters of `more`. */
char *manifest_read_name(const struct manifest *manifest, const struct yaml_node *parent,
    const char *key, size_t size_max, const char *more);

/** The index from `first` on; -1, and a problem added, where the node is none of the names. */
int manifest_read_choice(const struct manifest *manifest, const struct yaml_node *node,
    const char *what, const char *const *names, int first);

/** `min`, and a problem added, where the node is no whole number of that range. */
uint32_t manifest_read_number(const struct manifest *manifest, const struct yaml_node *node,
    const char *what, uint32_t min, uint32_t max);

#endif
