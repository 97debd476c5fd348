#include "support/scratch.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "testing.h"

char *scratch_create(void) {
    const char *parent = getenv("TMPDIR");
    char *folder;
    assert_return_code(
        asprintf(&folder, "%s/gpu-worker-test-XXXXXX", parent != NULL ? parent : "/tmp"), 0);
    assert_non_null(mkdtemp(folder));
    return folder;
}

static int remove_item(
    const char *path, const struct stat *status, int kind, struct FTW *position) {
    return remove(path);
}

void scratch_remove(char *folder) {
    (void)nftw(folder, remove_item, 16, FTW_DEPTH | FTW_PHYS);
    free(folder);
}

char *scratch_file(const char *folder, const void *bytes, size_t size) {
    char *path;
    assert_return_code(asprintf(&path, "%s/file-XXXXXX", folder), 0);
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, size), (ssize_t)size);
    close(fd);
    return path;
}
