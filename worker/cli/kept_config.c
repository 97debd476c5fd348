#include "cli/kept_config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"

enum { CONFIG_BYTES_MAX = 16 << 20 };

/* The descriptor stays open in children, because executors read it. A copy is whole, so its last
 * line ends, and SIGHUP may read it again. */
static bool seal(struct kept_config *kept) {
    kept->fd = memfd_create("gpu-worker-config", MFD_ALLOW_SEALING);
    snprintf(kept->path, sizeof kept->path, "/proc/self/fd/%d", kept->fd);
    return kept->fd >= 0 &&
           write(kept->fd, kept->text.data, kept->text.size) == (ssize_t)kept->text.size &&
           write(kept->fd, "\n", 1) == 1 &&
           fcntl(kept->fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) ==
               0;
}

enum err kept_config_init(struct kept_config *kept, const char *path, struct error *err) {
    size_t size;
    *kept = (struct kept_config){.fd = -1};
    enum err code = file_read(path, CONFIG_BYTES_MAX, &kept->data, &size, err);
    if (code != ERR_OK) return code;
    kept->text = slice_of(kept->data, size);
    if (seal(kept)) return ERR_OK;
    int native = errno;
    kept_config_fini(kept);
    return error_set(err, ERR_IO, native, "give the process more memory",
        "copying the configuration: %s", strerror(native));
}

void kept_config_fini(struct kept_config *kept) {
    if (kept->fd >= 0) close(kept->fd);
    free(kept->data);
    *kept = (struct kept_config){.fd = -1};
}
