#include "base/variables.h"

#include <stdlib.h>

enum { NAME_MAX_BYTES = 128 };

static const char reference_fix[] = "write ${NAME} or ${NAME:-default}, or $$ for a dollar sign";

/* Text that grows in an arena; NUL-terminated once something was appended. */
struct buffer {
    struct arena *arena;
    char *data;
    size_t size, capacity;
};

static enum err buffer_append(struct buffer *buffer, struct slice text, struct error *err) {
    size_t needed = buffer->size + text.size + 1;
    if (needed > buffer->capacity) {
        size_t capacity = needed < 2 * buffer->capacity ? 2 * buffer->capacity : needed;
        char *data = arena_alloc(buffer->arena, capacity, 1);
        if (data == NULL) return error_set(err, ERR_NO_MEMORY, 0, "", "no memory for a string");
        if (buffer->size > 0) memcpy(data, buffer->data, buffer->size);
        buffer->data = data;
        buffer->capacity = capacity;
    }
    if (text.size > 0) memcpy(buffer->data + buffer->size, text.data, text.size);
    buffer->size += text.size;
    buffer->data[buffer->size] = 0;
    return ERR_OK;
}

static bool is_name(struct slice name) {
    if (name.size == 0 || name.size > NAME_MAX_BYTES) return false;
    for (size_t i = 0; i < name.size; i++) {
        uint8_t c = name.data[i];
        bool is_letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
        bool is_digit = c >= '0' && c <= '9';
        if (!is_letter && !(is_digit && i > 0)) return false;
    }
    return true;
}

/* The value of the reference between "${" and "}". */
static enum err look_up(struct slice reference, struct slice *ret, struct error *err) {
    if (memmem(reference.data, reference.size, "${", 2) != NULL)
        return error_set(err, ERR_CONFIG, 0, "give the inner one a variable of its own",
            "'${' stands inside '${...}'");
    const uint8_t *separator = memmem(reference.data, reference.size, ":-", 2);
    struct slice name = reference, fallback = {0};
    if (separator != NULL) {
        name.size = (size_t)(separator - reference.data);
        fallback = slice_of(separator + 2, reference.size - name.size - 2);
    }
    if (!is_name(name))
        return error_set(
            err, ERR_CONFIG, 0, reference_fix, "'${' is not followed by a variable's name");

    char text[NAME_MAX_BYTES + 1] = {0};
    memcpy(text, name.data, name.size);
    const char *value = getenv(text);
    bool is_set = value != NULL && (value[0] != 0 || separator == NULL);
    if (!is_set && separator == NULL)
        return error_set(err, ERR_CONFIG, 0, "set it, or write ${NAME:-default}",
            "environment variable '%s' is not set", text);
    *ret = is_set ? slice_of_text(value) : fallback;
    if (!slice_is_utf8(*ret))
        return error_set(
            err, ERR_CONFIG, 0, "", "the value of environment variable '%s' is not UTF-8", text);
    return ERR_OK;
}

/* Takes a reference, with its "${", from the front of `text` and appends its value. */
static enum err expand_reference(struct slice *text, struct buffer *buffer, struct error *err) {
    const uint8_t *end = memchr(text->data, '}', text->size);
    if (end == NULL) return error_set(err, ERR_CONFIG, 0, reference_fix, "'${' without '}'");
    size_t size = (size_t)(end - text->data) + 1;
    struct slice value;
    enum err code = look_up(slice_of(text->data + 2, size - 3), &value, err);
    if (code != ERR_OK) return code;
    *text = slice_of(text->data + size, text->size - size);
    return buffer_append(buffer, value, err);
}

enum err variables_expand(struct slice text, struct arena *arena, char **ret, struct error *err) {
    struct buffer buffer = {.arena = arena};
    enum err code = buffer_append(&buffer, slice_of(NULL, 0), err);
    while (code == ERR_OK && text.size > 0) {
        if (text.size >= 2 && memcmp(text.data, "${", 2) == 0) {
            code = expand_reference(&text, &buffer, err);
            continue;
        }
        size_t skip = text.size >= 2 && memcmp(text.data, "$$", 2) == 0 ? 1 : 0;
        const uint8_t *start = text.data + skip;
        const uint8_t *dollar = memchr(start + 1, '$', text.size - skip - 1);
        size_t size = dollar == NULL ? text.size - skip : (size_t)(dollar - start);
        code = buffer_append(&buffer, slice_of(start, size), err);
        text = slice_of(start + size, text.size - skip - size);
    }
    if (code == ERR_OK) *ret = buffer.data;
    return code;
}
