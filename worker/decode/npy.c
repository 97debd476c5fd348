#include "decode/npy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/wire.h"
#include "job/datatype.h"

enum { HEADER_SIZE = 1024, ALIGNMENT = 64, RANK_MAX = 32 };

static const char *const descriptions[] = {
    [DATATYPE_NONE] = "|u1",
    [DATATYPE_BOOL] = "|b1",
    [DATATYPE_UINT8] = "|u1",
    [DATATYPE_UINT16] = "<u2",
    [DATATYPE_UINT32] = "<u4",
    [DATATYPE_UINT64] = "<u8",
    [DATATYPE_INT8] = "|i1",
    [DATATYPE_INT16] = "<i2",
    [DATATYPE_INT32] = "<i4",
    [DATATYPE_INT64] = "<i8",
    [DATATYPE_FP16] = "<f2",
    [DATATYPE_BF16] = "<u2",
    [DATATYPE_FP32] = "<f4",
    [DATATYPE_FP64] = "<f8",
};

/* `name` of size 0: the only output. */
static const struct wire_value *find(const struct wire_value *outputs, struct slice name) {
    const struct wire_value *at = outputs + 1, *found = NULL;
    if (name.size == 0) return outputs->count == 1 ? at : NULL;
    for (uint32_t i = 0; i < outputs->count && found == NULL; i++, at = wire_next(at))
        if (slice_equal(wire_text(wire_get(at, "name")), name)) found = at;
    return found;
}

/* "3, 4, "; false if the shape does not fit the number of elements. */
static bool write_shape(
    const struct wire_value *shape, uint64_t elements, char *text, size_t size) {
    uint64_t product = 1;
    size_t used = 0;
    if (shape == NULL || shape->type != WIRE_ARRAY || shape->count > RANK_MAX) return false;
    text[0] = 0;
    for (uint32_t i = 0; i < shape->count; i++) {
        const struct wire_value *extent = shape + 1 + i;
        if (extent->type != WIRE_UINT || __builtin_mul_overflow(product, extent->uint, &product))
            return false;
        used += (size_t)snprintf(text + used, size - used, "%" PRIu64 ", ", extent->uint);
    }
    return product == elements;
}

static enum err write_array(
    const char *path, const struct wire_value *output, struct slice data, struct error *err) {
    enum datatype type = datatype_find(wire_text(wire_get(output, "datatype")));
    size_t width = type == DATATYPE_NONE ? 1 : datatype_bytes(type);
    char shape[RANK_MAX * 24], header[HEADER_SIZE];
    if (!write_shape(wire_get(output, "shape"), data.size / width, shape, sizeof shape))
        snprintf(shape, sizeof shape, "%zu, ", data.size / width);
    int used = snprintf(header, sizeof header,
        "\x93NUMPY\x01%c--{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", 0,
        descriptions[type], shape);
    size_t whole = ((size_t)used + 1 + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    memset(header + used, ' ', whole - (size_t)used);
    header[whole - 1] = '\n';
    header[8] = (char)((whole - 10) & 0xff);
    header[9] = (char)((whole - 10) >> 8);
    FILE *out = fopen(path, "we");
    bool is_written = out != NULL && fwrite(header, 1, whole, out) == whole &&
                      fwrite(data.data, 1, data.size, out) == data.size;
    if (out != NULL && fclose(out) != 0) is_written = false;
    if (is_written) return ERR_OK;
    return error_set(err, ERR_IO, errno, "name a file in a folder that can be written", "%s: %s",
        path, strerror(errno));
}

static enum err write_one(const struct wire_value *outputs, const char *option, struct error *err) {
    const char *equals = strchr(option, '=');
    struct slice name = slice_of(option, equals != NULL ? (size_t)(equals - option) : 0);
    const char *path = equals != NULL ? equals + 1 : option;
    const struct wire_value *output = find(outputs, name);
    if (output == NULL && equals == NULL)
        return error_set(err, ERR_CONFIG, 0, "say which output: --out NAME=FILE",
            "the job has %" PRIu32 " outputs", outputs->count);
    if (output == NULL)
        return error_set(err, ERR_CONFIG, 0, "name one of the result's outputs",
            "the job has no output '%.*s'", (int)name.size, (const char *)name.data);
    const struct wire_value *data = wire_get(output, "data");
    if (data == NULL || data->type != WIRE_BINARY)
        return error_set(err, ERR_CONFIG, 0,
            "fetch the digest that the result names, or raise results.inline_max_bytes",
            "%s: the output is in the blob store", path);
    return write_array(path, output, wire_slice(data), err);
}

enum err npy_write(struct slice result, const char *const *files, size_t count, struct error *err) {
    struct wire_values values;
    enum err code = wire_read(result, SIZE_MAX, &values, err);
    if (code != ERR_OK) return code;
    const struct wire_value *outputs = wire_get(values.items, "outputs");
    if (outputs == NULL || outputs->type != WIRE_ARRAY)
        code = error_set(err, ERR_CONFIG, 0, "see the error above", "the job has no outputs");
    for (size_t i = 0; code == ERR_OK && i < count; i++) code = write_one(outputs, files[i], err);
    wire_values_fini(&values);
    return code;
}
