/**
 * Asks a running worker for a page, at the http.listen of its configuration, with the secret of
 * http.token_file. Threads: any.
 */
#ifndef CLI_ASK_H
#define CLI_ASK_H

#include <stddef.h>

#include "base/error.h"
#include "settings/settings.h"

/**
 * Reads the page at `path` into a new block, which the caller frees; a NUL follows it. Waits up to
 * 10 s for each step. Errors: ERR_CONFIG (nothing is listened at, the token is refused), ERR_IO
 * (nobody answers, or not as a worker does), ERR_TOO_LARGE (more than 16 MiB), ERR_NO_MEMORY.
 */
MUST_CHECK enum err ask_worker(
    const struct settings *settings, const char *path, char **ret, size_t *size, struct error *err);

#endif
