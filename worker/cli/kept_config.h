/**
 * A configuration as it was when the command began. The file is read once, so that it may be a
 * pipe; the supervisor, its probe and all executors start with the same text, whatever becomes of
 * the file, until SIGHUP: then what is read takes its place for executors that start later. Nobody
 * can change it: the copy is in memory and sealed.
 *
 * Lifetime: until kept_config_fini(); processes that were started before keep it. Threads: one.
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
    char path[KEPT_CONFIG_PATH_SIZE]; /* for this process and those that it starts */
};

/** `path`: "-" is standard input. ERR_IO where it cannot be read, ERR_TOO_LARGE from 16 MiB on. */
MUST_CHECK enum err kept_config_init(struct kept_config *kept, const char *path, struct error *err);
void kept_config_fini(struct kept_config *kept);

#endif
