/* gpu-worker tail: follows a topic of results or dead letters and decodes it. */
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "decode/print.h"
#include "executor/connect.h"

static const char usage[] =
    "usage: gpu-worker tail [--config FILE] [--topic NAME] [--from-beginning] [--count N]\n"
    "\n"
    "Follows a topic, topics.results if none is named, and prints every message decoded, with "
    "where it\n"
    "stands, its key and its headers. Joins no group and commits nothing. Ends with Ctrl-C.\n"
    "\n"
    "  --config FILE     where the brokers and topics stand; without it, all defaults\n"
    "  --topic NAME      another topic, such as the dead letters'\n"
    "  --from-beginning  what is there already, first\n"
    "  --count N         ends after N messages\n";

struct tail_arguments {
    const char *config, *topic;
    bool from_beginning, help;
    long count; /* 0: no end */
};

static volatile sig_atomic_t stop;

static void on_stop_signal(int number) {
    stop = 1;
}

static bool parse_arguments(int argc, char **argv, struct tail_arguments *ret) {
    static const struct option options[] = {{"config", required_argument, NULL, 'c'},
        {"topic", required_argument, NULL, 't'}, {"from-beginning", no_argument, NULL, 'b'},
        {"count", required_argument, NULL, 'n'}, {"help", no_argument, NULL, 'h'}, {0}};
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 'c': ret->config = optarg; break;
        case 't': ret->topic = optarg; break;
        case 'b': ret->from_beginning = true; break;
        case 'n': ret->count = strtol(optarg, NULL, 10); break;
        case 'h': ret->help = true; break;
        default: return false;
        }
    }
    return optind == argc && ret->count >= 0;
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

static enum err follow(struct reader *reader, long count, struct error *err) {
    enum err code = ERR_OK;
    for (long n = 0; code == ERR_OK && !stop && (count == 0 || n < count);) {
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
    if (!parse_arguments(argc, argv, &arguments)) return cli_fail_usage("tail");
    if (arguments.help) return cli_help(usage);

    struct settings settings;
    int exit_code = cli_load_settings("tail", arguments.config, &settings);
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
