#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/scratch.h"
#include "testing.h"

static char *folder, *path;

static int make_file(void **state) {
    folder = scratch_create();
    path = scratch_file(folder, "", 0);
    return 0;
}

static int remove_file(void **state) {
    free(path);
    scratch_remove(folder);
    return 0;
}

static void fill(size_t size) {
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    for (size_t i = 0; i < size; i++) fputc((int)(i % 251), out);
    fclose(out);
}

TEST(a_file_of_any_size_comes_whole_and_ends_with_a_nul) {
    static const size_t sizes[] = {0, 1, 16383, 16384, 16385, 65536, 100000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char *data;
        size_t size;
        struct error err;
        fill(sizes[i]);
        assert_int_equal(file_read(path, 100000, &data, &size, &err), ERR_OK);
        assert_int_equal(size, sizes[i]);
        for (size_t k = 0; k < size; k++) assert_int_equal((unsigned char)data[k], k % 251);
        assert_int_equal(data[size], 0);
        free(data);
    }
}

/* What would make open() or read() wait is refused, and a descriptor that was handed over is not.
 */
TEST(only_a_plain_file_is_read_by_its_name) {
    static const char pipe_text[] = "through a pipe";
    char *fifo, *data, given[32];
    size_t size;
    struct error err;
    int ends[2];
    assert_return_code(asprintf(&fifo, "%s/fifo", folder), 0);
    assert_return_code(mkfifo(fifo, 0600), 0);
    const char *const others[] = {fifo, "/dev/zero"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_int_equal(file_read(others[i], 100, &data, &size, &err), ERR_IO);
        assert_non_null(strstr(err.message, "not a plain file"));
        assert_non_null(strstr(err.message, others[i]));
    }
    free(fifo);
    assert_return_code(pipe(ends), 0);
    assert_int_equal(write(ends[1], pipe_text, sizeof pipe_text), sizeof pipe_text);
    close(ends[1]);
    snprintf(given, sizeof given, "/dev/fd/%d", ends[0]);
    assert_int_equal(file_read(given, 100, &data, &size, &err), ERR_OK);
    assert_string_equal(data, pipe_text);
    free(data);
    close(ends[0]);
}

TEST(bytes_are_read_from_where_they_stand) {
    uint8_t bytes[8] = {0};
    size_t size;
    fill(100);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(file_read_at(fd, 7, bytes, 3, &size));
    assert_int_equal(size, 3);
    assert_memory_equal(bytes, "\7\10\11\0", 4);
    assert_true(file_read_at(fd, 98, bytes, sizeof bytes, &size));
    assert_int_equal(size, 2);
    assert_memory_equal(bytes, "\x62\x63\11\0", 4);
    assert_true(file_read_at(fd, 100, bytes, sizeof bytes, &size));
    assert_int_equal(size, 0);
    close(fd);
    fd = open(folder, O_RDONLY | O_CLOEXEC);
    assert_false(file_read_at(fd, 0, bytes, sizeof bytes, &size));
    assert_int_equal(errno, EISDIR);
    assert_int_equal(size, 0);
    close(fd);
}

TEST(bytes_are_written_where_they_belong) {
    struct error err;
    char *data;
    size_t size;
    fill(0);
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_true(file_write_at(fd, 3, slice_of_text("def")));
    assert_true(file_write_at(fd, 0, slice_of_text("abc")));
    assert_true(file_write_at(fd, 6, slice_of_text("")));
    close(fd);
    assert_int_equal(file_read(path, 100, &data, &size, &err), ERR_OK);
    assert_string_equal(data, "abcdef");
    free(data);
}

TEST(what_cannot_be_written_says_why) {
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    errno = 0;
    assert_false(file_write_at(fd, 0, slice_of_text("abc")));
    assert_int_equal(errno, EBADF);
    close(fd);
}

TEST(a_byte_too_many_is_too_large) {
    char *data;
    size_t size;
    struct error err;
    fill(20001);
    assert_int_equal(file_read(path, 20000, &data, &size, &err), ERR_TOO_LARGE);
    assert_non_null(strstr(err.message, path));
    assert_int_equal(file_read(path, 20001, &data, &size, &err), ERR_OK);
    free(data);
}

TEST(what_cannot_be_read_is_named_with_its_reason) {
    char *data;
    size_t size;
    struct error err;
    assert_int_equal(file_read("/dev/null/at/all", 10, &data, &size, &err), ERR_IO);
    assert_int_equal(err.native, ENOTDIR);
    assert_string_equal(err.message, "/dev/null/at/all: Not a directory");
    assert_int_equal(file_read(folder, 10, &data, &size, &err), ERR_IO);
    assert_int_equal(err.native, EISDIR);
}

TEST(a_dash_is_standard_input) {
    char *data;
    size_t size;
    struct error err;
    fill(300);
    int saved = dup(STDIN_FILENO), fd = open(path, O_RDONLY);
    assert_int_equal(dup2(fd, STDIN_FILENO), STDIN_FILENO);
    enum err code = file_read("-", 1000, &data, &size, &err);
    dup2(saved, STDIN_FILENO);
    close(saved);
    close(fd);
    assert_int_equal(code, ERR_OK);
    assert_int_equal(size, 300);
    free(data);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {T(a_file_of_any_size_comes_whole_and_ends_with_a_nul),
        T(only_a_plain_file_is_read_by_its_name), T(bytes_are_read_from_where_they_stand),
        T(bytes_are_written_where_they_belong), T(what_cannot_be_written_says_why),
        T(a_byte_too_many_is_too_large), T(what_cannot_be_read_is_named_with_its_reason),
        T(a_dash_is_standard_input)};
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
