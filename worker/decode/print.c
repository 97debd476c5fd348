#include "decode/print.h"

#include <inttypes.h>
#include <msgpack.h>
#include <stdlib.h>

#include "base/text.h"
#include "base/wire.h"
#include "decode/number_text.h"
#include "decode/scalar.h"
#include "job/job.h"

enum { ITEMS_SHOWN = 16, BYTES_SHOWN = 32, WORD_SIZE = 64 };

static struct slice slice_of_string(const msgpack_object *value) {
    return slice_of(value->via.str.ptr, value->via.str.size);
}

/* Whether YAML reads the text as itself without quotes. */
static bool is_plain(struct slice text) {
    char word[WORD_SIZE];
    if (text.size == 0 || text.size >= sizeof word) return false;
    for (size_t i = 0; i < text.size; i++) {
        uint8_t c = text.data[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!is_letter && (i == 0 || strchr("0123456789-./@+", c) == NULL)) return false;
    }
    memcpy(word, text.data, text.size);
    word[text.size] = 0;
    return scalar_of_word(word).kind == SCALAR_TEXT;
}

void print_text(struct slice text, FILE *out) {
    if (is_plain(text)) {
        fprintf(out, "%.*s", (int)text.size, (const char *)text.data);
        return;
    }
    bool is_utf8 = slice_is_utf8(text);
    fputc('"', out);
    for (size_t i = 0; i < text.size;) {
        unsigned c = text.data[i];
        size_t hazard =
            is_utf8 || c < 0x80 ? text_hazard(slice_of(text.data + i, text.size - i), &c) : 1;
        if (c == '\n') fputs("\\n", out);
        else if (hazard > 0) fprintf(out, c < 0x100 ? "\\x%02x" : "\\u%04x", c);
        else fprintf(out, c == '"' || c == '\\' ? "\\%c" : "%c", text.data[i]);
        i += hazard > 0 ? hazard : 1;
    }
    fputc('"', out);
}

static const struct number_words yaml_words = {".nan", ".inf", "-.inf"};

static void print_numbers(FILE *out, struct slice data, enum datatype type) {
    size_t width = datatype_bytes(type), count = data.size / width;
    fprintf(out, "{%s: [", number_form(type));
    for (size_t i = 0; i < count && i < ITEMS_SHOWN; i++) {
        if (i > 0) fputs(", ", out);
        number_print_element(out, type, data.data + i * width, &yaml_words);
    }
    fputs(count > ITEMS_SHOWN ? ", ...]}" : "]}", out);
    if (count > ITEMS_SHOWN) fprintf(out, "  # %zu items", count);
}

static void print_hex(FILE *out, struct slice data) {
    fputs("{hex: \"", out);
    for (size_t i = 0; i < data.size && i < BYTES_SHOWN; i++) fprintf(out, "%02x", data.data[i]);
    fputs(data.size > BYTES_SHOWN ? "...\"}" : "\"}", out);
    if (data.size > BYTES_SHOWN) fprintf(out, "  # %zu bytes", data.size);
}

static void print_binary(FILE *out, const msgpack_object *value, enum datatype type) {
    struct slice data = slice_of(value->via.bin.ptr, value->via.bin.size);
    if (type != DATATYPE_NONE && data.size % datatype_bytes(type) == 0)
        print_numbers(out, data, type);
    else print_hex(out, data);
}

static bool nests(const msgpack_object *value) {
    return (value->type == MSGPACK_OBJECT_MAP && value->via.map.size > 0) ||
           (value->type == MSGPACK_OBJECT_ARRAY && value->via.array.size > 0);
}

/* Whatever takes one line. */
static void print_scalar(FILE *out, const msgpack_object *value, enum datatype type) {
    switch (value->type) {
    case MSGPACK_OBJECT_BOOLEAN: fputs(value->via.boolean ? "true" : "false", out); break;
    case MSGPACK_OBJECT_POSITIVE_INTEGER: fprintf(out, "%" PRIu64, value->via.u64); break;
    case MSGPACK_OBJECT_NEGATIVE_INTEGER: fprintf(out, "%" PRId64, value->via.i64); break;
    case MSGPACK_OBJECT_FLOAT32: number_print(out, value->via.f64, true, &yaml_words); break;
    case MSGPACK_OBJECT_FLOAT64: number_print(out, value->via.f64, false, &yaml_words); break;
    case MSGPACK_OBJECT_STR: print_text(slice_of_string(value), out); break;
    case MSGPACK_OBJECT_BIN: print_binary(out, value, type); break;
    case MSGPACK_OBJECT_ARRAY: fputs("[]", out); break;
    case MSGPACK_OBJECT_MAP: fputs("{}", out); break;
    default: fputs("null", out); break;
    }
}

/* [1, 2, 3] */
static void print_list(FILE *out, const msgpack_object_array *items) {
    fputc('[', out);
    for (uint32_t i = 0; i < items->size && i < ITEMS_SHOWN; i++) {
        if (i > 0) fputs(", ", out);
        print_scalar(out, &items->ptr[i], DATATYPE_NONE);
    }
    fputs(items->size > ITEMS_SHOWN ? ", ...]" : "]", out);
    if (items->size > ITEMS_SHOWN) fprintf(out, "  # %" PRIu32 " items", items->size);
}

static bool is_list_of_scalars(const msgpack_object *value) {
    if (value->type != MSGPACK_OBJECT_ARRAY) return false;
    for (uint32_t i = 0; i < value->via.array.size; i++) {
        const msgpack_object *item = &value->via.array.ptr[i];
        /* binary may end its line with a comment */
        if (nests(item) || item->type == MSGPACK_OBJECT_BIN) return false;
    }
    return true;
}

static enum datatype datatype_of(const msgpack_object_map *map) {
    for (uint32_t i = 0; i < map->size; i++) {
        const msgpack_object *key = &map->ptr[i].key, *value = &map->ptr[i].val;
        if (key->type == MSGPACK_OBJECT_STR && value->type == MSGPACK_OBJECT_STR &&
            slice_is_text(slice_of_string(key), "datatype"))
            return datatype_find(slice_of_string(value));
    }
    return DATATYPE_NONE;
}

static void print_key(FILE *out, const msgpack_object *key) {
    if (nests(key)) fputs("?", out); /* no message has such keys; a dead letter may */
    else print_scalar(out, key, DATATYPE_NONE);
}

static void print_array(
    FILE *out, const msgpack_object_array *items, int indent, enum datatype type);
static void print_map(FILE *out, const msgpack_object_map *map, int indent, enum datatype type);

/* A value after "key:" or "-", its line's end included. wire_check() bounds the depth. */
static void print_value(FILE *out, const msgpack_object *value, int indent, enum datatype type) {
    if (nests(value) && !is_list_of_scalars(value)) {
        bool is_map = value->type == MSGPACK_OBJECT_MAP;
        fprintf(out, "\n%*s", indent, "");
        if (is_map) print_map(out, &value->via.map, indent, type);
        else print_array(out, &value->via.array, indent, type);
        return;
    }
    fputc(' ', out);
    if (is_list_of_scalars(value)) print_list(out, &value->via.array);
    else print_scalar(out, value, type);
    fputc('\n', out);
}

/* A line or more an item; the first is indented already, as is a map's first key. */
static void print_array(
    FILE *out, const msgpack_object_array *items, int indent, enum datatype type) {
    for (uint32_t i = 0; i < items->size; i++) {
        const msgpack_object *item = &items->ptr[i];
        fprintf(out, "%*s-", i == 0 ? 0 : indent, "");
        if (item->type == MSGPACK_OBJECT_MAP && nests(item)) {
            fputc(' ', out);
            print_map(out, &item->via.map, indent + 2, type);
        } else {
            print_value(out, item, indent + 2, type);
        }
    }
}

/* A datatype holds for the data of its map, and for what is nested in it: init, writes. */
static void print_map(FILE *out, const msgpack_object_map *map, int indent, enum datatype type) {
    enum datatype own = datatype_of(map);
    for (uint32_t i = 0; i < map->size; i++) {
        fprintf(out, "%*s", i == 0 ? 0 : indent, "");
        print_key(out, &map->ptr[i].key);
        fputc(':', out);
        print_value(out, &map->ptr[i].val, indent + 2, own != DATATYPE_NONE ? own : type);
    }
}

static void print_root(FILE *out, const msgpack_object *root) {
    if (root->type == MSGPACK_OBJECT_MAP && nests(root))
        print_map(out, &root->via.map, 0, DATATYPE_NONE);
    else if (nests(root)) print_array(out, &root->via.array, 0, DATATYPE_NONE);
    else {
        print_scalar(out, root, DATATYPE_NONE);
        fputc('\n', out);
    }
}

void print_message_payload(struct slice payload, FILE *out) {
    size_t values, offset = 0;
    struct error err;
    msgpack_zone zone;
    msgpack_object root;
    if (wire_check(payload, &values, &err) != ERR_OK) {
        print_hex(out, payload);
        fprintf(out, "\n# no message: %s\n", err.message);
        return;
    }
    if (!msgpack_zone_init(&zone, values * sizeof root)) {
        fprintf(out, "# no memory for a message of %zu values\n", values);
        return;
    }
    if (msgpack_unpack((const char *)payload.data, payload.size, &offset, &zone, &root) ==
        MSGPACK_UNPACK_SUCCESS)
        print_root(out, &root);
    else fprintf(out, "# no memory for a message of %zu values\n", values);
    msgpack_zone_destroy(&zone);
}
