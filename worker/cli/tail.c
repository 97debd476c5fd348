/* gpu-worker tail: follows a topic of results or dead letters and decodes it. */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>

#include "broker/connect.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "decode/print.h"

static const char about[] =
    "Follows a topic, topics.results if none is named, and prints every message decoded, with "
    "where it\n"
    "stands, its key and its headers. Joins no group and commits nothing. Ends with Ctrl-C.\n";

struct tail_arguments {
    const char *config, *topic;
    bool from_beginning;
    uint64_t count; /* 0: no limit */
};

static volatile sig_atomic_t stop;

static void on_stop_signal(int number) {
    stop = 1;
}

/* False where the command ends with *ret_exit. */
static bool parse_arguments(int argc, char **argv, struct tail_arguments *ret, int *ret_exit) {
    char **words;
    const struct cli_option options[] = {
        {"config", "FILE", "the configuration with brokers and topics; without it, all defaults",
            .text = &ret->config},
        {"topic", "NAME", "another topic, such as the dead letters'", .text = &ret->topic},
        {"from-beginning", NULL, "begin with the oldest message", .flag = &ret->from_beginning},
        {"count", "N", "ends after N messages", .number = &ret->count}, {0}};
    const struct cli_command command = {.name = "tail", .about = about, .options = options};
    return cli_parse(&command, argc, argv, &words, ret_exit);
}

static void print_delivery(const struct delivery *delivery) {
    const struct position *position = &delivery->position;
    printf("--- # %s/%" PRId32 "/%" PRId64 "\n", position->topic, position->partition,
        position->offset);
    if (delivery->has_key) {
        printf("# key: ");
        print_text(delivery->key, stdout);
        printf("\n");
    }
    for (size_t i = 0; i < delivery->header_count; i++) {
        printf("# ");
        print_text(delivery->headers[i].name, stdout);
        printf(": ");
        print_text(delivery->headers[i].value, stdout);
        printf("\n");
    }
    print_message_payload(delivery->payload, stdout);
    fflush(stdout);
}

static enum err follow(struct reader *reader, uint64_t count, struct error *err) {
    enum err code = ERR_OK;
    for (uint64_t n = 0; code == ERR_OK && !stop && (count == 0 || n < count);) {
        struct delivery *delivery = NULL;
        code = reader_poll(reader, 200, &delivery, err);
        if (delivery == NULL) continue;
        print_delivery(delivery);
        delivery_destroy(delivery);
        n++;
    }
    return code;
}

int command_tail(int argc, char **argv) {
    struct tail_arguments arguments = {0};
    int exit_code;
    if (!parse_arguments(argc, argv, &arguments, &exit_code)) return exit_code;

    struct settings settings;
    exit_code = cli_load_settings("tail", arguments.config, &settings);
    if (exit_code != CLI_OK) return exit_code;
    struct sigaction action = {.sa_handler = on_stop_signal};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);

    struct reader *reader = NULL;
    struct error err;
    const char *topic = arguments.topic != NULL ? arguments.topic : settings.topics.results;
    uint64_t from_unix_ms = arguments.from_beginning ? READER_FROM_BEGINNING : READER_FROM_NOW;
    enum err code = connect_reader(&settings, topic, from_unix_ms, &reader, &err);
    if (code == ERR_OK) code = follow(reader, arguments.count, &err);
    if (code != ERR_OK) exit_code = cli_fail(CLI_BROKER, "tail", "%s; %s", err.message, err.fix);
    reader_destroy(reader);
    settings_fini(&settings);
    return exit_code;
}
