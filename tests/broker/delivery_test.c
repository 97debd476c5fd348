#include "broker/delivery.h"

#include <stdlib.h>

#include "testing.h"

TEST(a_delivery_is_a_copy_of_everything) {
    char payload[] = "payload", key[] = "key", name[] = "name", value[] = "value";
    struct header header = {slice_of(name, 4), slice_of(value, 5)};
    struct delivery message = {.position = {.topic = "jobs", .partition = 3, .offset = 7},
        .received_ns = 9,
        .payload = slice_of(payload, 7),
        .has_key = true,
        .key = slice_of(key, 3),
        .header_count = 1,
        .headers = &header};
    struct delivery *copy = delivery_create(&message);
    assert_non_null(copy);
    payload[0] = key[0] = name[0] = value[0] = 'X';
    header = (struct header){0};

    assert_true(slice_is_text(copy->payload, "payload"));
    assert_true(copy->has_key);
    assert_true(slice_is_text(copy->key, "key"));
    assert_int_equal(copy->header_count, 1);
    assert_true(slice_is_text(copy->headers[0].name, "name"));
    assert_true(slice_is_text(copy->headers[0].value, "value"));
    assert_int_equal(copy->position.partition, 3);
    assert_int_equal(copy->position.offset, 7);
    assert_int_equal(copy->received_ns, 9);
    assert_true(copy->held_bytes >= sizeof *copy + sizeof header + 7 + 3 + 4 + 5);
    delivery_destroy(copy);
}

static void count_end(void *lender) {
    ++*(int *)lender;
}

TEST(what_is_lent_stays_where_it_is_until_it_is_kept) {
    char payload[] = "payload", key[] = "key", name[] = "name", value[] = "value";
    struct header header = {slice_of(name, 4), slice_of(value, 5)};
    const struct delivery message = {.payload = slice_of(payload, 7),
        .key = slice_of(key, 3),
        .header_count = 1,
        .headers = &header};
    int ends = 0;
    struct delivery *lent =
        delivery_lend(&message, (struct loan){.end = count_end, .lender = &ends});
    assert_non_null(lent);
    assert_ptr_equal(lent->payload.data, payload);
    assert_ptr_equal(lent->headers[0].name.data, name);
    assert_ptr_not_equal(lent->headers, &header);
    size_t held_bytes = lent->held_bytes;
    assert_int_equal(ends, 0);

    assert_true(delivery_keep(lent));
    assert_int_equal(ends, 1);
    payload[0] = key[0] = name[0] = value[0] = 'X';
    assert_true(slice_is_text(lent->payload, "payload"));
    assert_true(slice_is_text(lent->key, "key"));
    assert_true(slice_is_text(lent->headers[0].name, "name"));
    assert_true(slice_is_text(lent->headers[0].value, "value"));
    assert_int_equal(lent->held_bytes, held_bytes);
    assert_true(delivery_keep(lent));
    delivery_destroy(lent);
    assert_int_equal(ends, 1);
}

TEST(what_is_lent_or_kept_moves_into_memory_of_the_callers) {
    struct header header = {slice_of_text("name"), slice_of_text("value")};
    const struct delivery message = {.payload = slice_of_text("payload"),
        .has_key = true,
        .key = slice_of_text("key"),
        .header_count = 1,
        .headers = &header};
    for (int is_kept = 0; is_kept < 2; is_kept++) {
        int ends = 0;
        struct delivery *delivery =
            delivery_lend(&message, (struct loan){.end = count_end, .lender = &ends});
        assert_non_null(delivery);
        if (is_kept) assert_true(delivery_keep(delivery));
        size_t room = delivery_room(delivery), texts = is_kept ? 0 : strlen("payloadkeynamevalue");
        assert_int_equal(room, sizeof *delivery + sizeof header + texts);
        void *memory = malloc(room); /* in which a sanitizer minds every byte */
        struct delivery *moved = delivery_move(delivery, memory);
        assert_ptr_equal(moved, memory);
        assert_int_equal(ends, 1);
        assert_true(slice_is_text(moved->payload, "payload"));
        assert_ptr_not_equal(moved->payload.data, message.payload.data);
        assert_true(slice_is_text(moved->key, "key"));
        assert_ptr_equal(moved->headers, moved + 1);
        assert_true(slice_is_text(moved->headers[0].name, "name"));
        assert_true(slice_is_text(moved->headers[0].value, "value"));
        delivery_destroy(moved);
        free(memory);
        assert_int_equal(ends, 1);
    }
}

TEST(a_large_message_may_stay_where_little_else_is_held_for_it) {
    static const struct {
        size_t bytes, holds_bytes;
        bool may_stay;
    } cases[] = {
        {8 << 20, 10 << 20, true},
        {8 << 20, (10 << 20) + 1, false},
        {8 << 20, SIZE_MAX, false},
        {1 << 20, 0, true},
        {(1 << 20) - 1, 0, false},
    };
    static uint8_t payload[8 << 20];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct delivery message = {.payload = slice_of(payload, cases[i].bytes)};
        const struct loan loan = {.holds_bytes = cases[i].holds_bytes};
        struct delivery *delivery = delivery_lend(&message, loan);
        assert_non_null(delivery);
        assert_int_equal(cases[i].may_stay, delivery_may_stay(delivery));
        delivery_destroy(delivery);
    }
}

TEST(a_loan_ends_with_its_delivery) {
    int ends = 0;
    const struct loan loan = {.end = count_end, .lender = &ends};
    delivery_destroy(delivery_lend(&(struct delivery){0}, loan));
    assert_int_equal(ends, 1);
    struct delivery many = {.header_count = SIZE_MAX / 8};
    assert_null(delivery_lend(&many, loan));
    assert_int_equal(ends, 1);
}

TEST(an_empty_message_can_be_copied) {
    struct delivery *copy = delivery_create(&(struct delivery){0});
    assert_non_null(copy);
    assert_int_equal(copy->payload.size, 0);
    assert_false(copy->has_key);
    delivery_destroy(copy);
    delivery_destroy(NULL);
}

TEST(sizes_that_cannot_be_are_refused) {
    struct delivery huge = {.payload = {.data = NULL, .size = SIZE_MAX - 8}};
    assert_null(delivery_create(&huge));
    struct delivery many = {.header_count = SIZE_MAX / 8};
    assert_null(delivery_create(&many));
}

TEST(the_last_header_of_a_name_counts) {
    struct header headers[] = {{slice_of_text("a"), slice_of_text("1")},
        {slice_of_text("b"), slice_of_text("2")}, {slice_of_text("a"), slice_of_text("3")}};
    struct delivery message = {.header_count = 3, .headers = headers};
    struct slice value;
    assert_true(delivery_header(&message, "a", &value));
    assert_true(slice_is_text(value, "3"));
    assert_true(delivery_header(&message, "b", &value));
    assert_true(slice_is_text(value, "2"));
    assert_false(delivery_header(&message, "c", &value));
}

RUN_TESTS(T(what_is_lent_stays_where_it_is_until_it_is_kept),
    T(what_is_lent_or_kept_moves_into_memory_of_the_callers),
    T(a_large_message_may_stay_where_little_else_is_held_for_it), T(a_loan_ends_with_its_delivery),
    T(a_delivery_is_a_copy_of_everything), T(an_empty_message_can_be_copied),
    T(sizes_that_cannot_be_are_refused), T(the_last_header_of_a_name_counts))
