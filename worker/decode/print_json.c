#include "decode/print_json.h"

#include <inttypes.h>

#include "base/text.h"
#include "base/wire.h"
#include "decode/number_text.h"

static const struct number_words json_words = {"\"NaN\"", "\"Infinity\"", "\"-Infinity\""};

static void print_hex(struct slice bytes, FILE *out) {
    fputs("{\"hex\": \"", out);
    for (size_t i = 0; i < bytes.size; i++) fprintf(out, "%02x", bytes.data[i]);
    fputs("\"}", out);
}

void print_text_json(struct slice text, FILE *out) {
    if (slice_is_utf8(text)) text_print_json(text, out);
    else print_hex(text, out);
}

static void print_binary(struct slice data, enum datatype type, FILE *out) {
    size_t width = type == DATATYPE_NONE ? 0 : datatype_bytes(type);
    if (width == 0 || data.size % width != 0) {
        print_hex(data, out);
        return;
    }
    fprintf(out, "{\"%s\": [", number_form(type));
    for (size_t i = 0; i < data.size; i += width) {
        if (i > 0) fputs(", ", out);
        number_print_element(out, type, data.data + i, &json_words);
    }
    fputs("]}", out);
}

/* Keys of JSON are strings; no message of ours has others. */
static void print_key(const struct wire_value *key, FILE *out) {
    if (key->type == WIRE_TEXT && slice_is_utf8(wire_slice(key)))
        text_print_json(wire_slice(key), out);
    else if (key->type == WIRE_UINT) fprintf(out, "\"%" PRIu64 "\"", key->uint);
    else fputs("\"?\"", out);
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

static void print_value(const struct wire_value *value, enum datatype type, FILE *out);

static void print_array(const struct wire_value *array, enum datatype type, FILE *out) {
    const struct wire_value *item = array + 1;
    fputc('[', out);
    for (uint32_t i = 0; i < array->count; i++, item = wire_next(item)) {
        if (i > 0) fputs(", ", out);
        print_value(item, type, out);
    }
    fputc(']', out);
}

/* A datatype holds for the data of its map, and for what is nested in it: init, writes. */
static void print_map(const struct wire_value *map, enum datatype type, FILE *out) {
    enum datatype own = datatype_of(map);
    const struct wire_value *key = map + 1;
    fputc('{', out);
    for (uint32_t i = 0; i < map->count; i++) {
        const struct wire_value *value = wire_next(key);
        if (i > 0) fputs(", ", out);
        print_key(key, out);
        fputs(": ", out);
        print_value(value, own != DATATYPE_NONE ? own : type, out);
        key = wire_next(value);
    }
    fputc('}', out);
}

/* wire_read() bounds the depth. */
static void print_value(const struct wire_value *value, enum datatype type, FILE *out) {
    switch (value->type) {
    case WIRE_NIL: fputs("null", out); break;
    case WIRE_BOOL: fputs(value->boolean ? "true" : "false", out); break;
    case WIRE_UINT: fprintf(out, "%" PRIu64, value->uint); break;
    case WIRE_INT: fprintf(out, "%" PRId64, value->integer); break;
    case WIRE_FLOAT: number_print(out, value->number, false, &json_words); break;
    case WIRE_TEXT: print_text_json(wire_slice(value), out); break;
    case WIRE_BINARY: print_binary(wire_slice(value), type, out); break;
    case WIRE_ARRAY: print_array(value, type, out); break;
    case WIRE_MAP: print_map(value, type, out); break;
    }
}

void print_message_json(struct slice payload, FILE *out) {
    struct wire_values values;
    struct error err;
    if (wire_read(payload, SIZE_MAX, &values, &err) != ERR_OK) {
        print_hex(payload, out);
        return;
    }
    print_value(values.items, DATATYPE_NONE, out);
    wire_values_fini(&values);
}
