/* gpu-worker cancel: tells all workers not to run some jobs. */

#include <inttypes.h>

#include "cli/cli.h"
#include "cli/options.h"
#include "cli/sender.h"
#include "decode/cancel.h"
#include "settings/quote.h"

static const char about[] = "Tells all workers, on topics.control, not to run the jobs with these "
                            "ids. A job that still waits,\n"
                            "in Kafka or in a worker, is answered with an error result of code "
                            "`cancelled`; one that runs is\n"
                            "not stopped, and one that was answered is not touched. Workers "
                            "remember an id for cancels.ttl_ms:\n"
                            "a job that is sent with it meanwhile is not run either.\n";

static const char examples[] = "example:\n"
                               "  gpu-worker cancel --config worker.yaml sweep-17 sweep-18\n";

static enum err send_cancel(
    struct sender *sender, const char *topic, const char *id, struct error *err) {
    uint8_t bytes[CANCEL_BYTES_MAX];
    size_t size;
    enum err code = cancel_encode(slice_of_text(id), bytes, &size, err);
    if (code != ERR_OK) return code;
    const struct delivery message = {
        .payload = slice_of(bytes, size), .has_key = true, .key = slice_of_text(id)};
    return sender_send(sender, topic, &message, err);
}

static void print_sums(uint64_t count, const char *topic, bool is_json) {
    if (!is_json) {
        printf("cancelled %" PRIu64 " on %s\n", count, topic);
        return;
    }
    printf("{\"cancelled\":%" PRIu64 ",\"topic\":", count);
    quote_json(topic, stdout);
    printf("}\n");
}

static int cancel(const struct settings *settings, char *const *ids, bool is_json) {
    const char *topic = settings->topics.control;
    if (topic[0] == 0)
        return cli_fail(
            CLI_CONFIG, "cancel", "topics.control is not set; set it for the workers, and here");
    struct sender *sender = NULL;
    struct error err;
    enum err code = sender_open(settings, &sender, &err);
    for (; *ids != NULL && code == ERR_OK; ids++) code = send_cancel(sender, topic, *ids, &err);
    if (code == ERR_OK) code = sender_finish(sender, &err);
    if (code == ERR_OK) print_sums(sender_sent_count(sender), topic, is_json);
    sender_close(sender);
    return code == ERR_OK ? CLI_OK : cli_fail_sending("cancel", &err);
}

int command_cancel(int argc, char **argv) {
    const char *config = NULL;
    bool is_json = false;
    char **words;
    int exit_code;
    const struct cli_option options[] = {
        {"config", "FILE", "the configuration with brokers and topics; without it, all defaults",
            .text = &config},
        {"json", NULL, "one JSON object", .flag = &is_json}, {0}};
    const struct cli_command command = {.name = "cancel",
        .words = "ID...",
        .about = about,
        .options = options,
        .examples = examples};
    if (!cli_parse(&command, argc, argv, &words, &exit_code)) return exit_code;
    struct settings settings;
    exit_code = cli_load_settings("cancel", config, &settings);
    if (exit_code != CLI_OK) return exit_code;
    exit_code = cancel(&settings, words, is_json);
    settings_fini(&settings);
    return exit_code;
}
