#include "broker/produce_request.h"

#include <stdlib.h>

#include "testing.h"

/* One message to partition 3 of "jobs", of version 7: with 61 bytes of records. */
static const uint8_t head[] = {0, 0, 0, 7, 0, 0, 0, 9, 0, 2, 'm', 'e', 0xff, 0xff, 0, 0, 0, 0, 0, 9,
    0, 0, 0, 1, 0, 4, 'j', 'o', 'b', 's', 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 61};
enum { ACKS_AT = 14, RECORDS_AT = sizeof head, REQUEST_BYTES = RECORDS_AT + 61 };

static void write_request(uint8_t ret[static REQUEST_BYTES]) {
    memset(ret, 0, REQUEST_BYTES);
    memcpy(ret, head, sizeof head);
    ret[RECORDS_AT + 16] = 2;
    ret[RECORDS_AT + 60] = 5;
}

TEST(a_request_says_what_it_appends_where) {
    uint8_t bytes[REQUEST_BYTES];
    struct produce_entries entries;
    struct produce_entry entry;
    size_t acks_at;
    write_request(bytes);
    assert_true(produce_read_request(slice_of(bytes, sizeof bytes), &entries, &acks_at));
    assert_int_equal(acks_at, ACKS_AT);
    assert_int_equal(produce_next(&entries, &entry), PRODUCE_ENTRY);
    assert_true(slice_is_text(entry.topic, "jobs"));
    assert_int_equal(entry.partition, 3);
    assert_int_equal(entry.bytes, 61);
    assert_int_equal(entry.messages, 5);
    assert_int_equal(produce_next(&entries, &entry), PRODUCE_END);
}

/* In a block of its own, so that a sanitizer sees what is read beyond it. */
static enum produce_next read_all(const uint8_t *bytes, size_t size) {
    struct produce_entries entries;
    struct produce_entry entry;
    size_t acks_at;
    enum produce_next next = PRODUCE_BROKEN;
    uint8_t *copy = malloc(size + 1);
    assert_non_null(copy);
    memcpy(copy, bytes, size);
    if (produce_read_request(slice_of(copy, size), &entries, &acks_at))
        while ((next = produce_next(&entries, &entry)) == PRODUCE_ENTRY) {
        }
    free(copy);
    return next;
}

TEST(a_request_that_is_cut_is_broken) {
    uint8_t bytes[REQUEST_BYTES];
    write_request(bytes);
    assert_int_equal(read_all(bytes, sizeof bytes), PRODUCE_END);
    for (size_t size = 0; size < sizeof bytes; size++)
        assert_int_equal(read_all(bytes, size), PRODUCE_BROKEN);
}

TEST(whatever_a_byte_says_nothing_is_read_beyond_the_end) {
    uint8_t bytes[REQUEST_BYTES];
    for (size_t at = 0; at < sizeof bytes; at++)
        for (unsigned value = 0; value < 256; value++) {
            write_request(bytes);
            bytes[at] = (uint8_t)value;
            (void)read_all(bytes, sizeof bytes);
        }
}

TEST(a_refusal_is_a_response_with_the_error_for_each_partition) {
    uint8_t bytes[REQUEST_BYTES];
    struct produce_entries request, response;
    struct produce_entry entry;
    size_t acks_at, size;
    char *written;
    write_request(bytes);
    for (int16_t version = 3; version <= PRODUCE_VERSION_MAX; version++) {
        bytes[3] = (uint8_t)version;
        FILE *file = open_memstream(&written, &size);
        assert_non_null(file);
        assert_true(produce_read_request(slice_of(bytes, sizeof bytes), &request, &acks_at));
        produce_write_refusal(request, 10, file);
        assert_int_equal(fclose(file), 0);
        assert_true(produce_read_response(slice_of(written, size), version, &response));
        assert_int_equal(response.number, 9);
        assert_int_equal(produce_next(&response, &entry), PRODUCE_ENTRY);
        assert_true(slice_is_text(entry.topic, "jobs"));
        assert_int_equal(entry.partition, 3);
        assert_int_equal(entry.code, 10);
        assert_int_equal(entry.first_offset, -1);
        assert_int_equal(produce_next(&response, &entry), PRODUCE_END);
        assert_int_equal(response.rest.size, 4); /* no throttling */
        free(written);
    }
}

RUN_TESTS(T(a_request_says_what_it_appends_where), T(a_request_that_is_cut_is_broken),
    T(whatever_a_byte_says_nothing_is_read_beyond_the_end),
    T(a_refusal_is_a_response_with_the_error_for_each_partition))
