#include "base/wire.h"

#include "testing.h"

/* The bytes of a string literal, which may hold NULs. */
#define BYTES(literal) slice_of("" literal, sizeof literal - 1)

static struct error err;

static enum wire_state scan(struct slice bytes) {
    size_t size;
    return wire_scan(bytes, &size, &err);
}

TEST(scan_finds_the_end_of_each_format) {
    const struct slice wholes[] = {
        BYTES("\x00"),
        BYTES("\x7f"),
        BYTES("\xe0"),
        BYTES("\xff"),
        BYTES("\xc0"),
        BYTES("\xc2"),
        BYTES("\xc3"),
        BYTES("\xc4\x02zz"),
        BYTES("\xc5\x00\x02zz"),
        BYTES("\xc6\x00\x00\x00\x02zz"),
        BYTES("\xca...."),
        BYTES("\xcb........"),
        BYTES("\xcc."),
        BYTES("\xcd.."),
        BYTES("\xce...."),
        BYTES("\xcf........"),
        BYTES("\xd0."),
        BYTES("\xd1.."),
        BYTES("\xd2...."),
        BYTES("\xd3........"),
        BYTES("\xa0"),
        BYTES("\xa2zz"),
        BYTES("\xd9\x02zz"),
        BYTES("\xda\x00\x02zz"),
        BYTES("\xdb\x00\x00\x00\x02zz"),
        BYTES("\x90"),
        BYTES("\x92\x01\x91\x02"),
        BYTES("\xdc\x00\x02\x01\x02"),
        BYTES("\xdd\x00\x00\x00\x02\x01\x02"),
        BYTES("\x80"),
        BYTES("\x81\xa1k\x01"),
        BYTES("\xde\x00\x01\x01\x02"),
        BYTES("\xdf\x00\x00\x00\x01\x01\x02"),
    };
    for (size_t i = 0; i < sizeof wholes / sizeof *wholes; i++) {
        struct slice whole = wholes[i];
        uint8_t followed[16];
        memcpy(followed, whole.data, whole.size);
        followed[whole.size] = 0x01;
        size_t size = 0;
        assert_int_equal(wire_scan(slice_of(followed, whole.size + 1), &size, &err), WIRE_COMPLETE);
        assert_int_equal(size, whole.size);
        for (size_t shorter = 0; shorter < whole.size; shorter++) {
            assert_int_equal(wire_scan(slice_of(whole.data, shorter), &size, &err), WIRE_CUT);
            assert_in_range(size, shorter + 1, whole.size);
        }
    }
}

TEST(scan_of_a_cut_value_says_how_many_bytes_it_has_at_least) {
    const struct {
        struct slice bytes;
        size_t least;
    } cuts[] = {{BYTES(""), 1}, {BYTES("\xc6\x00\x10"), 4},
        {BYTES("\xc6\x00\x10\x00\x00zz"), 5 + (1 << 20)},
        {BYTES("\x92\xdb\x00\x00\x01\x00zz"), 6 + 256}, {BYTES("\x93\x01"), 4},
        {BYTES("\x82\x01"), 5}, {BYTES("\xdf\xff\xff\xff\xff"), 5 + 2 * 0xffffffffull}};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        size_t size = 0;
        assert_int_equal(wire_scan(cuts[i].bytes, &size, &err), WIRE_CUT);
        assert_int_equal(size, cuts[i].least);
    }
}

TEST(scan_is_broken_by_ext_types_and_the_unused_byte) {
    assert_int_equal(scan(BYTES("\xc1")), WIRE_BROKEN);
    for (uint8_t first = 0xc7; first <= 0xc9; first++)
        assert_int_equal(scan(slice_of((uint8_t[8]){first, 0, 0, 0, 0, 1}, 8)), WIRE_BROKEN);
    for (uint8_t first = 0xd4; first <= 0xd8; first++)
        assert_int_equal(scan(slice_of((uint8_t[20]){first, 1}, 20)), WIRE_BROKEN);
    assert_int_equal(scan(BYTES("\x92\x01\xc1")), WIRE_BROKEN);
    assert_non_null(strstr(err.message, "at byte 2"));
}

TEST(scan_does_not_believe_a_count_that_the_bytes_cannot_cover) {
    assert_int_equal(scan(BYTES("\xdd\xff\xff\xff\xff")), WIRE_CUT);
    assert_int_equal(scan(BYTES("\xdf\xff\xff\xff\xff")), WIRE_CUT);
    assert_int_equal(scan(BYTES("\xdb\xff\xff\xff\xff")), WIRE_CUT);
    assert_int_equal(scan(BYTES("\xc6\xff\xff\xff\xff")), WIRE_CUT);
    assert_int_equal(scan(BYTES("\x82\x01\x02\x03")), WIRE_CUT);
    /* an inner array may not count the bytes that an outer one still waits for */
    assert_int_equal(scan(BYTES("\x93\x93\x01\x02\x03\x04")), WIRE_CUT);
}

TEST(scan_stops_below_sixteen_levels) {
    uint8_t nested[64];
    memset(nested, 0x91, sizeof nested);
    nested[WIRE_DEPTH_MAX] = 0xc0;
    size_t size = 0;
    assert_int_equal(wire_scan(slice_of(nested, sizeof nested), &size, &err), WIRE_COMPLETE);
    assert_int_equal(size, WIRE_DEPTH_MAX + 1);
    nested[WIRE_DEPTH_MAX] = 0x90;
    assert_int_equal(scan(slice_of(nested, sizeof nested)), WIRE_BROKEN);
    assert_non_null(strstr(err.message, "deeper"));
}

TEST(check_counts_a_value_and_all_nested_ones) {
    size_t values = 0;
    assert_int_equal(wire_check(BYTES("\x07"), &values, &err), ERR_OK);
    assert_int_equal(values, 1);
    /* {"k": [1, 2], "l": {}} */
    assert_int_equal(wire_check(BYTES("\x82\xa1k\x92\x01\x02\xa1l\x80"), &values, &err), ERR_OK);
    assert_int_equal(values, 7);
}

TEST(check_refuses_nothing_and_bytes_that_follow) {
    size_t values;
    assert_int_equal(wire_check(BYTES(""), &values, &err), ERR_BAD_MESSAGE);
    assert_int_equal(wire_check(BYTES("\x01\x02\x03"), &values, &err), ERR_BAD_MESSAGE);
    assert_non_null(strstr(err.message, "2 more bytes"));
}

static const struct wire_value *read_one(struct wire_values *values, struct slice bytes) {
    assert_int_equal(wire_read(bytes, SIZE_MAX, values, &err), ERR_OK);
    assert_int_equal(values->count, 1);
    return values->items;
}

TEST(each_format_is_read_as_its_value) {
    struct wire_values values;
    const struct {
        struct slice bytes;
        uint64_t value;
    } uints[] = {{BYTES("\x00"), 0}, {BYTES("\x7f"), 127}, {BYTES("\xcc\xff"), 255},
        {BYTES("\xcd\x01\x02"), 0x102}, {BYTES("\xce\x01\x02\x03\x04"), 0x1020304},
        {BYTES("\xcf\xff\xff\xff\xff\xff\xff\xff\xfe"), UINT64_MAX - 1}, {BYTES("\xd0\x7f"), 127},
        {BYTES("\xd3\0\0\0\0\0\0\0\0"), 0}};
    for (size_t i = 0; i < sizeof uints / sizeof *uints; i++) {
        const struct wire_value *value = read_one(&values, uints[i].bytes);
        assert_int_equal(value->type, WIRE_UINT);
        assert_true(value->uint == uints[i].value);
    }
    const struct {
        struct slice bytes;
        int64_t value;
    } ints[] = {{BYTES("\xff"), -1}, {BYTES("\xe0"), -32}, {BYTES("\xd0\x80"), -128},
        {BYTES("\xd1\xff\x7f"), -129}, {BYTES("\xd2\x80\0\0\0"), INT32_MIN},
        {BYTES("\xd3\x80\0\0\0\0\0\0\0"), INT64_MIN}};
    for (size_t i = 0; i < sizeof ints / sizeof *ints; i++) {
        const struct wire_value *value = read_one(&values, ints[i].bytes);
        assert_int_equal(value->type, WIRE_INT);
        assert_true(value->integer == ints[i].value);
    }
    assert_int_equal(read_one(&values, BYTES("\xc0"))->type, WIRE_NIL);
    assert_false(read_one(&values, BYTES("\xc2"))->boolean);
    assert_true(read_one(&values, BYTES("\xc3"))->boolean);
    assert_true(read_one(&values, BYTES("\xca\xbf\xc0\0\0"))->number == -1.5);
    assert_true(read_one(&values, BYTES("\xcb\x3f\xf8\0\0\0\0\0\0"))->number == 1.5);
    assert_true(slice_is_text(wire_slice(read_one(&values, BYTES("\xa2zy"))), "zy"));
    assert_true(slice_is_text(wire_slice(read_one(&values, BYTES("\xda\0\x02zy"))), "zy"));
    assert_int_equal(values.items->type, WIRE_TEXT);
    assert_true(slice_is_text(wire_slice(read_one(&values, BYTES("\xc4\x02zy"))), "zy"));
    assert_int_equal(values.items->type, WIRE_BINARY);
}

TEST(what_is_nested_is_passed_over_in_one_step) {
    /* {"k": [1, {}, [2]], "l": nil} */
    struct wire_values values;
    struct slice bytes = BYTES("\x82\xa1k\x93\x01\x80\x91\x02\xa1l\xc0");
    assert_int_equal(wire_read(bytes, 9, &values, &err), ERR_OK);
    assert_int_equal(values.count, 9);
    const struct wire_value *root = values.items, *key = root + 1, *list = wire_next(key);
    assert_int_equal(root->count, 2);
    assert_ptr_equal(wire_next(root), root + 9);
    assert_int_equal(list->type, WIRE_ARRAY);
    assert_int_equal(list->count, 3);
    const struct wire_value *item = wire_next(list + 1);
    assert_int_equal(item->type, WIRE_MAP);
    assert_int_equal(item->count, 0);
    assert_int_equal((wire_next(item) + 1)->uint, 2);
    assert_true(slice_is_text(wire_slice(wire_next(list)), "l"));
    assert_int_equal(wire_next(wire_next(list))->type, WIRE_NIL);
    wire_values_fini(&values);
}

/* An array of `count` nils, of fewer than 2^16. */
static struct slice nils(uint8_t *into, size_t count) {
    memset(into, 0xc0, 3 + count);
    into[0] = 0xdc;
    into[1] = (uint8_t)(count >> 8);
    into[2] = (uint8_t)count;
    return slice_of(into, 3 + count);
}

TEST(values_beyond_those_at_hand_are_read_as_well) {
    uint8_t bytes[3 + 2 * WIRE_VALUES_AT_HAND];
    for (size_t count = WIRE_VALUES_AT_HAND - 2; count < 2 * WIRE_VALUES_AT_HAND; count++) {
        struct wire_values values;
        assert_int_equal(wire_read(nils(bytes, count), SIZE_MAX, &values, &err), ERR_OK);
        assert_int_equal(values.count, count + 1);
        assert_ptr_equal(wire_next(values.items), values.items + count + 1);
        for (size_t i = 1; i <= count; i++) assert_int_equal(values.items[i].type, WIRE_NIL);
        wire_values_fini(&values);
    }
}

TEST(more_values_than_are_allowed_are_counted_and_not_read) {
    uint8_t bytes[3 + 2 * WIRE_VALUES_AT_HAND];
    for (size_t count = 1; count < 2 * WIRE_VALUES_AT_HAND; count++) {
        struct wire_values values;
        assert_int_equal(wire_read(nils(bytes, count), count, &values, &err), ERR_TOO_LARGE);
        assert_int_equal(values.count, count + 1);
    }
}

TEST(reading_refuses_what_checking_refuses) {
    struct wire_values values;
    assert_int_equal(wire_read(BYTES(""), 9, &values, &err), ERR_BAD_MESSAGE);
    assert_int_equal(wire_read(BYTES("\x92\x01"), 9, &values, &err), ERR_BAD_MESSAGE);
    assert_int_equal(wire_read(BYTES("\x92\x01\xc1"), 9, &values, &err), ERR_BAD_MESSAGE);
    assert_int_equal(wire_read(BYTES("\xd4\x01\x01"), 9, &values, &err), ERR_BAD_MESSAGE);
    assert_int_equal(wire_read(BYTES("\x01\x02"), 9, &values, &err), ERR_BAD_MESSAGE);
}

TEST(take_moves_only_past_what_was_asked_for) {
    struct slice bytes = BYTES("\x81\xa2id\x05"), text;
    size_t pairs = 0;
    assert_false(wire_take_text(&bytes, &text));
    assert_true(wire_take_map_head(&bytes, &pairs));
    assert_int_equal(pairs, 1);
    assert_false(wire_take_map_head(&bytes, &pairs));
    assert_true(wire_take_text(&bytes, &text));
    assert_true(slice_is_text(text, "id"));
    assert_false(wire_take_text(&bytes, &text));
    assert_int_equal(bytes.size, 1);
}

RUN_TESTS(T(scan_finds_the_end_of_each_format),
    T(scan_of_a_cut_value_says_how_many_bytes_it_has_at_least),
    T(scan_is_broken_by_ext_types_and_the_unused_byte),
    T(scan_does_not_believe_a_count_that_the_bytes_cannot_cover),
    T(scan_stops_below_sixteen_levels), T(check_counts_a_value_and_all_nested_ones),
    T(check_refuses_nothing_and_bytes_that_follow), T(each_format_is_read_as_its_value),
    T(what_is_nested_is_passed_over_in_one_step), T(values_beyond_those_at_hand_are_read_as_well),
    T(more_values_than_are_allowed_are_counted_and_not_read),
    T(reading_refuses_what_checking_refuses), T(take_moves_only_past_what_was_asked_for))
