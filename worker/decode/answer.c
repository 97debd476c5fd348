#include "decode/answer.h"

#include <endian.h>
#include <inttypes.h>
#include <string.h>

#include "base/wire.h"

/* What a result has besides its outputs; for each output and buffer a name. */
enum {
    REST_BYTES = 64 * 1024,
    NAMED_BYTES = 1024,
    REST_VALUES = 1024,
    NAMED_VALUES = 64,
    ROUNDS_BYTES = 4, /* of an instance of a long array; and one byte for what ended it */
};

/* What a job asks for. */
struct request {
    const struct wire_value *job, *buffers, *outputs;
    uint64_t count; /* of an array; 0: it is none */
    uint64_t rounds_max;
    bool is_long, has_until;
};

struct wanted {
    struct slice name, datatype;
    const struct wire_value *shape; /* of one instance; NULL: the result has none */
    uint64_t bytes;
};

static uint64_t uint_of(const struct wire_value *value, uint64_t otherwise) {
    return value != NULL && value->type == WIRE_UINT ? value->uint : otherwise;
}

static uint32_t count_of(const struct wire_value *value, enum wire_type type) {
    return value != NULL && value->type == type ? value->count : 0;
}

static struct request read_request(const struct wire_value *job) {
    bool has_until = wire_get(job, "until") != NULL;
    return (struct request){.job = job,
        .buffers = wire_get(job, "buffers"),
        .outputs = wire_get(job, "outputs"),
        .count = uint_of(wire_get(job, "count"), 0),
        .rounds_max = uint_of(wire_get(job, "repeat"), 0),
        .is_long =
            has_until || wire_get(job, "time_ms") != NULL || wire_get(job, "progress") != NULL,
        .has_until = has_until};
}

static struct wanted want(const struct request *request, const struct wire_value *output) {
    struct slice buffer_name = wire_text(wire_get(output, "buffer"));
    struct slice name = wire_text(wire_get(output, "as"));
    const struct wire_value *buffer = wire_find(request->buffers, buffer_name);
    uint64_t whole = uint_of(wire_get(buffer, "bytes"), 0);
    uint64_t offset = uint_of(wire_get(output, "offset"), 0);
    uint64_t bytes = uint_of(wire_get(output, "bytes"), offset < whole ? whole - offset : 0);
    struct wanted wanted = {.name = name.size > 0 ? name : buffer_name,
        .datatype = wire_text(wire_get(buffer, "datatype")),
        .shape = bytes == whole ? wire_get(buffer, "shape") : NULL};
    if (__builtin_mul_overflow(bytes, request->count > 0 ? request->count : 1, &wanted.bytes))
        wanted.bytes = UINT64_MAX; /* no worker takes such a job */
    return wanted;
}

static uint64_t add(uint64_t a, uint64_t b) {
    return __builtin_add_overflow(a, b, &a) ? UINT64_MAX : a;
}

/* The bytes and values that a result has at most. */
static void bound(const struct request *request, uint64_t *ret_bytes, uint64_t *ret_values) {
    uint32_t outputs = count_of(request->outputs, WIRE_ARRAY);
    uint64_t names = (uint64_t)outputs + count_of(request->buffers, WIRE_MAP);
    const struct wire_value *at = outputs > 0 ? request->outputs + 1 : NULL;
    *ret_bytes = REST_BYTES + NAMED_BYTES * names;
    *ret_values = REST_VALUES + NAMED_VALUES * names;
    for (uint32_t i = 0; i < outputs; i++, at = wire_next(at))
        *ret_bytes = add(*ret_bytes, want(request, at).bytes);
    if (request->is_long && request->count <= UINT32_MAX)
        *ret_bytes = add(*ret_bytes, (ROUNDS_BYTES + 1) * request->count);
}

static bool shape_fits(const struct request *request, const struct wire_value *wanted,
    const struct wire_value *found) {
    if (wanted == NULL || found == NULL) return wanted == found;
    uint32_t rank = count_of(wanted, WIRE_ARRAY), first = request->count > 0;
    if (found->type != WIRE_ARRAY || found->count != rank + first) return false;
    if (first > 0 && uint_of(found + 1, 0) != request->count) return false;
    for (uint32_t i = 0; i < rank; i++) {
        const struct wire_value *extent = found + 1 + first + i;
        if (extent->type != WIRE_UINT || extent->uint != uint_of(wanted + 1 + i, UINT64_MAX))
            return false;
    }
    return true;
}

static bool output_fits(
    const struct request *request, const struct wanted *wanted, const struct wire_value *found) {
    const struct wire_value *data = wire_get(found, "data");
    bool is_blob = data == NULL && wire_text(wire_get(found, "blob")).size > 0;
    bool is_data = data != NULL && data->type == WIRE_BINARY && data->count == wanted->bytes;
    return (is_blob || is_data) && slice_equal(wire_text(wire_get(found, "name")), wanted->name) &&
           slice_equal(wire_text(wire_get(found, "datatype")), wanted->datatype) &&
           shape_fits(request, wanted->shape, wire_get(found, "shape"));
}

static bool outputs_fit(const struct request *request, const struct wire_value *found) {
    uint32_t count = count_of(request->outputs, WIRE_ARRAY);
    if (count_of(found, WIRE_ARRAY) != count) return false;
    const struct wire_value *asked = count > 0 ? request->outputs + 1 : NULL, *at = found + 1;
    for (uint32_t i = 0; i < count; i++, asked = wire_next(asked), at = wire_next(at)) {
        struct wanted wanted = want(request, asked);
        if (!output_fits(request, &wanted, at)) return false;
    }
    return true;
}

static bool is_end(const struct request *request, struct slice name) {
    return (request->has_until && slice_is_text(name, "until")) || slice_is_text(name, "repeat") ||
           slice_is_text(name, "time") || slice_is_text(name, "stop");
}

static bool are_rounds(const struct request *request, uint64_t rounds) {
    return rounds >= 1 && rounds <= request->rounds_max;
}

/* Of every instance, one behind the other. */
static bool array_ends_fit(const struct request *request, const struct wire_value *rounds,
    const struct wire_value *ended) {
    const uint8_t first = request->has_until ? 1 : 2, last = 4;
    if (count_of(rounds, WIRE_BINARY) != ROUNDS_BYTES * request->count) return false;
    if (count_of(ended, WIRE_BINARY) != request->count) return false;
    for (uint32_t i = 0; i < ended->count; i++) {
        uint32_t number;
        memcpy(&number, rounds->bytes + ROUNDS_BYTES * (size_t)i, sizeof number);
        if (!are_rounds(request, le32toh(number))) return false;
        if (ended->bytes[i] < first || ended->bytes[i] > last) return false;
    }
    return true;
}

/* A result says how a long job ended, and of no other job. */
static bool ends_fit(const struct request *request, const struct wire_value *result, bool is_ok) {
    const struct wire_value *rounds = wire_get(result, "rounds");
    const struct wire_value *ended = wire_get(result, "ended");
    if (!request->is_long || !is_ok) return rounds == NULL && ended == NULL;
    if (request->count > 0) return array_ends_fit(request, rounds, ended);
    return are_rounds(request, uint_of(rounds, 0)) && is_end(request, wire_text(ended));
}

static enum err fail(struct error *err, const char *why) {
    return error_set(err, ERR_BAD_MESSAGE, 0, "see who else writes to the topic of results",
        "the answer does not fit the job: %s", why);
}

static enum err check(const struct request *request, const struct wire_value *result,
    bool *ret_is_ok, struct error *err) {
    struct slice status = wire_text(wire_get(result, "status"));
    const struct wire_value *outputs = wire_get(result, "outputs");
    const struct wire_value *error = wire_get(result, "error");
    bool is_error = slice_is_text(status, "error"), is_partial = slice_is_text(status, "partial");
    *ret_is_ok = slice_is_text(status, "ok");
    if (!*ret_is_ok && !is_error && !is_partial) return fail(err, "it has no status");
    if (*ret_is_ok != (wire_text(wire_get(error, "code")).size == 0))
        return fail(err, "its status and its error differ");
    if (outputs == NULL || outputs->type != WIRE_ARRAY) return fail(err, "it has no outputs");
    if (is_error ? outputs->count > 0 : !outputs_fit(request, outputs))
        return fail(err, "its outputs are others than the job asks for");
    if (!ends_fit(request, result, *ret_is_ok))
        return fail(err, "its rounds or its end are not those of such a job");
    return ERR_OK;
}

static enum err check_message(
    const struct request *request, struct slice message, bool *ret_is_ok, struct error *err) {
    uint64_t bytes_max, values_max;
    struct wire_values values;
    bound(request, &bytes_max, &values_max);
    if (message.size > bytes_max) return fail(err, "it is larger than what the job asks for");
    enum err code = wire_read(message, values_max, &values, err);
    if (code == ERR_TOO_LARGE) return fail(err, "it says more than what the job asks for");
    if (code != ERR_OK) return code;
    code = check(request, values.items, ret_is_ok, err);
    wire_values_fini(&values);
    return code;
}

enum err answer_check(struct slice job, struct slice result, bool *ret_is_ok, struct error *err) {
    struct wire_values values;
    enum err code = wire_read(job, SIZE_MAX, &values, err);
    if (code != ERR_OK) return code;
    const struct request request = read_request(values.items);
    code = check_message(&request, result, ret_is_ok, err);
    wire_values_fini(&values);
    return code;
}
