#include "support/scratch.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

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
