#include "base/temporary.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/scratch.h"
#include "testing.h"

static char *parent;

static int set_up(void **state) {
    parent = scratch_create();
    setenv("TMPDIR", parent, 1);
    return 0;
}

static int tear_down(void **state) {
    unsetenv("TMPDIR");
    scratch_remove(parent);
    return 0;
}

TEST(each_folder_is_new_below_tmpdir_and_nobody_elses) {
    char one[TEMPORARY_PATH_SIZE], other[TEMPORARY_PATH_SIZE];
    struct error err;
    struct stat status;
    assert_int_equal(ERR_OK, temporary_folder_make("name", one, &err));
    assert_int_equal(ERR_OK, temporary_folder_make("name", other, &err));
    assert_string_not_equal(one, other);
    assert_memory_equal(one, parent, strlen(parent));
    assert_memory_equal(one + strlen(parent), "/name-", 6);
    assert_int_equal(0, stat(one, &status));
    assert_int_equal(S_IFDIR | 0700, status.st_mode);
    rmdir(one);
    rmdir(other);
}

TEST(a_tmpdir_that_is_missing_or_too_long_is_an_error_that_names_it) {
    char path[TEMPORARY_PATH_SIZE], long_path[TEMPORARY_PATH_SIZE];
    struct error err;
    setenv("TMPDIR", "/nowhere/at/all", 1);
    assert_int_equal(ERR_IO, temporary_folder_make("name", path, &err));
    assert_non_null(strstr(err.message, "/nowhere/at/all"));
    assert_non_null(strstr(err.fix, "TMPDIR"));
    memset(long_path, 'x', sizeof long_path - 1);
    long_path[sizeof long_path - 1] = 0;
    setenv("TMPDIR", long_path, 1);
    assert_int_equal(ERR_IO, temporary_folder_make("name", path, &err));
    assert_non_null(strstr(err.message, "too long"));
}

TEST(an_empty_tmpdir_is_as_good_as_none) {
    char path[TEMPORARY_PATH_SIZE];
    struct error err;
    setenv("TMPDIR", "", 1);
    assert_int_equal(ERR_OK, temporary_folder_make("name", path, &err));
    rmdir(path);
    assert_memory_equal(path, "/tmp/name-", 10);
}

#define F(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
RUN_TESTS(F(each_folder_is_new_below_tmpdir_and_nobody_elses),
    F(a_tmpdir_that_is_missing_or_too_long_is_an_error_that_names_it),
    F(an_empty_tmpdir_is_as_good_as_none))
