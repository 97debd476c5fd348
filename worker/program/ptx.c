#include "program/ptx.h"

#include <string.h>

enum { PARAM_BYTES_MAX = 1 << 20, ALIGNMENT_MAX = 1 << 10 };

static const struct type {
    const char *name;
    uint32_t bytes;
    enum param_class class;
} types[] = {
    {".b8", 1, PARAM_ANY},
    {".u8", 1, PARAM_WHOLE},
    {".s8", 1, PARAM_WHOLE},
    {".b16", 2, PARAM_ANY},
    {".u16", 2, PARAM_WHOLE},
    {".s16", 2, PARAM_WHOLE},
    {".f16", 2, PARAM_FLOAT},
    {".bf16", 2, PARAM_FLOAT},
    {".b32", 4, PARAM_ANY},
    {".u32", 4, PARAM_WHOLE},
    {".s32", 4, PARAM_WHOLE},
    {".f32", 4, PARAM_FLOAT},
    {".f16x2", 4, PARAM_ANY},
    {".b64", 8, PARAM_ANY},
    {".u64", 8, PARAM_WHOLE},
    {".s64", 8, PARAM_WHOLE},
    {".f64", 8, PARAM_FLOAT},
    {".b128", 16, PARAM_ANY},
};

void ptx_init(struct ptx *ptx, struct slice text) {
    *ptx = (struct ptx){.rest = text, .line = 1};
}

/* ---- tokens: a word, or one character ---- */

static void skip(struct ptx *ptx, size_t size) {
    for (size_t i = 0; i < size; i++) ptx->line += ptx->rest.data[i] == '\n';
    ptx->rest.data += size;
    ptx->rest.size -= size;
}

static bool begins(const struct ptx *ptx, const char *text) {
    size_t size = strlen(text);
    return ptx->rest.size >= size && memcmp(ptx->rest.data, text, size) == 0;
}

/* Skips up to and including `end`, or to the end of the text. */
static void skip_past(struct ptx *ptx, const char *end) {
    const uint8_t *found = memmem(ptx->rest.data, ptx->rest.size, end, strlen(end));
    skip(ptx, found != NULL ? (size_t)(found - ptx->rest.data) + strlen(end) : ptx->rest.size);
}

static void skip_blank(struct ptx *ptx) {
    while (ptx->rest.size > 0) {
        if (begins(ptx, "//")) skip_past(ptx, "\n");
        else if (begins(ptx, "/*")) skip_past(ptx, "*/");
        else if (memchr(" \t\r\n", ptx->rest.data[0], 4) != NULL) skip(ptx, 1);
        else return;
    }
}

static bool is_of_word(uint8_t c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$' || c == '%' || c == '.';
}

/* Empty at the end of the text. A string in quotes is skipped as one token. */
static struct slice next_token(struct ptx *ptx) {
    skip_blank(ptx);
    struct slice token = slice_of(ptx->rest.data, 0);
    if (begins(ptx, "\"")) {
        skip(ptx, 1);
        skip_past(ptx, "\"");
        token.size = 1;
        return token;
    }
    while (token.size < ptx->rest.size && is_of_word(ptx->rest.data[token.size])) token.size++;
    if (token.size == 0 && ptx->rest.size > 0) token.size = 1;
    skip(ptx, token.size);
    return token;
}

static bool take(struct ptx *ptx, const char *wanted) {
    struct ptx before = *ptx;
    if (slice_is_text(next_token(ptx), wanted)) return true;
    *ptx = before;
    return false;
}

static bool take_number(struct ptx *ptx, uint32_t max, uint32_t *ret) {
    struct slice token = next_token(ptx);
    *ret = 0;
    for (size_t i = 0; i < token.size; i++) {
        if (token.data[i] < '0' || token.data[i] > '9') return false;
        *ret = *ret * 10 + (uint32_t)(token.data[i] - '0');
        if (*ret > max) return false;
    }
    return token.size > 0;
}

/* ---- an entry ---- */

static const struct type *find_type(struct slice token) {
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (slice_is_text(token, types[i].name)) return &types[i];
    return NULL;
}

/* Skips `.ptr .global .align 4`, which describes what the parameter points to, not the parameter.
 * */
static bool take_pointee(struct ptx *ptx) {
    static const char *const spaces[] = {".const", ".global", ".local", ".shared"};
    uint32_t ignored;
    for (size_t i = 0; i < sizeof spaces / sizeof spaces[0]; i++)
        if (take(ptx, spaces[i])) break;
    return !take(ptx, ".align") || take_number(ptx, ALIGNMENT_MAX, &ignored);
}

/* .param [.align N] .type [.ptr ...] NAME [ "[" N "]" ] */
static bool take_param(struct ptx *ptx, struct kernel_param *ret) {
    uint32_t alignment = 0, count = 1;
    if (!take(ptx, ".param")) return false;
    if (take(ptx, ".align") && !take_number(ptx, ALIGNMENT_MAX, &alignment)) return false;
    const struct type *type = find_type(next_token(ptx));
    if (type == NULL || (take(ptx, ".ptr") && !take_pointee(ptx))) return false;
    struct slice name = next_token(ptx);
    if (name.size == 0 || !is_of_word(name.data[0])) return false;
    bool is_array = take(ptx, "[");
    if (is_array && (!take_number(ptx, PARAM_BYTES_MAX, &count) || !take(ptx, "]"))) return false;
    *ret = (struct kernel_param){.bytes = type->bytes * count,
        .alignment = alignment > 0 ? alignment : type->bytes,
        .class = is_array ? PARAM_ANY : type->class};
    return true;
}

static bool take_params(struct ptx *ptx, struct kernel_params *ret) {
    ret->count = 0;
    if (!take(ptx, "(") || take(ptx, ")")) return true;
    do {
        struct kernel_param param;
        if (!take_param(ptx, &param)) return false;
        if (ret->count < ENTRY_ARGS_MAX) ret->items[ret->count] = param;
        ret->count++;
    } while (take(ptx, ","));
    return take(ptx, ")");
}

enum ptx_step ptx_next(struct ptx *ptx, struct slice *name, struct kernel_params *ret) {
    struct slice token;
    do token = next_token(ptx);
    while (token.size > 0 && !slice_is_text(token, ".entry"));
    if (token.size == 0) return PTX_END;
    *name = next_token(ptx);
    bool is_name = name->size > 0 && is_of_word(name->data[0]);
    return is_name && take_params(ptx, ret) ? PTX_ENTRY : PTX_UNREADABLE;
}
