#include "trace/reply.h"

#include "base/text.h"
#include "base/yaml.h"

enum err reply_take(void *context, struct slice piece, struct error *err) {
    struct reply *reply = context;
    size_t room = sizeof reply->bytes - reply->size;
    size_t size = piece.size < room ? piece.size : room;
    if (size > 0) memcpy(reply->bytes + reply->size, piece.data, size);
    reply->size += size;
    return ERR_OK;
}

static const struct yaml_node *get(const struct yaml_node *node, const char *key) {
    return node != NULL ? yaml_get(node, key) : NULL;
}

/* JSON may write a character beyond U+FFFF as two escapes, each of half of it, which YAML does not
 * take. What stands there instead is the character for what cannot be shown. */
static void replace_halves(struct reply *reply) {
    static const char instead[] = "\\ufffd";
    const size_t size = sizeof instead - 1;
    for (size_t i = 0; i + size <= reply->size; i++) {
        char *at = reply->bytes + i;
        if (at[0] != '\\') continue;
        i++; /* what is escaped may be a backslash */
        bool is_half = at[1] == 'u' && (at[2] == 'd' || at[2] == 'D') &&
                       memchr("89abcdefABCDEF", at[3], 14) != NULL;
        if (is_half) memcpy(at, instead, size);
    }
}

uint64_t reply_rejected(struct reply *reply, char message[static REPLY_MESSAGE_BYTES]) {
    struct problems problems; /* what is no JSON says nothing of spans */
    uint64_t ret = 0;
    replace_halves(reply);
    problems_init(&problems);
    struct yaml_document *document = yaml_parse(
        "the answer", slice_of(reply->bytes, reply->size), YAML_KEEP_VARIABLES, &problems);
    problems_fini(&problems);
    const struct yaml_node *root = document != NULL ? yaml_root(document) : NULL;
    const struct yaml_node *partial = get(root, "partialSuccess");
    const struct yaml_node *count =
        get(partial, "rejectedSpans"); /* a number, or a string of one */
    const struct yaml_node *why = get(partial, "errorMessage");
    if (count != NULL && !yaml_read_uint(count, &ret)) ret = 0;
    text_format(message, REPLY_MESSAGE_BYTES, "%s",
        why != NULL && why->text[0] != 0 ? why->text : "it does not say why");
    yaml_destroy(document);
    return ret;
}
