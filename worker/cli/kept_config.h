/**
 * A copy of the configuration as it was when the command began. The file is read once, so it may be
 * a pipe. The supervisor, its probe and all executors start with the same text, whatever happens to
 * the file. After SIGHUP, executors that start later get the text that was read then. The copy is
 * in memory, and sealed against changes.
 *
 * Lifetime: until kept_config_fini(); processes that were started earlier keep it. Threads: one.
 */
#ifndef CLI_KEPT_CONFIG_H
#define CLI_KEPT_CONFIG_H

#include "base/error.h"
#include "base/slice.h"

enum { KEPT_CONFIG_PATH_SIZE = 32 };

struct kept_config {
    struct slice text;
    char *data;
    int fd;
    char path[KEPT_CONFIG_PATH_SIZE]; /* the copy's path, for this process and its children */
};

/**
 * `path`: "-" is standard input. Errors: ERR_IO, if it cannot be read; ERR_TOO_LARGE from 16 MiB
 * on.
 */
MUST_CHECK enum err kept_config_init(struct kept_config *kept, const char *path, struct error *err);
void kept_config_fini(struct kept_config *kept);

#endif
