/** Reads --code. Threads: any. */
#ifndef CLI_CODES_H
#define CLI_CODES_H

#include "cli/options.h"

/**
 * CLI_OK if each is the code of an error; otherwise the exit code, after a line that names the
 * nearest code.
 */
int codes_check(const char *command, const struct cli_values *codes);

#endif
