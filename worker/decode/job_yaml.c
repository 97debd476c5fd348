#include "decode/job_yaml.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <msgpack.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "decode/scalar.h"

/* What a node of the document stands for; `data` means something only inside these, and an id is
 * text even where it looks like a number. */
enum place {
    PLAIN,
    JOB,
    ID,
    BUFFERS,
    BUFFER,
    INIT,
    WRITES,
    WRITE,
    DATA,
    STEPS,
    STEP,
    ARGS,
    ARG,
    EACH /* one value for each instance: numbers under the name of their type */
};

static const struct {
    enum place place;
    const char *key; /* NULL: any key, and items of a sequence */
    enum place child;
} places[] = {
    {JOB, "id", ID},
    {JOB, "buffers", BUFFERS},
    {BUFFERS, NULL, BUFFER},
    {BUFFER, "data", DATA},
    {BUFFER, "init", INIT},
    {BUFFER, "writes", WRITES},
    {INIT, "data", DATA},
    {WRITES, NULL, WRITE},
    {WRITE, "data", DATA},
    {JOB, "steps", STEPS},
    {STEPS, NULL, STEP},
    {STEP, "args", ARGS},
    {ARGS, NULL, ARG},
    {ARG, "each", EACH},
};

static enum place place_of(enum place parent, const char *key) {
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (places[i].place == parent &&
            (places[i].key == NULL || (key != NULL && strcmp(places[i].key, key) == 0)))
            return places[i].child;
    return PLAIN;
}

struct encoder {
    const struct yaml_document *document;
    const char *folder;
    struct problems *problems;
    msgpack_sbuffer buffer;
    bool is_out_of_memory;
    msgpack_packer packer;
    uint64_t data_bytes; /* of the data packed last */
};

static int write_bytes(void *context, const char *bytes, size_t size) {
    struct encoder *encoder = context;
    if (!encoder->is_out_of_memory && msgpack_sbuffer_write(&encoder->buffer, bytes, size) != 0)
        encoder->is_out_of_memory = true;
    return encoder->is_out_of_memory ? -1 : 0;
}

static void pack_text(struct encoder *encoder, const char *text) {
    size_t size = strlen(text);
    msgpack_pack_str(&encoder->packer, size);
    msgpack_pack_str_body(&encoder->packer, text, size);
}

static void pack_scalar(struct encoder *encoder, const struct yaml_node *node) {
    msgpack_packer *packer = &encoder->packer;
    struct scalar scalar = scalar_of(node);
    switch (scalar.kind) {
    case SCALAR_NULL: msgpack_pack_nil(packer); break;
    case SCALAR_BOOL:
        if (scalar.boolean) msgpack_pack_true(packer);
        else msgpack_pack_false(packer);
        break;
    case SCALAR_UINT: msgpack_pack_uint64(packer, scalar.uint); break;
    case SCALAR_INT: msgpack_pack_int64(packer, scalar.integer); break;
    case SCALAR_FLOAT: msgpack_pack_double(packer, scalar.number); break;
    case SCALAR_TEXT: pack_text(encoder, node->text); break;
    case SCALAR_TOO_WIDE:
        yaml_problem(encoder->problems, encoder->document, node,
            "use a number that fits, or quotes for text", "%s does not fit into 64 bits",
            node->text);
        break;
    }
}

static void start_data(struct encoder *encoder, uint64_t bytes) {
    encoder->data_bytes = bytes;
    msgpack_pack_bin(&encoder->packer, (size_t)bytes);
}

/* Element types that people may write numbers of. */
enum element_kind { ELEMENT_FLOAT, ELEMENT_SIGNED, ELEMENT_UNSIGNED };

static const struct element {
    const char *name;
    enum element_kind kind;
    size_t bytes;
} elements[] = {
    {"f32", ELEMENT_FLOAT, 4},
    {"f64", ELEMENT_FLOAT, 8},
    {"i32", ELEMENT_SIGNED, 4},
    {"i64", ELEMENT_SIGNED, 8},
    {"u8", ELEMENT_UNSIGNED, 1},
    {"u32", ELEMENT_UNSIGNED, 4},
    {"u64", ELEMENT_UNSIGNED, 8},
};

/* NULL: there is none of that name. */
static const struct element *find_element(const char *name) {
    for (size_t i = 0; i < sizeof elements / sizeof *elements; i++)
        if (strcmp(name, elements[i].name) == 0) return &elements[i];
    return NULL;
}

static bool float_bits(const struct element *element, double number, uint64_t *bits) {
    if (element->bytes == sizeof number) {
        memcpy(bits, &number, sizeof number);
        return true;
    }
    float narrow = (float)number;
    uint32_t narrow_bits;
    memcpy(&narrow_bits, &narrow, sizeof narrow);
    *bits = narrow_bits;
    return !isinf(narrow) || isinf(number);
}

/* The bits of one number; false where the element cannot hold it. */
static bool element_bits(const struct element *element, struct scalar scalar, uint64_t *bits) {
    bool is_integer = scalar.kind == SCALAR_UINT || scalar.kind == SCALAR_INT;
    if (element->kind == ELEMENT_FLOAT)
        return (is_integer || scalar.kind == SCALAR_FLOAT) &&
               float_bits(element, scalar.number, bits);
    unsigned width = (unsigned)element->bytes * 8;
    uint64_t max = UINT64_MAX >> (64 - width);
    if (element->kind == ELEMENT_SIGNED) max >>= 1;
    if (scalar.kind == SCALAR_UINT) {
        *bits = scalar.uint;
        return scalar.uint <= max;
    }
    *bits = (uint64_t)scalar.integer;
    return scalar.kind == SCALAR_INT && element->kind == ELEMENT_SIGNED &&
           scalar.integer >= -(int64_t)max - 1;
}

static void pack_numbers(
    struct encoder *encoder, const struct element *element, const struct yaml_node *items) {
    if (items->kind != YAML_SEQUENCE) {
        yaml_problem(encoder->problems, encoder->document, items, "write the numbers as [1, 2]",
            "%s must be a list of numbers", element->name);
        return;
    }
    start_data(encoder, items->count * element->bytes);
    for (size_t i = 0; i < items->count; i++) {
        const struct yaml_node *item = items->values[i];
        uint64_t bits = 0;
        if (item->kind != YAML_SCALAR || !element_bits(element, scalar_of(item), &bits))
            yaml_problem(encoder->problems, encoder->document, item,
                "write a number that the type can hold", "%s is no %s",
                item->kind == YAML_SCALAR ? item->text : "this", element->name);
        char bytes[sizeof bits];
        for (size_t k = 0; k < element->bytes; k++) bytes[k] = (char)(bits >> 8 * k);
        msgpack_pack_bin_body(&encoder->packer, bytes, element->bytes);
    }
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

static void pack_hex(struct encoder *encoder, const struct yaml_node *node) {
    const char *text = node->kind == YAML_SCALAR ? node->text : "?";
    size_t length = strlen(text);
    if (length % 2 != 0 || text[strspn(text, "0123456789abcdefABCDEF")] != 0) {
        yaml_problem(encoder->problems, encoder->document, node,
            "write two hex digits for each byte, such as \"00ff\"", "hex has something else");
        return;
    }
    start_data(encoder, length / 2);
    for (size_t i = 0; i < length; i += 2) {
        char byte = (char)(hex_digit(text[i]) << 4 | hex_digit(text[i + 1]));
        msgpack_pack_bin_body(&encoder->packer, &byte, 1);
    }
}

static void pack_file(struct encoder *encoder, const struct yaml_node *node) {
    char path[PATH_MAX], *bytes = NULL;
    size_t size = 0;
    struct error err;
    const char *name = node->kind == YAML_SCALAR ? node->text : "";
    bool is_absolute = name[0] == '/';
    int length = snprintf(path, sizeof path, "%s%s%s", is_absolute ? "" : encoder->folder,
        is_absolute ? "" : "/", name);
    if (name[0] == 0 || length >= (int)sizeof path) {
        yaml_problem(encoder->problems, encoder->document, node, "name a file", "no file is named");
        return;
    }
    /* msgpack counts the bytes of one value in 32 bits */
    if (file_read(path, UINT32_MAX, &bytes, &size, &err) != ERR_OK) {
        yaml_problem(encoder->problems, encoder->document, node, err.fix, "%s", err.message);
        return;
    }
    start_data(encoder, size);
    msgpack_pack_bin_body(&encoder->packer, bytes, size);
    free(bytes);
}

static void pack_data(struct encoder *encoder, const struct yaml_node *node) {
    if (node->kind == YAML_MAPPING && node->count == 1) {
        const char *form = node->keys[0]->text;
        const struct yaml_node *value = node->values[0];
        if (strcmp(form, "hex") == 0) {
            pack_hex(encoder, value);
            return;
        }
        if (strcmp(form, "file") == 0) {
            pack_file(encoder, value);
            return;
        }
        const struct element *element = find_element(form);
        if (element != NULL) {
            pack_numbers(encoder, element, value);
            return;
        }
    }
    yaml_problem(encoder->problems, encoder->document, node,
        "write {f32: [..]} (or f64, i32, i64, u8, u32, u64), {hex: \"00ff\"} or {file: x.bin}",
        "data must be a map of one known form");
}

/* {f32: [..]} becomes {f32: <binary>}; {hex: ".."} and {file: ..} may stand for the numbers. */
static void pack_each(struct encoder *encoder, const struct yaml_node *node) {
    bool is_typed = node->kind == YAML_MAPPING && node->count == 1;
    const char *type = is_typed ? node->keys[0]->text : "";
    bool is_spelled = is_typed && node->values[0]->kind == YAML_MAPPING;
    msgpack_pack_map(&encoder->packer, 1);
    pack_text(encoder, type);
    if (!is_spelled && strcmp(type, "words") == 0)
        pack_numbers(encoder, find_element("u32"), node->values[0]);
    else pack_data(encoder, is_spelled ? node->values[0] : node);
}

/* How many instances the job has, as far as that is readable: 1 for a single job. */
static uint64_t count_instances(const struct encoder *encoder) {
    const struct yaml_node *count = yaml_get(yaml_root(encoder->document), "count");
    if (count == NULL || count->kind != YAML_SCALAR) return 1;
    struct scalar scalar = scalar_of(count);
    return scalar.kind == SCALAR_UINT && scalar.uint > 0 ? scalar.uint : 1;
}

static bool is_each(const struct yaml_node *buffer) {
    const struct yaml_node *each = yaml_get(buffer, "each");
    if (each == NULL || each->kind != YAML_SCALAR) return false;
    struct scalar scalar = scalar_of(each);
    return scalar.kind == SCALAR_BOOL && scalar.boolean;
}

static void pack_node(struct encoder *encoder, const struct yaml_node *node, enum place place);

static bool buffer_has_data(const struct yaml_node *buffer) {
    const struct yaml_node *init = yaml_get(buffer, "init");
    return yaml_get(buffer, "data") != NULL || (init != NULL && yaml_get(init, "data") != NULL);
}

static void pack_mapping(struct encoder *encoder, const struct yaml_node *node, enum place place) {
    bool lacks_version = place == JOB && yaml_get(node, "v") == NULL;
    bool lacks_bytes = place == BUFFER && yaml_get(node, "bytes") == NULL && buffer_has_data(node);
    uint64_t bytes = 0;
    msgpack_pack_map(&encoder->packer, node->count + lacks_version + lacks_bytes);
    if (lacks_version) {
        pack_text(encoder, "v");
        msgpack_pack_uint64(&encoder->packer, 1);
    }
    for (size_t i = 0; i < node->count; i++) {
        const char *key = node->keys[i]->text;
        enum place child = place_of(place, key);
        pack_text(encoder, key);
        pack_node(encoder, node->values[i], child);
        if (child == DATA || child == INIT) bytes = encoder->data_bytes;
    }
    if (lacks_bytes) {
        if (is_each(node)) bytes /= count_instances(encoder);
        pack_text(encoder, "bytes");
        msgpack_pack_uint64(&encoder->packer, bytes);
    }
}

/* As deep as the document, which yaml_parse() bounds. */
static void pack_node(struct encoder *encoder, const struct yaml_node *node, enum place place) {
    if (place == DATA) {
        pack_data(encoder, node);
    } else if (place == EACH) {
        pack_each(encoder, node);
    } else if (node->kind == YAML_SCALAR && place == ID) {
        pack_text(encoder, node->text);
    } else if (node->kind == YAML_SCALAR) {
        pack_scalar(encoder, node);
    } else if (node->kind == YAML_MAPPING) {
        pack_mapping(encoder, node, place);
    } else {
        msgpack_pack_array(&encoder->packer, node->count);
        for (size_t i = 0; i < node->count; i++)
            pack_node(encoder, node->values[i], place_of(place, NULL));
    }
}

enum err job_yaml_encode(const struct yaml_document *document, const char *folder,
    struct problems *problems, uint8_t **bytes, size_t *size, struct error *err) {
    struct encoder encoder = {.document = document, .folder = folder, .problems = problems};
    msgpack_sbuffer_init(&encoder.buffer);
    msgpack_packer_init(&encoder.packer, &encoder, write_bytes);
    pack_node(&encoder, yaml_root(document), JOB);
    enum err code = problems_check(problems, err);
    if (code == ERR_OK && encoder.is_out_of_memory)
        code = error_no_memory(err, "no memory for the message of %s", yaml_file(document));
    if (code != ERR_OK) {
        msgpack_sbuffer_destroy(&encoder.buffer);
        return code;
    }
    *bytes = (uint8_t *)encoder.buffer.data;
    *size = encoder.buffer.size;
    return ERR_OK;
}
