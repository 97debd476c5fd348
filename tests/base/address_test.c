#include "base/address.h"

#include <stdio.h>
#include <string.h>

#include "testing.h"

static void assert_read(const char *text, const char *host, const char *port) {
    struct address address;
    assert_true(address_read(text, &address));
    assert_string_equal(address.host, host);
    assert_string_equal(address.port, port);
}

TEST(an_address_is_a_host_and_a_port) {
    assert_read("127.0.0.1:9400", "127.0.0.1", "9400");
    assert_read("localhost:1", "localhost", "1");
    assert_read("[::1]:65535", "::1", "65535");
    assert_read("[host]:80", "host", "80");
}

TEST(anything_else_is_none) {
    static const char *const none[] = {"", ":", "host", "host:", ":9400", "[]:9400", "[::1]",
        "[::1", "::1:9400", "]:9400", "[:9400", "host:0", "host:65536", "host:-1", "host:9x",
        "host:+9", "host: 9", "host:000000000000000000009400"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        struct address address;
        if (address_read(none[i], &address)) fail_msg("'%s' is an address", none[i]);
    }
}

TEST(a_host_is_at_most_as_long_as_a_name_can_be) {
    struct address address;
    char text[400];
    memset(text, 'a', sizeof text);
    snprintf(text + sizeof address.host - 1, sizeof text - sizeof address.host, ":80");
    assert_true(address_read(text, &address));
    memset(text, 'a', sizeof text);
    snprintf(text + sizeof address.host, sizeof text - sizeof address.host, ":80");
    assert_false(address_read(text, &address));
}

RUN_TESTS(T(an_address_is_a_host_and_a_port), T(anything_else_is_none),
    T(a_host_is_at_most_as_long_as_a_name_can_be))
