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

uint64_t reply_rejected(const struct reply *reply, char message[static REPLY_MESSAGE_BYTES]) {
    struct problems problems; /* what is no JSON says nothing of spans */
    uint64_t ret = 0;
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
