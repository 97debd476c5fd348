#include "cli/codes.h"

#include <string.h>

#include "base/nearest.h"
#include "cli/cli.h"

/* If not, `nearest` is the one that was probably meant. */
static bool is_known(const char *given, struct nearest *nearest) {
    nearest_init(nearest, given);
    for (enum err code = ERR_OK + 1; code < ERR_COUNT; code++) {
        if (strcmp(err_code(code), given) == 0) return true;
        nearest_offer(nearest, err_code(code));
    }
    return false;
}

int codes_check(const char *command, const struct cli_values *codes) {
    for (size_t i = 0; i < codes->count; i++) {
        struct nearest nearest;
        const char *given = codes->items[i];
        if (is_known(given, &nearest)) continue;
        if (nearest.text == NULL)
            return cli_fail_usage(command, "no error has the code '%s'", given);
        return cli_fail_usage(
            command, "no error has the code '%s'; did you mean '%s'?", given, nearest.text);
    }
    return CLI_OK;
}
