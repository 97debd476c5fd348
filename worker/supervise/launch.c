#include "supervise/launch.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/invariant.h"
#include "process/child.h"

enum { ARGUMENTS_MAX = 26 }; /* with all of cli/run.c */

enum err launch_executor(const struct launch *launch, pid_t *ret, struct error *err) {
    const struct supervise_options *options = launch->options;
    char device[16], life[24], board[16], spare[16];
    const char *arguments[ARGUMENTS_MAX + 1] = {"run", "--no-supervisor", "--device", device,
        "--state", launch->state_path, "--life", life, "--board", board};
    size_t count = 10;
    snprintf(device, sizeof device, "%" PRIu32, launch->device);
    snprintf(life, sizeof life, "%" PRIu64, launch->life);
    snprintf(board, sizeof board, "%d", launch->board_fd);
    snprintf(spare, sizeof spare, "%d", launch->spare_fd);
    if (launch->spare_fd >= 0) {
        arguments[count++] = "--spare";
        arguments[count++] = spare;
    }
    if (options->config != NULL) {
        arguments[count++] = "--config";
        arguments[count++] = options->config;
    }
    for (const char *const *more = options->arguments; *more != NULL; more++) {
        INVARIANT(count < ARGUMENTS_MAX, "there is a place for each argument");
        arguments[count++] = *more;
    }
    const int kept[] = {launch->board_fd, launch->spare_fd, -1};
    return child_start(arguments, -1, kept, ret, err);
}
