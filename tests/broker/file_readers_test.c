#include "broker/file_readers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/scratch.h"
#include "testing.h"

/* Several parts, the last of which is not whole. */
enum { BYTES = (5 << 20) + 12345 };

static char *folder;
static uint8_t bytes[BYTES], found[BYTES + (4 << 20)];
static struct file_readers *readers;

static int set_up(void **state) {
    struct error err;
    folder = scratch_create();
    for (size_t i = 0; i < BYTES; i++) bytes[i] = (uint8_t)(i * 2654435761u >> 13);
    assert_int_equal(file_readers_create(&readers, &err), ERR_OK);
    return 0;
}

static int tear_down(void **state) {
    file_readers_destroy(readers);
    scratch_remove(folder);
    return 0;
}

static int open_bytes(void) {
    char *path = scratch_file(folder, bytes, BYTES);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    unlink(path);
    free(path);
    return fd;
}

TEST(each_byte_of_a_part_comes_to_its_place) {
    const struct {
        size_t offset, size;
    } parts[] = {{0, BYTES}, {0, 1}, {7, 1 << 20}, {7, (1 << 20) + 1}, {1234567, 3 << 20}, {5, 0}};
    int fd = open_bytes();
    for (size_t again = 0; again < 20; again++)
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
            size_t size = parts[i].size;
            memset(found, 0xee, sizeof found);
            assert_int_equal(file_readers_read(readers, fd, found, size, parts[i].offset), size);
            if (size > 0) /* at once: what comes last */
                assert_int_equal(found[size - 1], bytes[parts[i].offset + size - 1]);
            assert_memory_equal(found, bytes + parts[i].offset, size);
            assert_int_equal(found[size], 0xee);
        }
    close(fd);
}

TEST(less_comes_where_the_file_ends) {
    int fd = open_bytes();
    assert_int_equal(file_readers_read(readers, fd, found, sizeof found, 0), BYTES);
    assert_memory_equal(found, bytes, BYTES);
    assert_int_equal(file_readers_read(readers, fd, found, sizeof found, BYTES - 3), 3);
    assert_memory_equal(found, bytes + BYTES - 3, 3);
    for (int again = 0; again < 2000; again++) /* parts behind the end may come short first */
        assert_int_equal(file_readers_read(readers, fd, found, sizeof found, BYTES - 3), 3);
    assert_int_equal(file_readers_read(readers, fd, found, sizeof found, BYTES), 0);
    assert_int_equal(file_readers_read(readers, fd, found, sizeof found, BYTES + 9), 0);
    close(fd);
}

TEST(what_cannot_be_read_is_an_error_like_that_of_pread) {
    int fd = open(folder, O_RDONLY | O_CLOEXEC);
    assert_int_equal(file_readers_read(readers, fd, found, sizeof found, 0), -1);
    assert_int_equal(errno, EISDIR);
    close(fd);
    fd = open_bytes();
    assert_int_equal(file_readers_read(readers, fd, found, BYTES, 0), BYTES);
    close(fd);
}

TEST_MAIN() {
    const struct CMUnitTest tests[] = {T(each_byte_of_a_part_comes_to_its_place),
        T(less_comes_where_the_file_ends), T(what_cannot_be_read_is_an_error_like_that_of_pread)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
