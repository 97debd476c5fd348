#include "decode/cancel.h"

#include "decode/walk.h"

enum { VALUES_BYTES_MAX = CANCEL_BYTES_MAX * sizeof(struct wire_value) };

static enum err parse_action(struct walk *walk, const struct wire_value *value, void *ret) {
    struct slice action;
    enum err code = walk_text(walk, value, NAME_BYTES_MAX, &action);
    if (code != ERR_OK || slice_is_text(action, "cancel")) return code;
    char quoted[QUOTED_SIZE];
    return walk_fail(walk, ERR_BAD_MESSAGE, "send \"cancel\", or upgrade the worker",
        "is %s; this worker knows \"cancel\"", walk_quote(action, quoted));
}

static const struct field cancel_fields[] = {
    {KEY("v"), REQUIRED, parse_version, 0},
    {KEY("id"), REQUIRED, parse_id, 0},
    {KEY("action"), REQUIRED, parse_action, 0},
};

enum err cancel_decode(struct slice payload, struct slice *id, struct error *err) {
    struct walk walk = {.root = "the message", .err = err};
    const struct wire_value *found[FIELDS_MAX];
    struct wire_values values;
    enum err code = walk_read(&walk, payload, CANCEL_BYTES_MAX, NULL, VALUES_BYTES_MAX, &values);
    if (code == ERR_OK) {
        code = walk_map(&walk, values.items, FIELDS(cancel_fields), id, found);
        wire_values_fini(&values);
    }
    /* A cancel message gets no answer, so one code is enough. */
    if (code != ERR_OK && code != ERR_NO_MEMORY) err->code = code = ERR_BAD_MESSAGE;
    return code;
}

enum err cancel_encode(
    struct slice id, uint8_t ret[static CANCEL_BYTES_MAX], size_t *size, struct error *err) {
    /* A map of three; the id comes last, as a string with a size of 16 bits. */
    static const char before_id[] = "\x83\xa1v\x01\xa6"
                                    "action\xa6"
                                    "cancel\xa2"
                                    "id\xda";
    enum { BEFORE = sizeof before_id - 1, HEAD = BEFORE + 2 };
    struct slice decoded;
    if (id.size > CANCEL_BYTES_MAX - HEAD)
        return error_set(err, ERR_BAD_MESSAGE, 0, "name the id of a job",
            "an id of %zu bytes is not a valid job id", id.size);
    memcpy(ret, before_id, BEFORE);
    ret[BEFORE] = (uint8_t)(id.size >> 8);
    ret[BEFORE + 1] = (uint8_t)id.size;
    if (id.size > 0) memcpy(ret + HEAD, id.data, id.size);
    *size = HEAD + id.size;
    return cancel_decode(slice_of(ret, *size), &decoded, err);
}
