#include "decode/print_json.h"

#include <inttypes.h>

#include "base/json_writer.h"
#include "base/wire.h"
#include "decode/number_text.h"

static const struct number_words json_words = {"\"NaN\"", "\"Infinity\"", "\"-Infinity\""};

_Static_assert(
    WIRE_DEPTH_MAX + 2 < JSON_DEPTH_MAX, "the deepest message has its numbers in a list");

static void print_binary(struct json_writer *json, struct slice data, enum datatype type) {
    size_t width = type == DATATYPE_NONE ? 0 : datatype_bytes(type);
    if (width == 0 || data.size % width != 0) {
        json_hex(json, NULL, data);
        return;
    }
    json_object(json, NULL);
    json_array(json, number_form(type));
    for (size_t i = 0; i < data.size; i += width)
        number_print_element(json_value(json, NULL), type, data.data + i, &json_words);
    json_end(json);
    json_end(json);
}

/* Keys of JSON are strings; no message of ours has others. */
static void print_key(struct json_writer *json, const struct wire_value *key) {
    char number[24] = "?";
    if (key->type == WIRE_UINT) snprintf(number, sizeof number, "%" PRIu64, key->uint);
    bool is_text = key->type == WIRE_TEXT && slice_is_utf8(wire_slice(key));
    json_key(json, is_text ? wire_slice(key) : slice_of_text(number));
}

static enum datatype datatype_of(const struct wire_value *map) {
    const struct wire_value *key = map + 1;
    for (uint32_t i = 0; i < map->count; i++) {
        const struct wire_value *value = wire_next(key);
        if (key->type == WIRE_TEXT && value->type == WIRE_TEXT &&
            slice_is_text(wire_slice(key), "datatype"))
            return datatype_find(wire_slice(value));
        key = wire_next(value);
    }
    return DATATYPE_NONE;
}

static void print_value(
    struct json_writer *json, const struct wire_value *value, enum datatype type);

static void print_array(
    struct json_writer *json, const struct wire_value *array, enum datatype type) {
    const struct wire_value *item = array + 1;
    json_array(json, NULL);
    for (uint32_t i = 0; i < array->count; i++, item = wire_next(item))
        print_value(json, item, type);
    json_end(json);
}

/* A datatype holds for the data of its map, and for what is nested in it: init, writes. */
static void print_map(struct json_writer *json, const struct wire_value *map, enum datatype type) {
    enum datatype own = datatype_of(map);
    const struct wire_value *key = map + 1;
    json_object(json, NULL);
    for (uint32_t i = 0; i < map->count; i++) {
        const struct wire_value *value = wire_next(key);
        print_key(json, key);
        print_value(json, value, own != DATATYPE_NONE ? own : type);
        key = wire_next(value);
    }
    json_end(json);
}

/* wire_read() bounds the depth. */
static void print_value(
    struct json_writer *json, const struct wire_value *value, enum datatype type) {
    switch (value->type) {
    case WIRE_NIL: json_null(json, NULL); break;
    case WIRE_BOOL: json_bool(json, NULL, value->boolean); break;
    case WIRE_UINT: json_uint(json, NULL, value->uint); break;
    case WIRE_INT: json_int(json, NULL, value->integer); break;
    case WIRE_FLOAT: number_print(json_value(json, NULL), value->number, false, &json_words); break;
    case WIRE_TEXT: json_bytes(json, NULL, wire_slice(value)); break;
    case WIRE_BINARY: print_binary(json, wire_slice(value), type); break;
    case WIRE_ARRAY: print_array(json, value, type); break;
    case WIRE_MAP: print_map(json, value, type); break;
    }
}

void print_message_json(struct slice payload, FILE *out) {
    struct json_writer json = {.out = out, .is_spaced = true};
    struct wire_values values;
    struct error err;
    if (wire_read(payload, SIZE_MAX, &values, &err) != ERR_OK) {
        json_hex(&json, NULL, payload);
        return;
    }
    print_value(&json, values.items, DATATYPE_NONE);
    wire_values_fini(&values);
}
