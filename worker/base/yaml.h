/**
 * A YAML document as a tree that knows the position of each node in the file. Strict: one document,
 * no anchors or tags, no duplicate keys, bounded depth (16) and size (16 MiB).
 *
 * `${VAR}` and `${VAR:-default}` in scalars are replaced from the environment if the caller asks
 * for it; "$$" is a "$". All that is wrong is added to `problems`.
 *
 * Lifetime: nodes live until yaml_destroy(). Threads: one at a time.
 */
#ifndef BASE_YAML_H
#define BASE_YAML_H

#include "base/problems.h"
#include "base/slice.h"

enum yaml_kind { YAML_SCALAR, YAML_SEQUENCE, YAML_MAPPING };

struct yaml_node {
    enum yaml_kind kind;
    int line, column;          /* from 1 */
    bool is_quoted;            /* scalar in quotes: always a string */
    bool is_bad;               /* scalar without a value: its problem has been added already */
    char *text;                /* scalar: NUL-terminated */
    size_t count;              /* sequence: items; mapping: pairs */
    struct yaml_node **keys;   /* mapping: scalars */
    struct yaml_node **values; /* sequence: items; mapping: values */
};

struct yaml_document;

enum yaml_variables { YAML_KEEP_VARIABLES, YAML_EXPAND_VARIABLES };

/**
 * Parses `text`; `file` is the name that problems carry. NULL if it cannot be read to its end.
 * Other problems (a variable that is not set, a key that appears twice) still return a document, so
 * that the caller can find more problems. An empty document is an empty mapping.
 */
struct yaml_document *yaml_parse(
    const char *file, struct slice text, enum yaml_variables variables, struct problems *problems);

/** As yaml_parse(), from a file; "-" is standard input. */
struct yaml_document *yaml_load(
    const char *path, enum yaml_variables variables, struct problems *problems);

/** NULL is fine. (Not yaml_free(): libyaml exports that name, and ours would replace it.) */
void yaml_destroy(struct yaml_document *document);

const struct yaml_node *yaml_root(const struct yaml_document *document);
const char *yaml_file(const struct yaml_document *document);

/** Whether nothing stands in it, not even {}; its root is an empty mapping then. */
bool yaml_is_empty(const struct yaml_document *document);

/** The value of `key` in a mapping; NULL if it is absent or `node` is not a mapping. */
const struct yaml_node *yaml_get(const struct yaml_node *node, const char *key);

/**
 * Reads the whole scalar as a decimal number without sign or leading zeros; false if it is not one.
 */
bool yaml_read_uint(const struct yaml_node *node, uint64_t *ret);

/** `true` or `false`, not in quotes; false if the scalar is neither. */
bool yaml_read_bool(const struct yaml_node *node, bool *ret);

/** Adds a problem at the position of `node`; NULL means the file as a whole. */
__attribute__((format(printf, 5, 6))) void yaml_problem(struct problems *problems,
    const struct yaml_document *document, const struct yaml_node *node, const char *fix,
    const char *format, ...);

#endif
