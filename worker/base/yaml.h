/**
 * A YAML document as a tree that remembers where each node stands. Strict: one document, no anchors
 * or tags, no duplicate keys, bounded depth (16) and size (16 MiB).
 *
 * `${VAR}` and `${VAR:-default}` in scalars are replaced from the environment where the caller asks
 * for it; "$$" is a "$". Everything wrong is added to `problems`.
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
    bool is_bad;               /* scalar without a value: what is wrong with it is added already */
    char *text;                /* scalar: NUL-terminated */
    size_t count;              /* sequence: items; mapping: pairs */
    struct yaml_node **keys;   /* mapping: scalars */
    struct yaml_node **values; /* sequence: items; mapping: values */
};

struct yaml_document;

enum yaml_variables { YAML_KEEP_VARIABLES, YAML_EXPAND_VARIABLES };

/**
 * Parses `text`; `file` is the name that problems carry. NULL where it cannot be read to its end;
 * other problems (a variable that is not set, a key that appears twice) leave a document, so that
 * its reader finds the rest of what is wrong. An empty document is an empty mapping.
 */
struct yaml_document *yaml_parse(
    const char *file, struct slice text, enum yaml_variables variables, struct problems *problems);

/** The same from a file; "-" is standard input. */
struct yaml_document *yaml_load(
    const char *path, enum yaml_variables variables, struct problems *problems);

/** NULL is fine. (Not yaml_free(): libyaml exports that name, and ours would take its place.) */
void yaml_destroy(struct yaml_document *document);

const struct yaml_node *yaml_root(const struct yaml_document *document);
const char *yaml_file(const struct yaml_document *document);

/** The value of `key` in a mapping; NULL when it is absent or `node` is no mapping. */
const struct yaml_node *yaml_get(const struct yaml_node *node, const char *key);

/** The whole scalar as a decimal number without sign or leading zeros; false if it is none. */
bool yaml_read_uint(const struct yaml_node *node, uint64_t *ret);

/** `true` or `false`, not in quotes; false if the scalar is neither. */
bool yaml_read_bool(const struct yaml_node *node, bool *ret);

/** Adds a problem at the place of `node`; NULL stands for the file as a whole. */
__attribute__((format(printf, 5, 6))) void yaml_problem(struct problems *problems,
    const struct yaml_document *document, const struct yaml_node *node, const char *fix,
    const char *format, ...);

#endif
