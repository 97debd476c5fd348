/* gpu-worker decode: prints messages that stand in a file. */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/message.h"
#include "cli/messages_file.h"
#include "cli/options.h"

static const char about[] =
    "Prints messages of any kind: jobs, results, progress, telemetry, cancels, one after the\n"
    "other, and the lines of run --dead-letters. `-` is standard input. As YAML, long lists are\n"
    "cut; as JSON they are whole.\n";

static const char examples[] =
    "example:\n"
    "  gpu-worker submit --encode config/examples/saxpy.yaml | gpu-worker decode -\n"
    "  gpu-worker decode --json results.msgpack | jq .status\n";

int command_decode(int argc, char **argv) {
    bool is_json = false;
    char **words;
    int ret;
    const struct cli_option options[] = {
        {"json", NULL, "each message as a line of JSON", .flag = &is_json}, {0}};
    const struct cli_command command = {.name = "decode",
        .words = "FILE",
        .about = about,
        .options = options,
        .examples = examples};
    if (!cli_parse(&command, argc, argv, &words, &ret)) return ret;

    struct messages_file *file = NULL;
    const struct delivery *delivery;
    struct error err;
    bool is_letter;
    enum err code = messages_file_open(words[0], &file, &err);
    while (code == ERR_OK && !ferror(stdout)) {
        code = messages_file_next(file, &delivery, &is_letter, &err);
        if (code != ERR_OK || delivery == NULL) break;
        if (is_letter) message_print(delivery, is_json);
        else message_print_payload(delivery->payload, is_json);
    }
    messages_file_close(file);
    if (code == ERR_OK) return CLI_OK;
    fflush(stdout);
    return cli_fail(CLI_FAILED, "decode", "%s; %s", err.message, err.fix);
}
