#include "base/yaml.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <yaml.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/number.h"
#include "base/variables.h"

enum {
    DEPTH_MAX = 16,
    TEXT_BYTES_MAX = 16 << 20,
    TREE_BYTES_MAX = 64 << 20 /* of what the text becomes: nodes, and values of variables */
};

struct yaml_document {
    char *file;
    struct arena arena;
    struct yaml_node *root;
    bool is_empty;
};

/* The parser and its current event. */
struct reader {
    struct yaml_document *document;
    struct slice text;
    enum yaml_variables variables;
    struct problems *problems;
    yaml_parser_t parser;
    yaml_event_t event;
};

/* A list that grows in the arena. Its old blocks stay there, at most as many bytes again. */
struct node_list {
    struct yaml_node **items;
    size_t count, capacity;
};

static void add_problem(
    struct reader *reader, const yaml_mark_t *mark, const char *fix, const char *what) {
    problems_add(reader->problems, reader->document->file, (int)mark->line + 1,
        (int)mark->column + 1, fix, "%s", what);
}

/* Always false, so that a caller can return it. */
static bool fail_memory(struct reader *reader) {
    problems_add(reader->problems, reader->document->file, 0, 0, "split the file",
        "more than fits in memory (%d MiB as a tree)", TREE_BYTES_MAX >> 20);
    return false;
}

static bool list_append(struct reader *reader, struct node_list *list, struct yaml_node *node) {
    if (list->count == list->capacity) {
        size_t capacity = list->capacity == 0 ? 8 : 2 * list->capacity;
        struct yaml_node **items =
            arena_alloc(&reader->document->arena, capacity, sizeof(struct yaml_node *));
        if (items == NULL) return fail_memory(reader);
        if (list->count > 0) memcpy(items, list->items, list->count * sizeof(struct yaml_node *));
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->count++] = node;
    return true;
}

/* For bytes that are not text, libyaml reports only their offset. */
static yaml_mark_t mark_at(struct slice text, size_t offset) {
    yaml_mark_t mark = {.index = offset};
    for (size_t i = 0; i < offset && i < text.size; i++) {
        mark.column++;
        if (text.data[i] != '\n') continue;
        mark.line++;
        mark.column = 0;
    }
    return mark;
}

static void add_parser_problem(struct reader *reader) {
    const yaml_parser_t *parser = &reader->parser;
    yaml_mark_t mark = parser->problem_mark;
    const char *fix = "";
    if (parser->error == YAML_READER_ERROR) {
        mark = mark_at(reader->text, parser->problem_offset);
        fix = "give a file of YAML, which is text in UTF-8";
    }
    char what[200];
    snprintf(what, sizeof what, "%s%s%s", parser->context != NULL ? parser->context : "",
        parser->context != NULL ? ": " : "",
        parser->problem != NULL ? parser->problem : "out of memory");
    add_problem(reader, &mark, fix, what);
}

/* Moves on to the next event; false, with a problem added, if the text is not YAML. */
static bool next_event(struct reader *reader) {
    yaml_event_delete(&reader->event);
    if (yaml_parser_parse(&reader->parser, &reader->event)) return true;
    add_parser_problem(reader);
    return false;
}

static struct yaml_node *create_node(struct reader *reader, enum yaml_kind kind) {
    struct yaml_node *node = arena_alloc(&reader->document->arena, 1, sizeof *node);
    if (node == NULL) {
        fail_memory(reader);
        return NULL;
    }
    static char nothing[] = "";
    node->kind = kind;
    node->text = nothing;
    node->line = (int)reader->event.start_mark.line + 1;
    node->column = (int)reader->event.start_mark.column + 1;
    return node;
}

/* Stands in for something that cannot be a value. */
static struct yaml_node *create_bad_node(struct reader *reader) {
    struct yaml_node *node = create_node(reader, YAML_SCALAR);
    if (node != NULL) node->is_bad = true;
    return node;
}

static void refuse_properties(struct reader *reader, const void *anchor, const void *tag) {
    if (anchor != NULL)
        add_problem(reader, &reader->event.start_mark, "write the value out",
            "anchors ('&') are not allowed");
    if (tag != NULL)
        add_problem(reader, &reader->event.start_mark, "remove it", "tags ('!') are not allowed");
}

/* Sets the node's text; false, with a problem added, if the rest of the file cannot be read. */
static bool read_text(
    struct reader *reader, enum yaml_variables variables, struct yaml_node *node) {
    struct slice text = slice_of(reader->event.data.scalar.value, reader->event.data.scalar.length);
    if (memchr(text.data, 0, text.size) != NULL)
        add_problem(reader, &reader->event.start_mark, "", "a NUL character in a string");
    if (variables == YAML_EXPAND_VARIABLES) {
        struct error err;
        enum err code = variables_expand(text, &reader->document->arena, &node->text, &err);
        if (code == ERR_NO_MEMORY) return fail_memory(reader);
        node->is_bad = code != ERR_OK;
        if (node->is_bad) add_problem(reader, &reader->event.start_mark, err.fix, err.message);
        return true;
    }
    node->text = arena_alloc(&reader->document->arena, text.size + 1, 1);
    if (node->text == NULL) return fail_memory(reader);
    memcpy(node->text, text.data, text.size);
    return true;
}

static struct yaml_node *read_scalar(struct reader *reader, enum yaml_variables variables) {
    struct yaml_node *node = create_node(reader, YAML_SCALAR);
    if (node == NULL) return NULL;
    refuse_properties(reader, reader->event.data.scalar.anchor, reader->event.data.scalar.tag);
    node->is_quoted = reader->event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    return read_text(reader, variables, node) ? node : NULL;
}

static struct yaml_node *read_node(struct reader *reader, int depth);

static struct yaml_node *read_sequence(struct reader *reader, int depth) {
    struct yaml_node *node = create_node(reader, YAML_SEQUENCE);
    if (node == NULL) return NULL;
    refuse_properties(
        reader, reader->event.data.sequence_start.anchor, reader->event.data.sequence_start.tag);
    struct node_list items = {0};
    for (;;) {
        if (!next_event(reader)) return NULL;
        if (reader->event.type == YAML_SEQUENCE_END_EVENT) break;
        struct yaml_node *item = read_node(reader, depth + 1);
        if (item == NULL || !list_append(reader, &items, item)) return NULL;
    }
    node->count = items.count;
    node->values = items.items;
    return node;
}

/* Reads a key: a scalar, taken literally. NULL if the rest of the file cannot be read. */
static struct yaml_node *read_key(struct reader *reader, int depth) {
    if (reader->event.type == YAML_SCALAR_EVENT) return read_scalar(reader, YAML_KEEP_VARIABLES);
    add_problem(reader, &reader->event.start_mark, "", "a key that is not a plain name");
    return read_node(reader, depth + 1) != NULL ? create_bad_node(reader) : NULL;
}

static int compare_keys(const void *a, const void *b) {
    const struct yaml_node *const *left = a, *const *right = b;
    int order = strcmp((*left)->text, (*right)->text);
    if (order == 0) order = (*left)->line - (*right)->line;
    return order != 0 ? order : (*left)->column - (*right)->column;
}

/*
 * Sorts the keys, so that a file of a million keys does not take a million times a million
 * comparisons.
 */
static bool refuse_duplicates(struct reader *reader, const struct node_list *keys) {
    if (keys->count < 2) return true;
    struct yaml_node **sorted =
        arena_alloc(&reader->document->arena, keys->count, sizeof(struct yaml_node *));
    if (sorted == NULL) return fail_memory(reader);
    memcpy(sorted, keys->items, keys->count * sizeof(struct yaml_node *));
    qsort(sorted, keys->count, sizeof(struct yaml_node *), compare_keys);
    for (size_t i = 1; i < keys->count; i++)
        if (strcmp(sorted[i - 1]->text, sorted[i]->text) == 0 && !sorted[i]->is_bad)
            yaml_problem(reader->problems, reader->document, sorted[i], "remove one of them",
                "key '%.80s' appears twice, first in line %d", sorted[i]->text,
                sorted[i - 1]->line);
    return true;
}

static struct yaml_node *read_mapping(struct reader *reader, int depth) {
    struct yaml_node *node = create_node(reader, YAML_MAPPING);
    if (node == NULL) return NULL;
    refuse_properties(
        reader, reader->event.data.mapping_start.anchor, reader->event.data.mapping_start.tag);
    struct node_list keys = {0}, values = {0};
    for (;;) {
        if (!next_event(reader)) return NULL;
        if (reader->event.type == YAML_MAPPING_END_EVENT) break;
        struct yaml_node *key = read_key(reader, depth);
        if (key == NULL || !list_append(reader, &keys, key) || !next_event(reader)) return NULL;
        struct yaml_node *value = read_node(reader, depth + 1);
        if (value == NULL || !list_append(reader, &values, value)) return NULL;
    }
    node->count = keys.count;
    node->keys = keys.items;
    node->values = values.items;
    return refuse_duplicates(reader, &keys) ? node : NULL;
}

/* Reads the node that starts at the current event; NULL if the rest of the file cannot be read. */
static struct yaml_node *read_node(struct reader *reader, int depth) {
    if (depth > DEPTH_MAX) {
        add_problem(
            reader, &reader->event.start_mark, "", "nested too deeply (more than 16 levels)");
        return NULL;
    }
    switch (reader->event.type) {
    case YAML_SCALAR_EVENT: return read_scalar(reader, reader->variables);
    case YAML_SEQUENCE_START_EVENT: return read_sequence(reader, depth);
    case YAML_MAPPING_START_EVENT: return read_mapping(reader, depth);
    default:
        add_problem(reader, &reader->event.start_mark, "write the value out",
            "aliases ('*') are not allowed");
        return create_bad_node(reader);
    }
}

static bool is_nothing(const struct yaml_node *node) {
    return node->kind == YAML_SCALAR && !node->is_quoted && !node->is_bad && node->text[0] == 0;
}

/* False, with a problem added, if the text is not a single document. */
static bool read_document(struct reader *reader) {
    if (!next_event(reader) || !next_event(reader)) return false;
    struct yaml_node *root;
    if (reader->event.type == YAML_STREAM_END_EVENT) {
        root = create_node(reader, YAML_MAPPING);
        reader->document->is_empty = true;
    } else {
        if (!next_event(reader)) return false;
        root = read_node(reader, 1);
        if (root == NULL || !next_event(reader) || !next_event(reader)) return false;
        reader->document->is_empty = is_nothing(root);
        if (is_nothing(root)) root->kind = YAML_MAPPING;
        if (reader->event.type != YAML_STREAM_END_EVENT)
            add_problem(reader, &reader->event.start_mark, "keep one of them",
                "a second document in one file");
    }
    reader->document->root = root;
    return root != NULL;
}

/* Editors may put a UTF-8 byte order mark before the text. libyaml counts it as a column, so that
 * the first key would be indented. */
static struct slice without_mark(struct slice text) {
    static const char mark[] = "\xef\xbb\xbf";
    size_t size = sizeof mark - 1;
    if (text.size < size || memcmp(text.data, mark, size) != 0) return text;
    return slice_of(text.data + size, text.size - size);
}

static struct yaml_document *create_document(const char *file) {
    struct yaml_document *document = calloc(1, sizeof *document);
    if (document == NULL) return NULL;
    arena_init(&document->arena, TREE_BYTES_MAX);
    document->file = strdup(file);
    if (document->file != NULL) return document;
    free(document);
    return NULL;
}

struct yaml_document *yaml_parse(
    const char *file, struct slice text, enum yaml_variables variables, struct problems *problems) {
    if (text.size > TEXT_BYTES_MAX) {
        problems_add(
            problems, file, 0, 0, "split the file", "more than %d MiB", TEXT_BYTES_MAX >> 20);
        return NULL;
    }
    struct reader reader = {.document = create_document(file),
        .text = without_mark(text),
        .variables = variables,
        .problems = problems};
    if (reader.document == NULL || !yaml_parser_initialize(&reader.parser)) {
        yaml_destroy(reader.document);
        problems_add(problems, file, 0, 0, "", "no memory to read it");
        return NULL;
    }
    yaml_parser_set_encoding(&reader.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&reader.parser, reader.text.data, reader.text.size);
    bool complete = read_document(&reader);
    yaml_event_delete(&reader.event);
    yaml_parser_delete(&reader.parser);
    if (complete) return reader.document;
    yaml_destroy(reader.document);
    return NULL;
}

struct yaml_document *yaml_load(
    const char *path, enum yaml_variables variables, struct problems *problems) {
    char *text;
    size_t size;
    struct error err;
    if (file_read(path, TEXT_BYTES_MAX, &text, &size, &err) != ERR_OK) {
        file_add_problem(problems, path, &err);
        return NULL;
    }
    const char *file = strcmp(path, "-") == 0 ? "standard input" : path;
    struct yaml_document *document = yaml_parse(file, slice_of(text, size), variables, problems);
    free(text);
    return document;
}

void yaml_destroy(struct yaml_document *document) {
    if (document == NULL) return;
    arena_fini(&document->arena);
    free(document->file);
    free(document);
}

const struct yaml_node *yaml_root(const struct yaml_document *document) {
    return document->root;
}

const char *yaml_file(const struct yaml_document *document) {
    return document->file;
}

bool yaml_is_empty(const struct yaml_document *document) {
    return document->is_empty;
}

const struct yaml_node *yaml_get(const struct yaml_node *node, const char *key) {
    if (node->kind != YAML_MAPPING) return NULL;
    for (size_t i = 0; i < node->count; i++)
        if (strcmp(node->keys[i]->text, key) == 0) return node->values[i];
    return NULL;
}

bool yaml_read_uint(const struct yaml_node *node, uint64_t *ret) {
    if (node->kind != YAML_SCALAR) return false;
    uint64_t value;
    size_t digits = number_read(node->text, &value);
    if (digits == 0 || node->text[digits] != 0) return false;
    *ret = value;
    return true;
}

bool yaml_read_bool(const struct yaml_node *node, bool *ret) {
    if (node->kind != YAML_SCALAR || node->is_quoted) return false;
    bool is_true = strcmp(node->text, "true") == 0;
    if (!is_true && strcmp(node->text, "false") != 0) return false;
    *ret = is_true;
    return true;
}

void yaml_problem(struct problems *problems, const struct yaml_document *document,
    const struct yaml_node *node, const char *fix, const char *format, ...) {
    char what[400];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    problems_add(problems, document->file, node == NULL ? 0 : node->line,
        node == NULL ? 0 : node->column, fix, "%s", what);
}
