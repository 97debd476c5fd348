#include "program/fields.h"

#include <stdio.h>
#include <string.h>

#include "base/nearest.h"

void *manifest_alloc(const struct manifest *manifest, size_t count, size_t size) {
    void *ret = arena_alloc(manifest->arena, count, size);
    if (ret == NULL)
        MANIFEST_ADD(
            manifest, NULL, "split the program into several", "no memory for so large a manifest");
    return ret;
}

static bool is_one_of(const char *const *known, const char *key) {
    while (*known != NULL && strcmp(*known, key) != 0) known++;
    return *known != NULL;
}

static void add_unknown_key(const struct manifest *manifest, const struct yaml_node *key,
    const char *what, const char *const *known) {
    char fix[100] = "remove it; config/programs/README.md lists the keys";
    struct nearest nearest;
    nearest_init(&nearest, key->text);
    for (; *known != NULL; known++) nearest_offer(&nearest, *known);
    if (nearest.text != NULL) snprintf(fix, sizeof fix, "did you mean '%s'?", nearest.text);
    MANIFEST_ADD(manifest, key, fix, "unknown key '%.80s' of %s", key->text, what);
}

/* `known` are the keys that a mapping may have, ended by NULL. */
bool manifest_check_mapping(const struct manifest *manifest, const struct yaml_node *node,
    const char *what, const char *const *known) {
    if (node->kind != YAML_MAPPING) {
        MANIFEST_ADD(manifest, node, "write {key: value}", "%s is not a map", what);
        return false;
    }
    for (size_t i = 0; i < node->count; i++)
        if (!is_one_of(known, node->keys[i]->text))
            add_unknown_key(manifest, node->keys[i], what, known);
    return true;
}

const struct yaml_node *manifest_require(
    const struct manifest *manifest, const struct yaml_node *node, const char *key) {
    const struct yaml_node *ret = yaml_get(node, key);
    if (ret == NULL) MANIFEST_ADD(manifest, node, "write it here", "'%s' is missing", key);
    return ret;
}

/* A list of `count_min` to `count_max` items; NULL, with a problem added, if it is not one. */
const struct yaml_node *manifest_require_list(const struct manifest *manifest,
    const struct yaml_node *node, const char *key, size_t count_min, size_t count_max) {
    const struct yaml_node *list = manifest_require(manifest, node, key);
    if (list == NULL) return NULL;
    if (list->kind == YAML_SEQUENCE && list->count >= count_min && list->count <= count_max)
        return list;
    MANIFEST_ADD(manifest, list, "write a list of so many, such as [1, 2]",
        "'%s' is not a list of %zu to %zu", key, count_min, count_max);
    return NULL;
}

char *manifest_read_text(const struct manifest *manifest, const struct yaml_node *node) {
    if (node->kind != YAML_SCALAR) {
        MANIFEST_ADD(manifest, node, "write text", "not a string");
        return NULL;
    }
    size_t size = strlen(node->text) + 1;
    char *ret = manifest_alloc(manifest, size, 1);
    return ret == NULL ? NULL : memcpy(ret, node->text, size);
}

static bool is_name(const char *text, size_t size_max, const char *more) {
    static const char first[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    size_t size = strlen(text);
    size_t good = 0;
    while (good < size && (strchr(first, text[good]) || (good > 0 && strchr(more, text[good]))))
        good++;
    return size > 0 && size <= size_max && good == size;
}

/* A name of letters, digits, '_' and, except for the first character, those of `more`. */
char *manifest_read_name(const struct manifest *manifest, const struct yaml_node *parent,
    const char *key, size_t size_max, const char *more) {
    const struct yaml_node *node = manifest_require(manifest, parent, key);
    if (node == NULL) return NULL;
    if (node->kind == YAML_SCALAR && is_name(node->text, size_max, more))
        return manifest_read_text(manifest, node);
    char fix[100];
    snprintf(fix, sizeof fix, "use letters, digits and '_'%s%s, at most %zu",
        more[0] != 0 ? ", then also " : "", more, size_max);
    MANIFEST_ADD(manifest, node, fix, "'%s' is not a plain name", key);
    return NULL;
}

/* The index of the name, from `first` on; -1, with a problem added, if the node is not one of them.
 * */
int manifest_read_choice(const struct manifest *manifest, const struct yaml_node *node,
    const char *what, const char *const *names, int first) {
    const char *text = node->kind == YAML_SCALAR ? node->text : "";
    char fix[100] = "write one of";
    for (int i = first; names[i] != NULL; i++) {
        if (strcmp(names[i], text) == 0) return i;
        size_t used = strlen(fix);
        snprintf(fix + used, sizeof fix - used, "%s %s", i > first ? "," : "", names[i]);
    }
    MANIFEST_ADD(manifest, node, fix, "%s cannot be '%.80s'", what, text);
    return -1;
}

uint32_t manifest_read_number(const struct manifest *manifest, const struct yaml_node *node,
    const char *what, uint32_t min, uint32_t max) {
    uint64_t value;
    if (yaml_read_uint(node, &value) && value >= min && value <= max) return (uint32_t)value;
    MANIFEST_ADD(manifest, node, "write a number in that range",
        "%s is not a whole number from %u to %u", what, min, max);
    return min;
}
