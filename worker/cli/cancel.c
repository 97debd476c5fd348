/* gpu-worker cancel: tells all workers not to run some jobs, or to end long ones. */

#include <inttypes.h>

#include "base/json_writer.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/sender.h"
#include "decode/control_message.h"

static const char about[] = "Tells all workers, on topics.control, not to run the jobs with these "
                            "ids. A job that still waits,\n"
                            "in Kafka or in a worker, is answered with an error result of code "
                            "`cancelled`, and so is a long job\n"
                            "that runs; another that runs is not stopped, and one that was "
                            "answered is not touched. Workers\n"
                            "remember an id for cancels.ttl_ms: a job that is sent with it "
                            "meanwhile is not run either.\n"
                            "With --stop a long job that runs ends with the outputs that it has "
                            "by then.\n";

static const char examples[] = "example:\n"
                               "  gpu-worker cancel --config worker.yaml sweep-17 sweep-18\n";

static enum err send_message(struct sender *sender, const char *topic,
    const struct control_message *message, struct error *err) {
    uint8_t bytes[CONTROL_MESSAGE_BYTES_MAX];
    size_t size;
    enum err code = control_message_encode(message, bytes, &size, err);
    if (code != ERR_OK) return code;
    const struct delivery delivery = {
        .payload = slice_of(bytes, size), .has_key = true, .key = message->id};
    return sender_send(sender, topic, &delivery, err);
}

static void print_sums(
    enum control_action action, uint64_t count, const char *topic, bool is_json) {
    const char *done = action == CONTROL_STOP ? "stopped" : "cancelled";
    if (!is_json) {
        printf("%s %" PRIu64 " on %s\n", done, count, topic);
        return;
    }
    struct json_writer json = {.out = stdout};
    json_object(&json, NULL);
    json_uint(&json, done, count);
    json_text(&json, "topic", topic);
    json_end_line(&json);
}

static int cancel(
    const struct settings *settings, enum control_action action, char *const *ids, bool is_json) {
    const char *topic = settings->topics.control;
    if (topic[0] == 0)
        return cli_fail(
            CLI_CONFIG, "cancel", "topics.control is not set; set it for the workers, and here");
    struct sender *sender = NULL;
    struct error err;
    enum err code = sender_open(settings, &sender, &err);
    for (; *ids != NULL && code == ERR_OK; ids++) {
        const struct control_message message = {slice_of_text(*ids), action};
        code = send_message(sender, topic, &message, &err);
    }
    if (code == ERR_OK) code = sender_finish(sender, &err);
    if (code == ERR_OK) print_sums(action, sender_sent_count(sender), topic, is_json);
    sender_close(sender);
    return code == ERR_OK ? CLI_OK : cli_fail_sending("cancel", &err);
}

int command_cancel(int argc, char **argv) {
    const char *config = NULL;
    bool is_json = false, is_stop = false;
    char **words;
    int exit_code;
    const struct cli_option options[] = {
        {"config", "FILE", "the configuration with brokers and topics; without it, all defaults",
            .text = &config},
        {"stop", NULL, "long jobs end with what they have", .flag = &is_stop},
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
    exit_code = cancel(&settings, is_stop ? CONTROL_STOP : CONTROL_CANCEL, words, is_json);
    settings_fini(&settings);
    return exit_code;
}
