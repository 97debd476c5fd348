#include "base/error.h"

#include <stdio.h>
#include <string.h>

#include "testing.h"

TEST(set_returns_the_code_and_fills_all_fields) {
    struct error err;
    enum err code = error_set(&err, ERR_DRIVER, 700, "restart", "lane %d failed", 3);
    assert_int_equal(code, ERR_DRIVER);
    assert_int_equal(err.code, ERR_DRIVER);
    assert_int_equal(err.native, 700);
    assert_string_equal(err.message, "lane 3 failed");
    assert_string_equal(err.fix, "restart");
}

TEST(set_cuts_what_is_too_long_and_keeps_the_end) {
    struct error err;
    char text[2 * sizeof err.message];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    (void)error_set(&err, ERR_IO, 0, text, "%s", text);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    assert_int_equal(strlen(err.fix), sizeof err.fix - 1);
}

TEST(every_code_has_a_name_of_its_own_and_a_retry) {
    for (int code = 0; code < ERR_COUNT; code++) {
        assert_true(strlen(err_code((enum err)code)) > 0);
        assert_true(strlen(err_retry_name((enum err)code)) > 0);
        for (int other = 0; other < code; other++)
            assert_string_not_equal(err_code((enum err)code), err_code((enum err)other));
    }
}

TEST(retry_says_who_can_help) {
    assert_string_equal(err_retry_name(ERR_BAD_JOB), "never");
    assert_string_equal(err_retry_name(ERR_NO_MEMORY), "worker");
    assert_string_equal(err_retry_name(ERR_STATIC_MISSING), "sender");
}

TEST(only_what_costs_the_gpu_is_sticky) {
    static const enum err sticky[] = {
        ERR_GPU_ILLEGAL_ADDRESS, ERR_GPU_ASSERT, ERR_GPU_HANG, ERR_GPU_FAULT};
    size_t found = 0;
    for (int code = 0; code < ERR_COUNT; code++) found += err_is_sticky((enum err)code);
    assert_int_equal(found, sizeof sticky / sizeof sticky[0]);
    for (size_t i = 0; i < found; i++) assert_true(err_is_sticky(sticky[i]));
    assert_false(err_is_sticky(ERR_COUNT));
    assert_false(err_is_sticky((enum err)UINT32_MAX));
}

TEST(only_memory_that_others_may_give_back_is_a_shortage) {
    for (int code = 0; code < ERR_COUNT; code++)
        assert_int_equal(
            err_is_shortage((enum err)code), code == ERR_NO_MEMORY || code == ERR_DEVICE_MEMORY);
}

TEST(a_command_ends_as_its_error_says) {
    assert_int_equal(err_exit(ERR_OK), CLI_OK);
    assert_int_equal(err_exit(ERR_CONFIG), CLI_CONFIG);
    assert_int_equal(err_exit(ERR_NO_DEVICE), CLI_DEVICE);
    assert_int_equal(err_exit(ERR_DRIVER), CLI_DEVICE);
    assert_int_equal(err_exit(ERR_BROKER), CLI_BROKER);
    assert_int_equal(err_exit(ERR_PUBLISH_REFUSED), CLI_BROKER);
    assert_int_equal(err_exit(ERR_TIMEOUT), CLI_DRAIN);
    assert_int_equal(err_exit(ERR_IO), CLI_FAILED);
    for (int code = 0; code < ERR_COUNT; code++)
        if (err_is_sticky((enum err)code)) assert_int_equal(err_exit((enum err)code), CLI_DEVICE);
}

RUN_TESTS(T(set_returns_the_code_and_fills_all_fields),
    T(set_cuts_what_is_too_long_and_keeps_the_end), T(every_code_has_a_name_of_its_own_and_a_retry),
    T(retry_says_who_can_help), T(only_what_costs_the_gpu_is_sticky),
    T(only_memory_that_others_may_give_back_is_a_shortage), T(a_command_ends_as_its_error_says))
