#include "decode/control_message.h"

#include "base/writer.h"
#include "decode/walk.h"

enum { VALUES_BYTES_MAX = CONTROL_MESSAGE_BYTES_MAX * sizeof(struct wire_value) };

static const char *const action_names[] = {
    [CONTROL_STOP] = "stop",
    [CONTROL_CANCEL] = "cancel",
};

static enum err parse_action(struct walk *walk, const struct wire_value *value, void *ret) {
    enum control_action *action = ret;
    struct slice name;
    char quoted[QUOTED_SIZE];
    enum err code = walk_text(walk, value, NAME_BYTES_MAX, &name);
    if (code != ERR_OK) return code;
    for (*action = CONTROL_STOP; *action <= CONTROL_CANCEL; (*action)++)
        if (slice_is_text(name, action_names[*action])) return ERR_OK;
    return walk_fail(walk, ERR_BAD_MESSAGE, "send \"cancel\" or \"stop\", or upgrade the worker",
        "is %s; this worker knows \"cancel\" and \"stop\"", walk_quote(name, quoted));
}

static const struct field fields[] = {
    {KEY("v"), REQUIRED, parse_version, 0},
    {KEY("id"), REQUIRED, parse_id, offsetof(struct control_message, id)},
    {KEY("action"), REQUIRED, parse_action, offsetof(struct control_message, action)},
};

enum err control_message_decode(
    struct slice payload, struct control_message *ret, struct error *err) {
    struct walk walk = {.root = "the message", .err = err};
    const struct wire_value *found[FIELDS_MAX];
    struct wire_values values;
    enum err code =
        walk_read(&walk, payload, CONTROL_MESSAGE_BYTES_MAX, NULL, VALUES_BYTES_MAX, &values);
    if (code == ERR_OK) {
        code = walk_map(&walk, values.items, FIELDS(fields), ret, found);
        wire_values_fini(&values);
    }
    /* A control message gets no answer, so one code is enough. */
    if (code != ERR_OK && code != ERR_NO_MEMORY) err->code = code = ERR_BAD_MESSAGE;
    return code;
}

enum err control_message_encode(const struct control_message *message,
    uint8_t ret[static CONTROL_MESSAGE_BYTES_MAX], size_t *size, struct error *err) {
    struct writer writer = {.next = ret, .left = CONTROL_MESSAGE_BYTES_MAX};
    struct control_message decoded;
    write_map(&writer, 3);
    write_number(&writer, "v", 1);
    write_key(&writer, "action");
    write_text(&writer, action_names[message->action]);
    write_key(&writer, "id");
    write_slice(&writer, message->id);
    if (writer.is_over)
        return error_set(err, ERR_BAD_MESSAGE, 0, "name the id of a job",
            "an id of %zu bytes is not a valid job id", message->id.size);
    *size = (size_t)(writer.next - ret);
    return control_message_decode(slice_of(ret, *size), &decoded, err);
}
