/* gpu-worker tail: follows a topic of results, dead letters or progress and decodes it. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/signals.h"
#include "base/wire.h"
#include "broker/dead_letter.h"
#include "cli/cli.h"
#include "cli/codes.h"
#include "cli/ids.h"
#include "cli/message.h"
#include "cli/options.h"
#include "cli/when.h"
#include "pipeline/connect.h"

static const char about[] =
    "Follows a topic, topics.results if none is named, and prints every message decoded, with "
    "where it\n"
    "stands, its key and its headers. Joins no group and commits nothing. Ends with Ctrl-C.\n";

static const char examples[] =
    "examples:\n"
    "  gpu-worker tail --config worker.yaml\n"
    "  gpu-worker tail --topic gpu-dead --since 2h --json | jq .headers\n"
    "  gpu-worker tail --progress --id fit-7 --json | jq .message.rounds\n";

struct tail_arguments {
    const char *config, *topic;
    bool progress, from_beginning, json;
    struct cli_values ids, codes; /* none: all are shown */
    uint64_t since_ms;            /* 0: from now, or from the beginning */
    uint64_t count;
};

/* False where the command ends with *ret_exit. */
static bool parse_arguments(int argc, char **argv, struct tail_arguments *ret, int *ret_exit) {
    const char *since = NULL;
    char **words;
    const struct cli_option options[] = {
        {"config", "FILE", "the configuration with brokers and topics; without it, all defaults",
            .text = &ret->config},
        {"topic", "NAME", "another topic, such as the dead letters'", .text = &ret->topic},
        {"progress", NULL, "topics.progress: what long jobs show while they run", CLI_OR,
            .flag = &ret->progress},
        {"from-beginning", NULL, "begin with the oldest message", .flag = &ret->from_beginning},
        {"since", "WHEN",
            "begin with messages published at this time or later: 2026-11-21T08:30:00Z, or how\n"
            "long ago, such as 90s, 15m, 2h or 7d",
            CLI_OR, .text = &since},
        {"id", "ID",
            "only of the job with this id, or with an id that a client made of this name; may be\n"
            "given several times",
            .values = &ret->ids},
        {"code", "CODE", "only errors and dead letters with this code; may be given several times",
            .values = &ret->codes},
        {"json", NULL, "each message as a line of JSON", .flag = &ret->json},
        {"count", "N", "ends after N messages", .number = &ret->count}, {0}};
    const struct cli_command command = {
        .name = "tail", .about = about, .options = options, .examples = examples};
    if (!cli_parse(&command, argc, argv, &words, ret_exit)) return false;
    if (ret->count == 0) *ret_exit = cli_fail_usage("tail", "--count is at least 1");
    else if (since != NULL && !when_read(since, clock_unix_ms(), &ret->since_ms))
        *ret_exit = cli_fail_when("tail", "since", since);
    else *ret_exit = codes_check("tail", &ret->codes);
    return *ret_exit == CLI_OK;
}

/* --- what is shown --- */

static bool accepts(const struct cli_values *values, struct slice value) {
    for (size_t i = 0; i < values->count; i++)
        if (slice_is_text(value, values->items[i])) return true;
    return values->count == 0;
}

static bool accepts_id(const struct cli_values *ids, struct slice id) {
    for (size_t i = 0; i < ids->count; i++)
        if (id_answers_to(id, ids->items[i])) return true;
    return false;
}

/* A result and a dead letter say it in a header, other messages in themselves. */
static bool has_id(const struct delivery *delivery, const struct cli_values *ids) {
    struct slice id;
    struct wire_values values;
    struct error err;
    if (ids->count == 0) return true;
    if (delivery_header(delivery, "gpu-worker-job-id", &id)) return accepts_id(ids, id);
    if (wire_read(delivery->payload, SIZE_MAX, &values, &err) != ERR_OK) return false;
    bool has = accepts_id(ids, wire_text(wire_get(values.items, "id")));
    wire_values_fini(&values);
    return has;
}

/* A dead letter says its code in a header, a result in itself. */
static bool has_code(const struct delivery *delivery, const struct cli_values *codes) {
    struct slice value;
    struct wire_values values;
    struct error err;
    if (codes->count == 0) return true;
    if (delivery_header(delivery, DEAD_LETTER_CODE, &value)) return accepts(codes, value);
    if (wire_read(delivery->payload, SIZE_MAX, &values, &err) != ERR_OK) return false;
    const struct wire_value *code = wire_get(wire_get(values.items, "error"), "code");
    bool has = accepts(codes, wire_text(code));
    wire_values_fini(&values);
    return has;
}

static bool is_shown(const struct tail_arguments *arguments, const struct delivery *delivery) {
    return delivery->position.published_unix_ms >= arguments->since_ms &&
           has_id(delivery, &arguments->ids) && has_code(delivery, &arguments->codes);
}

static enum err follow(
    struct reader *reader, const struct tail_arguments *arguments, struct error *err) {
    enum err code = ERR_OK;
    for (uint64_t n = 0;
         code == ERR_OK && !signals_caught_stop() && !ferror(stdout) && n < arguments->count;) {
        struct delivery *delivery = NULL;
        code = reader_poll(reader, 200, &delivery, err);
        if (delivery == NULL) continue;
        if (is_shown(arguments, delivery)) {
            message_print(delivery, arguments->json);
            n++;
        }
        delivery_destroy(delivery);
    }
    return code;
}

static int tail(const struct settings *settings, const struct tail_arguments *arguments) {
    struct reader *reader = NULL;
    struct error err;
    const char *topic = arguments->topic != NULL ? arguments->topic
                        : arguments->progress    ? settings->topics.progress
                                                 : settings->topics.results;
    if (topic[0] == 0)
        return cli_fail(
            CLI_CONFIG, "tail", "topics.progress is not set; set it for the workers, and here");
    uint64_t from_unix_ms = arguments->from_beginning  ? READER_FROM_BEGINNING
                            : arguments->since_ms != 0 ? arguments->since_ms
                                                       : READER_FROM_NOW;
    enum err code = connect_reader(settings, topic, from_unix_ms, &reader, &err);
    if (code == ERR_OK) code = follow(reader, arguments, &err);
    reader_destroy(reader);
    return code == ERR_OK ? CLI_OK : cli_fail(CLI_BROKER, "tail", "%s; %s", err.message, err.fix);
}

int command_tail(int argc, char **argv) {
    struct tail_arguments arguments = {.count = UINT64_MAX};
    int exit_code;
    if (!parse_arguments(argc, argv, &arguments, &exit_code)) return exit_code;

    struct settings settings;
    exit_code = cli_load_settings("tail", arguments.config, &settings);
    if (exit_code != CLI_OK) return exit_code;
    signals_catch_stop();
    exit_code = tail(&settings, &arguments);
    settings_fini(&settings);
    return exit_code;
}
