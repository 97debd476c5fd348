#include "bench/message_loop.h"

#include "base/writer.h"

/* --- the job --- */

/* The rest of a message. Once it is not what was expected, nothing is taken any more. */
struct cursor {
    struct slice left;
    bool is_broken;
};

static struct slice take(struct cursor *cursor, size_t size) {
    struct slice ret = {0};
    if (cursor->is_broken || !slice_take(&cursor->left, size, &ret)) cursor->is_broken = true;
    return ret;
}

/* 0 if the message ends here. */
static uint8_t take_byte(struct cursor *cursor) {
    const struct slice byte = take(cursor, 1);
    return byte.size > 0 ? byte.data[0] : 0;
}

static uint64_t take_big_endian(struct cursor *cursor, size_t size) {
    const struct slice bytes = take(cursor, size);
    uint64_t value = 0;
    for (size_t i = 0; i < bytes.size; i++) value = value << 8 | bytes.data[i];
    return value;
}

/* How msgpack writes a count, or an unsigned number: in the low bits of a first byte, those that
 * `mask` leaves; or in the 1, 2, 4 or 8 bytes after it. */
struct format {
    uint8_t fixed, mask;
    uint8_t first, last; /* of these each has twice the bytes of the one before */
    uint8_t first_size;
};
static const struct format a_map = {0x80, 0xf0, 0xde, 0xdf, 2},
                           an_array = {0x90, 0xf0, 0xdc, 0xdd, 2},
                           a_text = {0xa0, 0xe0, 0xd9, 0xdb, 1},
                           a_number = {0x00, 0x80, 0xcc, 0xcf, 1},
                           binary = {0x01, 0x00 /* no such byte */, 0xc4, 0xc6, 1};

static uint64_t take_count(struct cursor *cursor, struct format format) {
    uint8_t head = take_byte(cursor);
    if ((head & format.mask) == format.fixed) return head & (uint8_t)~format.mask;
    if (head >= format.first && head <= format.last)
        return take_big_endian(cursor, (size_t)format.first_size << (head - format.first));
    cursor->is_broken = true;
    return 0;
}

static struct slice take_bytes(struct cursor *cursor, struct format format) {
    return take(cursor, (size_t)take_count(cursor, format));
}

static void expect_text(struct cursor *cursor, const char *text) {
    if (!slice_is_text(take_bytes(cursor, a_text), text)) cursor->is_broken = true;
}

static void expect_number(struct cursor *cursor, uint64_t number) {
    if (take_count(cursor, a_number) != number) cursor->is_broken = true;
}

/* {data: ..., bytes: ...}, or {bytes: ...}, which has none. */
static struct slice take_buffer(struct cursor *cursor, uint64_t bytes) {
    struct slice data = {0};
    for (uint64_t i = take_count(cursor, a_map); i > 0 && !cursor->is_broken; i--) {
        const struct slice key = take_bytes(cursor, a_text);
        if (slice_is_text(key, "data")) data = take_bytes(cursor, binary);
        else if (slice_is_text(key, "bytes")) expect_number(cursor, bytes);
        else cursor->is_broken = true;
    }
    if (data.size > 0 && data.size != bytes) cursor->is_broken = true;
    return data;
}

static void take_buffers(struct cursor *cursor, uint64_t bytes, struct message_loop_job *job) {
    for (uint64_t i = take_count(cursor, a_map); i > 0 && !cursor->is_broken; i--) {
        const struct slice name = take_bytes(cursor, a_text), data = take_buffer(cursor, bytes);
        if (slice_is_text(name, "x")) job->x = data;
        else if (slice_is_text(name, "y")) job->y = data;
        else if (!slice_is_text(name, "z") || data.size > 0) cursor->is_broken = true;
    }
}

static void take_arguments(struct cursor *cursor, uint64_t elements) {
    if (take_count(cursor, an_array) != 4) cursor->is_broken = true;
    expect_text(cursor, "x");
    expect_text(cursor, "y");
    expect_text(cursor, "z");
    if (take_count(cursor, a_map) != 1) cursor->is_broken = true;
    expect_text(cursor, "u32");
    expect_number(cursor, elements);
}

static void take_steps(struct cursor *cursor, uint64_t elements) {
    if (take_count(cursor, an_array) != 1) cursor->is_broken = true;
    for (uint64_t i = take_count(cursor, a_map); i > 0 && !cursor->is_broken; i--) {
        const struct slice key = take_bytes(cursor, a_text);
        if (slice_is_text(key, "program")) expect_text(cursor, "bench");
        else if (slice_is_text(key, "entry")) expect_text(cursor, "add_coalesced");
        else if (slice_is_text(key, "args")) take_arguments(cursor, elements);
        else if (slice_is_text(key, "elements")) expect_number(cursor, elements);
        else cursor->is_broken = true;
    }
}

static void take_outputs(struct cursor *cursor) {
    if (take_count(cursor, an_array) != 1 || take_count(cursor, a_map) != 1)
        cursor->is_broken = true;
    expect_text(cursor, "buffer");
    expect_text(cursor, "z");
}

bool message_loop_read(struct slice message, uint64_t buffer_bytes, struct message_loop_job *ret) {
    struct cursor cursor = {.left = message};
    *ret = (struct message_loop_job){0};
    for (uint64_t i = take_count(&cursor, a_map); i > 0 && !cursor.is_broken; i--) {
        const struct slice key = take_bytes(&cursor, a_text);
        if (slice_is_text(key, "v")) expect_number(&cursor, 1);
        else if (slice_is_text(key, "id")) ret->id = take_bytes(&cursor, a_text);
        else if (slice_is_text(key, "buffers")) take_buffers(&cursor, buffer_bytes, ret);
        else if (slice_is_text(key, "steps")) take_steps(&cursor, buffer_bytes / sizeof(float));
        else if (slice_is_text(key, "outputs")) take_outputs(&cursor);
        else cursor.is_broken = true;
    }
    return !cursor.is_broken && cursor.left.size == 0 && ret->id.size > 0 && ret->x.size > 0 &&
           ret->y.size > 0;
}

/* --- its result --- */

static void write_telemetry(struct writer *writer, uint64_t number) {
    write_key(writer, "telemetry");
    write_map(writer, 15);
    write_number(writer, "h2d_bytes", number);
    write_number(writer, "d2h_bytes", number);
    write_number(writer, "param_bytes", number);
    write_number(writer, "kernel_launches", number);
    write_number(writer, "static_hits", number);
    write_number(writer, "static_misses", number);
    write_number(writer, "static_bytes_saved", number);
    write_number(writer, "queue_ns", number);
    write_number(writer, "decode_ns", number);
    write_number(writer, "prepare_ns", number);
    write_number(writer, "stage_ns", number);
    write_number(writer, "enqueue_ns", number);
    write_number(writer, "wait_ns", number);
    write_number(writer, "wall_ns", number);
    write_key(writer, "batch");
    write_map(writer, 8);
    write_number(writer, "id", number);
    write_number(writer, "jobs", number);
    write_number(writer, "copies", number);
    write_number(writer, "h2d_bytes", number);
    write_number(writer, "d2h_bytes", number);
    write_number(writer, "launches", number);
    write_number(writer, "coalesced_launches", number);
    write_number(writer, "sync_points", number);
}

static void write_source_and_worker(struct writer *writer, uint64_t number) {
    write_key(writer, "source");
    write_map(writer, 3);
    write_key(writer, "topic");
    write_text(writer, "bench");
    write_number(writer, "partition", 0);
    write_number(writer, "offset", number);
    write_key(writer, "worker");
    write_map(writer, 3);
    write_key(writer, "host");
    write_text(writer, "host-1.example");
    write_key(writer, "device");
    write_text(writer, "CPU driver device 0");
    write_key(writer, "version");
    write_text(writer, "0.1.0");
}

size_t message_loop_write(const struct message_loop_job *job, struct slice z, uint64_t number,
    uint8_t *room, size_t max) {
    struct writer writer = {.next = room, .left = max};
    write_map(&writer, 7);
    write_number(&writer, "v", 1);
    write_key(&writer, "id");
    write_slice(&writer, job->id);
    write_key(&writer, "status");
    write_text(&writer, "ok");
    write_key(&writer, "outputs");
    write_array(&writer, 1);
    write_map(&writer, 2);
    write_key(&writer, "name");
    write_text(&writer, "z");
    write_key(&writer, "data");
    write_bin(&writer, z.size);
    write_bin_body(&writer, z.data, z.size);
    write_telemetry(&writer, number);
    write_source_and_worker(&writer, number);
    return writer.is_over ? 0 : max - writer.left;
}

bool message_loop_is_right(const struct message_loop_job *job, struct slice z) {
    for (size_t at = 0; at < z.size; at += sizeof(float)) {
        float x, y, sum;
        memcpy(&x, job->x.data + at, sizeof x);
        memcpy(&y, job->y.data + at, sizeof y);
        memcpy(&sum, z.data + at, sizeof sum);
        if (sum != x + y) return false;
    }
    return true;
}
