/**
 * /status.json of a running worker (schemas/status.schema.json), read. What a document does not
 * have reads as nothing: 0, "" or an empty list.
 *
 * Threads: pure, except for status_ask().
 */
#ifndef CLI_STATUS_DOCUMENT_H
#define CLI_STATUS_DOCUMENT_H

#include <stdio.h>

#include "base/yaml.h"
#include "settings/settings.h"

typedef const struct yaml_node *node;

struct status {
    char *page;
    size_t size;
    struct yaml_document *document;
};

/** Asks the worker of this configuration. Errors: as ask_worker(); ERR_IO, if it is no document. */
MUST_CHECK enum err status_ask(
    const struct settings *settings, struct status *ret, struct error *err);
void status_fini(struct status *status); /* zeroed is fine */

/** NULL: there is none, also for `at` NULL. */
node document_get(node at, const char *key);
uint64_t document_number(node at, const char *key);
double document_decimal(node at);
const char *document_text(node at, const char *key);
bool document_is_true(node at, const char *key);
size_t document_count(node list);

/** Prints a text that strangers wrote: no byte of it steers a terminal, C1 in UTF-8 included. */
void print_safely(const char *words, FILE *out);

#endif
