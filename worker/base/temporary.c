#include "base/temporary.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum err temporary_folder_make(
    const char *name, char ret[static TEMPORARY_PATH_SIZE], struct error *err) {
    const char *parent = getenv("TMPDIR");
    if (parent == NULL || parent[0] == 0) parent = "/tmp"; /* not the root folder */
    int size = snprintf(ret, TEMPORARY_PATH_SIZE, "%s/%s-XXXXXX", parent, name);
    if (size >= TEMPORARY_PATH_SIZE)
        return error_set(err, ERR_IO, 0, "set TMPDIR to a shorter path", "TMPDIR is too long");
    if (mkdtemp(ret) != NULL) return ERR_OK;
    int native = errno;
    return error_set(err, ERR_IO, native, "set TMPDIR to a folder that can be written",
        "making %s: %s", ret, strerror(native));
}
