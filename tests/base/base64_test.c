#include "base/base64.h"

#include "testing.h"

/* RFC 4648, section 10 */
static const struct {
    const char *bytes, *text;
} vectors[] = {{"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foob", "Zm9vYg=="},
    {"fooba", "Zm9vYmE="}, {"foobar", "Zm9vYmFy"}, {"\xfb\xff\xbf", "+/+/"}};

TEST(the_vectors_of_the_standard_agree_both_ways) {
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        char text[16];
        uint8_t bytes[16];
        size_t size = base64_encode(slice_of_text(vectors[i].bytes), text);
        assert_int_equal(size, BASE64_SIZE(strlen(vectors[i].bytes)));
        assert_true(slice_is_text(slice_of(text, size), vectors[i].text));
        assert_true(base64_decode(slice_of_text(vectors[i].text), bytes, sizeof bytes, &size));
        assert_true(slice_is_text(slice_of(bytes, size), vectors[i].bytes));
    }
}

TEST(what_is_not_base64_is_refused) {
    static const char *const texts[] = {"Zg",
        "Zg=", "Zg===", "Z===", "====", "Zg==Zg==", "Zh==", "Zm9=", "Zm 9", "Zm9v\n", "Zm9-",
        "Zm9_", "=g==", "Z=9v", "Zm9vY"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        uint8_t bytes[16];
        size_t size;
        if (base64_decode(slice_of_text(texts[i]), bytes, sizeof bytes, &size))
            fail_msg("taken: %s", texts[i]);
    }
    uint8_t bytes[4];
    size_t size;
    assert_false(base64_decode(slice_of("Zm\0v", 4), bytes, sizeof bytes, &size));
}

TEST(no_more_is_written_than_there_is_room_for) {
    uint8_t bytes[3] = {0, 0, 77};
    size_t size;
    assert_false(base64_decode(slice_of_text("Zm9v"), bytes, 2, &size));
    assert_int_equal(bytes[2], 77);
    assert_true(base64_decode(slice_of_text("Zm8="), bytes, 2, &size));
    assert_int_equal(size, 2);
    assert_int_equal(bytes[2], 77);
}

RUN_TESTS(T(the_vectors_of_the_standard_agree_both_ways), T(what_is_not_base64_is_refused),
    T(no_more_is_written_than_there_is_room_for))
