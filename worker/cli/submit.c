/* gpu-worker submit: sends one job written as YAML, and prints its result. */
#include <inttypes.h>
#include <libgen.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/yaml.h"
#include "cli/cli.h"
#include "cli/job_set.h"
#include "cli/local_job.h"
#include "cli/options.h"
#include "cli/sender.h"
#include "decode/answer.h"
#include "decode/job_yaml.h"
#include "decode/npy.h"
#include "decode/print.h"
#include "decode/print_json.h"
#include "pipeline/connect.h"

static const char about[] =
    "Sends a job that is written as YAML and prints its result; fails where the job fails. `-` is "
    "standard\n"
    "input. Data is given as {f32: [1, 2]} (f64, i32, u32, i64, u64, u8 alike), {file: x.bin} or\n"
    "{hex: \"00ff\"}.\n";

static const char examples[] =
    "examples:\n"
    "  gpu-worker submit --config worker.yaml config/examples/saxpy.yaml\n"
    "  gpu-worker submit --local --driver cpu --set a=5 --out y.npy config/examples/saxpy.yaml\n";

enum { TIMEOUT_S_MAX = 365 * 86400 };

struct submit_arguments {
    const char *config, *topic, *job, *driver;
    uint64_t timeout_s;
    bool encode, local, json;
    struct cli_values sets, outs;
};

/* The job as a message. */
struct submission {
    uint8_t *bytes;
    size_t size;
};

/* False where the command ends with *ret_exit. */
static bool parse_arguments(int argc, char **argv, struct submit_arguments *ret, int *ret_exit) {
    char **words;
    const struct cli_option options[] = {
        {"config", "FILE", "the configuration with brokers and topics; without it, all defaults",
            .text = &ret->config},
        {"topic", "NAME", "job topic; the first of topics.jobs if not given", .text = &ret->topic},
        {"local", NULL, "run it here, in a worker that is started for it, without any broker",
            CLI_OR, .flag = &ret->local},
        {"driver", "cuda|cpu", "overrides `driver` of that worker", .with = "local",
            .text = &ret->driver},
        {"set", "NAME=VALUE",
            "another value for this argument of the job's kernels; may be given several times",
            .values = &ret->sets},
        {"out", "[NAME=]FILE",
            "write the output, or the one of that name, for numpy.load(); may be given several\n"
            "times",
            .values = &ret->outs},
        {"json", NULL, "print the result as a line of JSON", .flag = &ret->json},
        {"timeout", "SECONDS", "how long to wait for the result (30)", .number = &ret->timeout_s},
        {"encode", NULL,
            "write the job's message to standard output and send nothing: input for\n"
            "gpu-worker run --jobs",
            .flag = &ret->encode},
        {0}};
    const struct cli_command command = {.name = "submit",
        .words = "JOB.yaml",
        .about = about,
        .options = options,
        .examples = examples};
    if (!cli_parse(&command, argc, argv, &words, ret_exit)) return false;
    ret->job = words[0];
    enum driver_choice driver;
    if (ret->timeout_s == 0 || ret->timeout_s > TIMEOUT_S_MAX)
        *ret_exit = cli_fail_usage("submit", "--timeout is 1 to %d seconds", TIMEOUT_S_MAX);
    else if (ret->encode && (ret->local || ret->topic != NULL || ret->json || ret->outs.count > 0))
        *ret_exit = cli_fail_usage("submit",
            "--encode runs nothing: --topic, --local, --json and --out mean nothing then");
    else if (!cli_read_driver(ret->driver, &driver))
        *ret_exit = cli_fail_usage("submit", "--driver is cuda or cpu, not '%s'", ret->driver);
    return *ret_exit == CLI_OK;
}

static enum err encode_document(const struct yaml_document *document, const char *path,
    struct problems *problems, struct submission *ret, struct error *err) {
    const struct yaml_node *id = yaml_get(yaml_root(document), "id");
    if (id == NULL || id->kind != YAML_SCALAR)
        return error_set(err, ERR_BAD_JOB, 0, "add `id: some-name`", "%s: the job has no id", path);
    char *folder = strdup(path);
    enum err code = ERR_OK;
    if (folder == NULL) code = error_no_memory(err, "no memory for the job");
    else code = job_yaml_encode(document, dirname(folder), problems, &ret->bytes, &ret->size, err);
    free(folder);
    return code;
}

static int encode(const struct settings *settings, const struct submit_arguments *arguments,
    struct submission *ret) {
    const char *path = arguments->job;
    struct problems problems;
    struct error err;
    problems_init(&problems);
    int exit_code = CLI_OK;
    struct yaml_document *document = yaml_load(path, YAML_EXPAND_VARIABLES, &problems);
    enum err code = ERR_OK;
    if (document != NULL) code = job_set(document, &arguments->sets, settings, &problems, &err);
    if (document != NULL && code == ERR_OK)
        code = encode_document(document, path, &problems, ret, &err);
    if (problems.count > 0) exit_code = cli_fail_problems("submit", &problems);
    else if (code != ERR_OK) exit_code = cli_fail_sending("submit", &err);
    yaml_destroy(document);
    problems_fini(&problems);
    return exit_code;
}

/* `ret_source` becomes the job's position as its result names it, because another job may have the
 * same id. The caller frees it. */
static enum err send_job(const struct settings *settings, const char *topic,
    const struct submission *submission, char **ret_source, struct error *err) {
    int32_t partition;
    int64_t offset;
    struct sender *sender;
    enum err code = sender_open(settings, &sender, err);
    if (code != ERR_OK) return code;
    const struct delivery message = {.payload = slice_of(submission->bytes, submission->size)};
    code = sender_send(sender, topic, &message, err);
    if (code == ERR_OK) code = sender_finish(sender, err);
    if (code == ERR_OK) sender_last_place(sender, &partition, &offset);
    sender_close(sender);
    if (code != ERR_OK) return code;
    if (asprintf(ret_source, "%s/%" PRId32 "/%" PRId64, topic, partition, offset) >= 0)
        return ERR_OK;
    *ret_source = NULL;
    return error_no_memory(err, "no memory for the job");
}

static bool answers(const struct delivery *delivery, const char *source) {
    struct slice value;
    return delivery_header(delivery, "gpu-worker-source", &value) && slice_is_text(value, source);
}

/* Prints the result, and writes its outputs; CLI_OK if the job succeeded. */
static int show_result(const struct submit_arguments *arguments,
    const struct submission *submission, struct slice result) {
    struct error err;
    bool is_ok;
    if (answer_check(slice_of(submission->bytes, submission->size), result, &is_ok, &err) != ERR_OK)
        return cli_fail(CLI_FAILED, "submit", "%s; %s", err.message, err.fix);
    if (arguments->json) {
        print_message_json(result, stdout);
        printf("\n");
    } else {
        print_message_payload(result, stdout);
    }
    if (!is_ok) return CLI_FAILED;
    if (arguments->outs.count == 0 ||
        npy_write(result, arguments->outs.items, arguments->outs.count, &err) == ERR_OK)
        return CLI_OK;
    return cli_fail(CLI_FAILED, "submit", "%s; %s", err.message, err.fix);
}

static int await_result(struct reader *reader, const char *source,
    const struct submit_arguments *arguments, const struct submission *submission) {
    uint64_t until = clock_ns() + arguments->timeout_s * 1000000000u;
    while (clock_ns() < until) {
        struct delivery *delivery = NULL;
        struct error err;
        if (reader_poll(reader, 100, &delivery, &err) != ERR_OK)
            return cli_fail_sending("submit", &err);
        if (delivery != NULL && answers(delivery, source)) {
            int exit_code = show_result(arguments, submission, delivery->payload);
            delivery_destroy(delivery);
            return exit_code;
        }
        delivery_destroy(delivery);
    }
    return cli_fail(CLI_FAILED, "submit",
        "no result within %" PRIu64 " s; check that a worker runs and reads the topic",
        arguments->timeout_s);
}

static int submit(const struct settings *settings, const struct submit_arguments *arguments,
    const struct submission *submission) {
    const char *topic =
        arguments->topic != NULL ? arguments->topic : settings->topics.jobs.items[0];
    struct reader *reader;
    struct error err;
    char *source = NULL;
    /* opens the reader first: the result may arrive before the acknowledgement of the job */
    enum err code = connect_check_topic(settings, topic, &err);
    if (code == ERR_OK)
        code = connect_reader(settings, settings->topics.results, READER_FROM_NOW, &reader, &err);
    if (code != ERR_OK) return cli_fail_sending("submit", &err);
    code = send_job(settings, topic, submission, &source, &err);
    int exit_code = code == ERR_OK ? await_result(reader, source, arguments, submission)
                                   : cli_fail_sending("submit", &err);
    free(source);
    reader_destroy(reader);
    return exit_code;
}

static int run_here(const struct submit_arguments *arguments, const struct submission *submission) {
    const struct local_job job = {.config = arguments->config,
        .driver = arguments->driver,
        .message = slice_of(submission->bytes, submission->size),
        .timeout_s = arguments->timeout_s};
    struct error err;
    uint8_t *result;
    size_t size;
    if (local_job_run(&job, &result, &size, &err) != ERR_OK)
        return cli_fail(CLI_FAILED, "submit", "%s; %s", err.message, err.fix);
    int exit_code = show_result(arguments, submission, slice_of(result, size));
    free(result);
    return exit_code;
}

static int write_bytes(const struct submission *submission) {
    if (fwrite(submission->bytes, 1, submission->size, stdout) == submission->size &&
        fflush(stdout) == 0)
        return CLI_OK;
    return cli_fail(CLI_FAILED, "submit", "cannot write to standard output");
}

int command_submit(int argc, char **argv) {
    struct submit_arguments arguments = {.timeout_s = 30};
    int exit_code;
    if (!parse_arguments(argc, argv, &arguments, &exit_code)) return exit_code;

    struct settings settings;
    struct submission submission = {0};
    exit_code = cli_load_settings("submit", arguments.config, &settings);
    if (exit_code != CLI_OK) return exit_code;
    exit_code = encode(&settings, &arguments, &submission);
    if (exit_code == CLI_OK && arguments.encode) exit_code = write_bytes(&submission);
    else if (exit_code == CLI_OK && arguments.local) exit_code = run_here(&arguments, &submission);
    else if (exit_code == CLI_OK) exit_code = submit(&settings, &arguments, &submission);
    free(submission.bytes);
    settings_fini(&settings);
    return exit_code;
}
