#include "decode/print.h"

#include <stdlib.h>

#include "testing.h"

/* The bytes of a string literal, which may hold NULs. */
#define BYTES(literal) slice_of("" literal, sizeof literal - 1)

static void assert_prints(struct slice message, const char *expected) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    print_message_payload(message, out);
    fclose(out);
    assert_string_equal(text, expected);
    free(text);
}

TEST(maps_and_arrays_are_indented_lines) {
    /* {"id": "job-1", "outputs": [{"name": "y", "shape": [2, 3]}, {}], "none": []} */
    assert_prints(BYTES("\x83\xa2id\xa5job-1\xa7outputs\x92\x82\xa4name\xa1y\xa5shape\x92\x02\x03"
                        "\x80\xa4none\x90"),
        "id: job-1\n"
        "outputs:\n"
        "  - name: y\n"
        "    shape: [2, 3]\n"
        "  - {}\n"
        "none: []\n");
}

TEST(scalars_print_as_yaml_reads_them) {
    assert_prints(BYTES("\xc0"), "null\n");
    assert_prints(BYTES("\xc3"), "true\n");
    assert_prints(BYTES("\xff"), "-1\n");
    assert_prints(BYTES("\xcf\xff\xff\xff\xff\xff\xff\xff\xff"), "18446744073709551615\n");
    assert_prints(BYTES("\xcb\x3f\xb9\x99\x99\x99\x99\x99\x9a"), "0.1\n");
    assert_prints(BYTES("\xca\x3d\xcc\xcc\xcd"), "0.1\n");
    assert_prints(BYTES("\xca\xff\x80\x00\x00"), "-.inf\n");
    assert_prints(BYTES("\xca\x7f\xc0\x00\x00"), ".nan\n");
}

TEST(text_that_would_read_as_something_else_is_quoted) {
    assert_prints(BYTES("\xa4true"), "\"true\"\n");
    assert_prints(BYTES("\xa1"
                        "7"),
        "\"7\"\n");
    assert_prints(BYTES("\xa0"), "\"\"\n");
    assert_prints(BYTES("\xa3"
                        "a b"),
        "\"a b\"\n");
}

TEST(text_cannot_reach_the_terminal) {
    assert_prints(BYTES("\xa5\x1b[2J\n"), "\"\\x1b[2J\\n\"\n");
    assert_prints(BYTES("\xa4\"\\\x7f\xff"), "\"\\\"\\\\\\x7f\\xff\"\n");
    assert_prints(BYTES("\xa2\xc2\x9b"), "\"\\x9b\"\n"); /* U+009b, a one-character escape */
    assert_prints(BYTES("\xa2\xc5\x82"), "\"\xc5\x82\"\n");
}

TEST(data_prints_as_its_datatype_says) {
    assert_prints(BYTES("\x82\xa4"
                        "data\xc4\x08\x00\x00\x80\x3f\x00\x00\x20\xc0\xa8"
                        "datatype\xa4"
                        "FP32"),
        "data: {f32: [1, -2.5]}\n"
        "datatype: FP32\n");
    static const struct {
        const char *type;
        const char *printed;
    } cases[] = {
        {"INT8", "{i8: [-1, -1, -1, -1, -1, -1, -1, 63]}"},
        {"INT16", "{i16: [-1, -1, -1, 16383]}"},
        {"UINT64", "{u64: [4611686018427387903]}"},
        {"BOOL", "{bool: [true, true, true, true, true, true, true, true]}"},
        {"FP64", "{f64: [1.9999999999999998]}"},
        {"FP16", "{f16: [.nan, .nan, .nan, 1.9990234]}"},
        {"BF16", "{bf16: [.nan, .nan, .nan, 1.9921875]}"},
        {"FP128", "{hex: \"ffffffffffffff3f\"}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char message[64], expected[128];
        size_t type_bytes = strlen(cases[i].type);
        int size = snprintf(message, sizeof message,
            "\x82\xa8"
            "datatype%c%s\xa4"
            "data",
            (char)(0xa0 + type_bytes), cases[i].type);
        static const char data[] = "\xc4\x08\xff\xff\xff\xff\xff\xff\xff\x3f";
        memcpy(message + size, data, sizeof data);
        snprintf(
            expected, sizeof expected, "datatype: %s\ndata: %s\n", cases[i].type, cases[i].printed);
        assert_prints(slice_of(message, (size_t)size + sizeof data - 1), expected);
    }
}

TEST(data_without_a_datatype_prints_as_hex) {
    assert_prints(BYTES("\x81\xa4"
                        "data\xc4\x02\x00\xff"),
        "data: {hex: \"00ff\"}\n");
}

TEST(data_that_is_no_whole_number_of_elements_prints_as_hex) {
    assert_prints(BYTES("\x82\xa8"
                        "datatype\xa4"
                        "FP32\xa4"
                        "data\xc4\x02\x00\xff"),
        "datatype: FP32\ndata: {hex: \"00ff\"}\n");
}

TEST(long_data_is_cut_and_its_length_told) {
    uint8_t message[5 + 2 + 40] = "\x81\xa3"
                                  "key";
    message[5] = 0xc4;
    message[6] = 40;
    assert_prints(slice_of(message, sizeof message),
        "key: {hex: \"0000000000000000000000000000000000000000000000000000000000000000...\"}"
        "  # 40 bytes\n");
    uint8_t list[6 + 17] = {0x81, 0xa1, 'k', 0xdc, 0, 17};
    assert_prints(slice_of(list, sizeof list),
        "k: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ...]  # 17 items\n");
    uint8_t numbers[23 + 17] = "\x82\xa8"
                               "datatype\xa5"
                               "UINT8"
                               "\xa4"
                               "data\xc4\x11";
    assert_prints(slice_of(numbers, sizeof numbers),
        "datatype: UINT8\n"
        "data: {u8: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ...]}  # 17 items\n");
}

TEST(what_is_no_msgpack_prints_as_hex_and_why) {
    assert_prints(BYTES("\xc1"), "{hex: \"c1\"}\n# no message: msgpack is not acceptable: the byte "
                                 "0xc1, which msgpack never uses at byte 0\n");
}

RUN_TESTS(T(maps_and_arrays_are_indented_lines), T(scalars_print_as_yaml_reads_them),
    T(text_that_would_read_as_something_else_is_quoted), T(text_cannot_reach_the_terminal),
    T(data_prints_as_its_datatype_says), T(data_without_a_datatype_prints_as_hex),
    T(data_that_is_no_whole_number_of_elements_prints_as_hex),
    T(long_data_is_cut_and_its_length_told), T(what_is_no_msgpack_prints_as_hex_and_why))
