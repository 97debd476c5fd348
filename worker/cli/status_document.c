#include "cli/status_document.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/ask.h"

enum err status_ask(const struct settings *settings, struct status *ret, struct error *err) {
    struct problems problems;
    *ret = (struct status){0};
    enum err code = ask_worker(settings, "/status.json", &ret->page, &ret->size, err);
    if (code != ERR_OK) return code;
    problems_init(&problems);
    ret->document =
        yaml_parse("/status.json", slice_of(ret->page, ret->size), YAML_KEEP_VARIABLES, &problems);
    problems_fini(&problems);
    if (ret->document != NULL) return ERR_OK;
    status_fini(ret);
    return error_set(err, ERR_IO, 0, "ask with the version of gpu-worker that the worker has",
        "the worker at http://%s answers no status", settings->http.listen);
}

void status_fini(struct status *status) {
    yaml_destroy(status->document);
    free(status->page);
    *status = (struct status){0};
}

node document_get(node at, const char *key) {
    return at != NULL ? yaml_get(at, key) : NULL;
}

uint64_t document_number(node at, const char *key) {
    uint64_t ret = 0;
    node value = document_get(at, key);
    return value != NULL && yaml_read_uint(value, &ret) ? ret : 0;
}

double document_decimal(node at) {
    return at != NULL && at->kind == YAML_SCALAR ? strtod(at->text, NULL) : 0;
}

const char *document_text(node at, const char *key) {
    node value = document_get(at, key);
    return value != NULL && value->kind == YAML_SCALAR ? value->text : "";
}

bool document_is_true(node at, const char *key) {
    return strcmp(document_text(at, key), "true") == 0;
}

size_t document_count(node list) {
    return list != NULL && list->kind != YAML_SCALAR ? list->count : 0;
}

void print_safely(const char *words, FILE *out) {
    unsigned number;
    for (struct slice left = slice_of_text(words); left.size > 0;) {
        size_t hazard = text_hazard(left, &number);
        fputc(hazard > 0 ? '?' : left.data[0], out);
        left.data += hazard > 0 ? hazard : 1;
        left.size -= hazard > 0 ? hazard : 1;
    }
}
