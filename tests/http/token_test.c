/* Who brings the secret of a file, and who does not. */
#include "http/token.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/scratch.h"
#include "testing.h"

struct fixture {
    char *folder, *path;
};

static int set_up(void **state) {
    static struct fixture fixture;
    fixture.folder = scratch_create();
    assert_true(asprintf(&fixture.path, "%s/token", fixture.folder) > 0);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;
    scratch_remove(fixture->folder);
    free(fixture->path);
    return 0;
}

static void write_token(const struct fixture *fixture, const char *text, size_t size) {
    FILE *file = fopen(fixture->path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

TEST(only_the_secret_itself_is_taken) {
    static const char *const good[] = {"Bearer s3cret", "bearer s3cret", "BEARER   s3cret "};
    static const char *const bad[] = {"", "Bearer", "Bearer ", "Bearer s3cre", "Bearer s3crets",
        "Bearer S3cret", "Basic s3cret", "s3cret", "Bearer s3cret x", "Bearers3cret", NULL};
    const struct fixture *fixture = *state;
    struct digest token;
    struct error err;
    write_token(fixture, "  s3cret\r\n", 10);
    assert_int_equal(token_read(fixture->path, &token, &err), ERR_OK);
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_true(token_is_brought(&token, good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(token_is_brought(&token, bad[i]));
}

TEST(a_file_that_holds_no_secret_is_refused) {
    static const struct {
        const char *text;
        size_t size;
    } all[] = {{"", 0}, {" \n", 2}, {"two words", 9}, {"nul\0inside", 10}, {"\xc3\xa9", 2},
        {"two\nlines\n", 10}};
    static char large[5000];
    const struct fixture *fixture = *state;
    struct digest token;
    struct error err;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        write_token(fixture, all[i].text, all[i].size);
        assert_int_equal(token_read(fixture->path, &token, &err), ERR_CONFIG);
        assert_non_null(strstr(err.message, fixture->path));
        assert_non_null(strstr(err.fix, "http.token_file"));
    }
    memset(large, 'x', sizeof large);
    write_token(fixture, large, sizeof large);
    assert_int_equal(token_read(fixture->path, &token, &err), ERR_CONFIG);
}

TEST(what_is_no_plain_file_is_refused_at_once) {
    const struct fixture *fixture = *state;
    struct digest token;
    struct error err;
    assert_int_equal(token_read(fixture->path, &token, &err), ERR_CONFIG);
    assert_int_equal(token_read(fixture->folder, &token, &err), ERR_CONFIG);
    assert_int_equal(token_read("-", &token, &err), ERR_CONFIG);
    assert_int_equal(mkfifo(fixture->path, 0600), 0);
    assert_int_equal(token_read(fixture->path, &token, &err), ERR_CONFIG);
}

#define F(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
RUN_TESTS(F(only_the_secret_itself_is_taken), F(a_file_that_holds_no_secret_is_refused),
    F(what_is_no_plain_file_is_refused_at_once))
