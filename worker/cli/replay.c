/* gpu-worker replay: sends dead letters as jobs again. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/json_writer.h"
#include "base/signals.h"
#include "broker/dead_letter.h"
#include "cli/cli.h"
#include "cli/codes.h"
#include "cli/messages_file.h"
#include "cli/options.h"
#include "cli/sender.h"
#include "cli/when.h"
#include "decode/print.h"
#include "pipeline/connect.h"

static const char about[] =
    "Sends dead letters back to the job topic that they came from, with their own bytes, key "
    "and\n"
    "headers, and a header gpu-worker-replayed-from with the first position of the job. They run "
    "as new\n"
    "jobs. The dead letters stay in their topic: a second replay sends the same jobs again, so "
    "choose new\n"
    "ones with --since. Dead letters that are published while it runs are not read.\n";

static const char examples[] =
    "example:\n"
    "  gpu-worker replay --config worker.yaml --code unknown_program --since 2h\n";

enum { POLL_MS = 200, PROGRESS_MS = 2000, SILENCE_MS = 60000 };

struct replay_arguments {
    const char *config, *topic, *from;
    struct cli_values codes, ids; /* none: all match */
    uint64_t since_ms, until_ms;
    uint64_t count;
    bool all, dry_run, is_json;
};

/* --- arguments --- */

/* False: the command must end with *ret_exit. */
static bool parse_arguments(int argc, char **argv, struct replay_arguments *ret, int *ret_exit) {
    const char *since = NULL, *until = NULL;
    char **words;
    const struct cli_option options[] = {
        {"config", "FILE", "the configuration with brokers and topics; jobs go only to topics.jobs",
            .text = &ret->config},
        {"topic", "NAME", "the topic of dead letters, instead of topics.dead_letters",
            .text = &ret->topic},
        {"from", "FILE",
            "dead letters of a run of files (run --dead-letters), instead of a topic; - is "
            "standard\n"
            "input. Their jobs go to the first of topics.jobs",
            CLI_OR, .text = &ret->from},
        {"dry-run", NULL, "print what would be sent, and send nothing", .flag = &ret->dry_run},
        {"all", NULL, "replay all; otherwise at least one of the following selects which",
            .flag = &ret->all},
        {"code", "CODE", "only those with this error code; may be given several times",
            .values = &ret->codes},
        {"id", "ID", "only the job with this id; may be given several times", .values = &ret->ids},
        {"since", "WHEN",
            "only those published at this time or later: 2026-11-21T08:30:00Z, or how long\n"
            "ago, such as 90s, 15m, 2h or 7d",
            .text = &since},
        {"until", "WHEN", "only those published before this time", .text = &until},
        {"count", "N", "at most so many", .number = &ret->count},
        {"json", NULL, "JSON objects, one a line: with --dry-run each job, then the sums",
            .flag = &ret->is_json},
        {0}};
    const struct cli_command command = {
        .name = "replay", .about = about, .options = options, .examples = examples};
    if (!cli_parse(&command, argc, argv, &words, ret_exit)) return false;
    uint64_t now_ms = clock_unix_ms();
    bool is_filtered = ret->codes.count > 0 || ret->ids.count > 0 || since != NULL ||
                       until != NULL || ret->count != UINT64_MAX;
    if (ret->all && is_filtered)
        *ret_exit = cli_fail_usage("replay", "--all excludes options that select dead letters");
    else if (!ret->all && !is_filtered)
        *ret_exit = cli_fail_usage("replay", "say which dead letters, or --all");
    else if (ret->count == 0) *ret_exit = cli_fail_usage("replay", "--count is at least 1");
    else if (ret->from != NULL && (since != NULL || until != NULL))
        *ret_exit = cli_fail_usage("replay", "dead letters of a file have no time");
    else if (since != NULL && !when_read(since, now_ms, &ret->since_ms))
        *ret_exit = cli_fail_when("replay", "since", since);
    else if (until != NULL && !when_read(until, now_ms, &ret->until_ms))
        *ret_exit = cli_fail_when("replay", "until", until);
    else *ret_exit = codes_check("replay", &ret->codes);
    return *ret_exit == CLI_OK;
}

/* --- one dead letter --- */

struct replay {
    const struct settings *settings;
    const struct replay_arguments *arguments;
    struct reader *reader;
    struct sender *sender; /* NULL in a dry run */
    uint64_t read, chosen, skipped;
    uint64_t progress_due_ns, heard_ns;
};

static bool accepts(const struct cli_values *values, struct slice value) {
    for (size_t i = 0; i < values->count; i++)
        if (slice_is_text(value, values->items[i])) return true;
    return values->count == 0;
}

static bool is_chosen(const struct replay_arguments *arguments, const struct delivery *delivery,
    const struct dead_letter *letter) {
    uint64_t published_ms = delivery->position.published_unix_ms;
    return accepts(&arguments->codes, letter->code) && accepts(&arguments->ids, letter->id) &&
           published_ms >= arguments->since_ms && published_ms < arguments->until_ms;
}

/* The configured job topic of that name; NULL if there is none. */
static const char *find_job_topic(const struct settings *settings, struct slice topic) {
    for (size_t i = 0; i < settings->topics.jobs.count; i++)
        if (slice_is_text(topic, settings->topics.jobs.items[i]))
            return settings->topics.jobs.items[i];
    return NULL;
}

static void skip(struct replay *replay, const struct delivery *delivery, const char *why) {
    const struct position *position = &delivery->position;
    replay->skipped++;
    fprintf(stderr, "gpu-worker replay: skipped %s/%" PRId32 "/%" PRId64 ": %s\n", position->topic,
        position->partition, position->offset, why);
}

static void print_job(
    const struct replay *replay, const struct dead_letter *letter, const char *topic) {
    if (!replay->arguments->is_json) {
        print_text(letter->id, stdout);
        printf(": ");
        print_text(letter->code, stdout);
        printf(": to %s\n", topic);
        return;
    }
    struct json_writer json = {.out = stdout};
    json_object(&json, NULL);
    json_bytes(&json, "id", letter->id);
    json_bytes(&json, "code", letter->code);
    json_text(&json, "topic", topic);
    json_end_line(&json);
}

static enum err send_job(struct replay *replay, const struct delivery *delivery,
    const struct dead_letter *letter, const char *topic, struct error *err) {
    replay->chosen++;
    if (replay->sender == NULL) {
        print_job(replay, letter, topic);
        return ERR_OK;
    }
    struct delivery *job = dead_letter_create_job(delivery);
    if (job == NULL) return error_no_memory(err, "no memory for a job");
    enum err code = sender_send(replay->sender, topic, job, err);
    delivery_destroy(job);
    return code;
}

static enum err consider(
    struct replay *replay, const struct delivery *delivery, struct error *err) {
    struct dead_letter letter;
    bool is_of_file = replay->reader == NULL;
    if (!is_of_file && reader_is_late(replay->reader, &delivery->position)) return ERR_OK;
    replay->read++;
    bool is_letter = dead_letter_read(delivery, &letter);
    if (!is_chosen(replay->arguments, delivery, &letter)) return ERR_OK;
    const char *topic = is_of_file ? replay->settings->topics.jobs.items[0]
                                   : find_job_topic(replay->settings, letter.topic);
    if (!is_letter) skip(replay, delivery, "it is not a worker's dead letter");
    else if (letter.is_truncated)
        skip(replay, delivery, "it is incomplete: send the job again from its source");
    else if (topic == NULL) skip(replay, delivery, "its job's topic is not in topics.jobs");
    else return send_job(replay, delivery, &letter, topic, err);
    return ERR_OK;
}

/* --- all of them --- */

static bool is_over(const struct replay *replay) {
    bool is_at_end = replay->reader != NULL && reader_has_caught_up(replay->reader);
    return signals_caught_stop() || is_at_end || replay->chosen >= replay->arguments->count;
}

static void print_progress(struct replay *replay) {
    if (clock_ns() < replay->progress_due_ns) return;
    replay->progress_due_ns = clock_ns() + PROGRESS_MS * 1000000ull;
    fprintf(stderr, "gpu-worker replay: %" PRIu64 " read, %" PRIu64 " chosen\n", replay->read,
        replay->chosen);
}

static enum err read_all(struct replay *replay, struct error *err) {
    enum err code = ERR_OK;
    replay->heard_ns = clock_ns();
    replay->progress_due_ns = clock_ns() + PROGRESS_MS * 1000000ull;
    while (code == ERR_OK && !is_over(replay)) {
        struct delivery *delivery;
        code = reader_poll(replay->reader, POLL_MS, &delivery, err);
        if (delivery != NULL) {
            replay->heard_ns = clock_ns();
            code = consider(replay, delivery, err);
            delivery_destroy(delivery);
        } else if (code == ERR_OK && clock_ns() - replay->heard_ns > SILENCE_MS * 1000000ull) {
            code = error_set(err, ERR_BROKER, 0, "check that the brokers run, and try again",
                "no message came from the topic for %d s, but its end was not reached",
                SILENCE_MS / 1000);
        }
        print_progress(replay);
    }
    return code;
}

static enum err read_file(struct replay *replay, struct error *err) {
    struct messages_file *file = NULL;
    const struct delivery *delivery;
    bool is_letter;
    enum err code = messages_file_open(replay->arguments->from, &file, err);
    while (code == ERR_OK && !is_over(replay)) {
        code = messages_file_next(file, &delivery, &is_letter, err);
        if (code != ERR_OK || delivery == NULL) break;
        code = consider(replay, delivery, err);
    }
    messages_file_close(file);
    return code;
}

static void print_summary(const struct replay *replay) {
    bool is_sent = replay->sender != NULL;
    uint64_t sent = is_sent ? sender_sent_count(replay->sender) : replay->chosen;
    if (!replay->arguments->is_json) {
        printf("%s %" PRIu64 " of %" PRIu64 " dead letters; %" PRIu64 " skipped, %" PRIu64
               " not taken by the brokers\n",
            is_sent ? "replayed" : "would replay", sent, replay->read, replay->skipped,
            replay->chosen - sent);
        return;
    }
    struct json_writer json = {.out = stdout};
    json_object(&json, NULL);
    json_uint(&json, is_sent ? "replayed" : "would_replay", sent);
    json_uint(&json, "read", replay->read);
    json_uint(&json, "skipped", replay->skipped);
    json_uint(&json, "not_taken", replay->chosen - sent);
    json_end_line(&json);
}

static int replay(const struct settings *settings, const struct replay_arguments *arguments) {
    const char *topic = arguments->topic != NULL ? arguments->topic : settings->topics.dead_letters;
    struct replay replay = {.settings = settings, .arguments = arguments};
    struct error err, finish_error;
    enum err code = ERR_OK;
    if (arguments->from == NULL)
        code = connect_reader(settings, topic, arguments->since_ms, &replay.reader, &err);
    if (code == ERR_OK && !arguments->dry_run) code = sender_open(settings, &replay.sender, &err);
    if (code == ERR_OK) {
        code = arguments->from != NULL ? read_file(&replay, &err) : read_all(&replay, &err);
        enum err finished =
            replay.sender != NULL ? sender_finish(replay.sender, &finish_error) : ERR_OK;
        if (code == ERR_OK && finished != ERR_OK) {
            code = finished;
            err = finish_error;
        }
        print_summary(&replay);
    }
    reader_destroy(replay.reader);
    sender_close(replay.sender);
    if (code != ERR_OK) return cli_fail_sending("replay", &err);
    if (replay.skipped > 0)
        return cli_fail(CLI_FAILED, "replay",
            "%" PRIu64 " dead letters cannot be replayed; the "
            "lines above say why",
            replay.skipped);
    return CLI_OK;
}

int command_replay(int argc, char **argv) {
    struct replay_arguments arguments = {.until_ms = UINT64_MAX, .count = UINT64_MAX};
    int exit_code;
    if (!parse_arguments(argc, argv, &arguments, &exit_code)) return exit_code;
    struct settings settings;
    exit_code = cli_load_settings("replay", arguments.config, &settings);
    if (exit_code != CLI_OK) return exit_code;
    signals_catch_stop();
    exit_code = replay(&settings, &arguments);
    settings_fini(&settings);
    return exit_code;
}
