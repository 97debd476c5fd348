/* gpu-worker explain: where a job is, or what became of it. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/json_writer.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/findings.h"
#include "cli/ids.h"
#include "cli/options.h"
#include "cli/status_document.h"
#include "cli/when.h"

static const char about[] =
    "Says where the job with this id is, or what became of it: its message, its result, dead\n"
    "letters and cancels, how many messages are before it, and what the worker says that keeps\n"
    "jobs waiting. It reads the topics from --since on, and asks the worker at http.listen, where\n"
    "that is set. It joins no group and changes nothing. An id that a client made of a job's name\n"
    "(NAME:TOKEN) is also found by the name.\n";

static const char examples[] = "example:\n  gpu-worker explain --config worker.yaml job-17\n";

enum { SENTENCES_MAX = 64, SENTENCE_BYTES = 1400 };

static const char DEFAULT_SINCE[] = "1d";

/* What became of it, in a word. */
enum verdict { NOT_FOUND, SUCCEEDED, FAILED, CANCELLED, WAITING, FINISHED };
static const char *const verdict_names[] = {
    "not_found", "succeeded", "failed", "cancelled", "waiting", "finished"};

struct explanation {
    const struct settings *settings;
    const struct findings *findings;
    node status; /* NULL: the worker was not asked, or did not answer */
    enum verdict verdict;
    size_t count;
    char *sentences[SENTENCES_MAX];
};

__attribute__((format(printf, 2, 3))) static void say(
    struct explanation *explanation, const char *format, ...) {
    char text[SENTENCE_BYTES];
    va_list args;
    va_start(args, format);
    text_vformat(text, sizeof text, format, args);
    va_end(args);
    if (explanation->count == SENTENCES_MAX) return;
    char *kept = strdup(text);
    if (kept != NULL) explanation->sentences[explanation->count++] = kept;
}

/* ---- texts ---- */

struct words {
    char text[FINDINGS_TOPIC_BYTES + FINDINGS_ID_BYTES + 96];
};

static struct words time_words(uint64_t unix_ms) {
    struct words ret = {"at an unknown time"};
    time_t seconds = (time_t)(unix_ms / 1000);
    struct tm parts;
    if (unix_ms > 0 && gmtime_r(&seconds, &parts) != NULL)
        strftime(ret.text, sizeof ret.text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    return ret;
}

/* With the job's id, if it was asked for by its name. */
static struct words place_words(const struct explanation *explanation, const struct place *place) {
    struct words ret;
    bool is_named = strcmp(place->id, explanation->findings->asked) != 0;
    text_format(ret.text, sizeof ret.text, "%s/%" PRId32 "/%" PRId64 ", published %s%s%s%s",
        place->topic, place->partition, place->offset, time_words(place->unix_ms).text,
        is_named ? ", under the id '" : "", is_named ? place->id : "", is_named ? "'" : "");
    return ret;
}

/* ---- what became of it ---- */

static void explain_retry(struct explanation *explanation, const struct found_answer *answer) {
    if (strcmp(answer->retry, "worker") == 0)
        say(explanation,
            "The same job may succeed later: send it again, or use `gpu-worker replay --id %s`.",
            answer->place.id);
    else if (strcmp(answer->retry, "sender") == 0)
        say(explanation, "Its sender can make it succeed, by sending something else first, or by "
                         "waiting.");
    else if (answer->retry[0] != 0) say(explanation, "The same job would fail again.");
}

static void explain_answer(struct explanation *explanation, const struct found_answer *answer) {
    const struct words place = place_words(explanation, &answer->place);
    if (answer->is_ok) {
        explanation->verdict = SUCCEEDED;
        say(explanation, "It succeeded. Its result: %s.", place.text);
    } else if (answer->is_dead_letter) {
        if (explanation->verdict == NOT_FOUND) explanation->verdict = FAILED;
        say(explanation, "A dead letter of it (%s): %s.", answer->code, place.text);
    } else {
        bool is_cancelled = strcmp(answer->code, err_code(ERR_CANCELLED)) == 0;
        explanation->verdict = is_cancelled ? CANCELLED : FAILED;
        say(explanation, "It %s with %s: %s", is_cancelled ? "was cancelled and ended" : "failed",
            answer->code, answer->message);
        if (answer->fix[0] != 0) say(explanation, "Fix: %s.", answer->fix);
        if (!is_cancelled) explain_retry(explanation, answer);
        say(explanation, "Its result, which says so: %s.", place.text);
    }
}

/* ---- what it waits for ---- */

static node partition_of(node device, const struct place *place) {
    node partitions = document_get(device, "partitions");
    for (size_t i = 0; i < document_count(partitions); i++) {
        node at = partitions->values[i];
        if (strcmp(document_text(at, "topic"), place->topic) == 0 &&
            document_number(at, "partition") == (uint64_t)place->partition)
            return at;
    }
    return NULL;
}

static void explain_suspended(
    struct explanation *explanation, node device, const struct found_job *job) {
    node suspended = document_get(device, "suspended");
    for (size_t i = 0; i < document_count(suspended); i++) {
        node at = suspended->values[i];
        if (strcmp(document_text(at, "kind"), "program") == 0 &&
            strcmp(document_text(at, "name"), job->program) == 0)
            say(explanation,
                "Its program '%s' is suspended until %s, because its jobs ended executors: the job "
                "will be refused until then. Correct the program, then `gpu-worker resume "
                "--program`.",
                job->program, time_words(document_number(at, "until_unix_ms")).text);
    }
}

static void explain_worker(struct explanation *explanation, const struct found_job *job) {
    node devices = document_get(explanation->status, "devices");
    node problems = document_get(explanation->status, "problems");
    bool is_read = false, is_any_known = false;
    for (size_t i = 0; i < document_count(devices); i++) {
        node device = devices->values[i], partition = partition_of(device, &job->place);
        explain_suspended(explanation, device, job);
        is_any_known = is_any_known || document_count(document_get(device, "now")) > 0;
        if (partition == NULL) continue;
        is_read = true;
        say(explanation,
            "GPU %" PRIu64 " of this worker reads its partition: it has taken %" PRIu64
            " messages of it that are not finished, and the oldest has held up commits for %.0f s.",
            document_number(device, "index"), document_number(partition, "unfinished"),
            document_decimal(document_get(partition, "oldest_s")));
        node now = document_get(device, "now");
        uint64_t rebalances = document_number(document_get(device, "work"), "rebalances");
        if (rebalances > 1)
            say(explanation,
                "There, the group has shared out its partitions %" PRIu64
                " times since this worker started; each time jobs wait.",
                rebalances);
        if (document_number(now, "jobs_starved") > 0)
            say(explanation, "There, %" PRIu64 " jobs wait for memory of the device.",
                document_number(now, "jobs_starved"));
        if (document_number(now, "jobs_retrying") > 0)
            say(explanation, "There, %" PRIu64 " jobs have failed and wait to be tried again.",
                document_number(now, "jobs_retrying"));
    }
    if (!is_read && is_any_known)
        say(explanation, "This worker does not read its partition; another member of the group "
                         "may, or none.");
    for (size_t i = 0; i < document_count(problems); i++)
        if (problems->values[i]->kind == YAML_SCALAR)
            say(explanation, "The worker says: %s.", problems->values[i]->text);
}

static void explain_waiting(struct explanation *explanation, const struct found_job *job) {
    const struct settings *settings = explanation->settings;
    if (job->is_group_known && job->group.is_finished) {
        explanation->verdict = FINISHED;
        say(explanation,
            "It is finished, but no answer is found: retention has deleted the answer, it went to "
            "another topic%s%s, or the group's offsets were moved past it.",
            job->reply_to[0] != 0 ? " such as its reply_to, " : "", job->reply_to);
        return;
    }
    explanation->verdict = WAITING;
    if (job->is_group_known && !job->group.is_any)
        say(explanation,
            "It has no answer yet: the group '%s' has finished nothing of its "
            "partition so far.",
            settings->kafka.group);
    else if (job->is_group_known && job->group.earlier > 0)
        say(explanation,
            "It has no answer yet: %" PRIu64 " messages of its partition before it are not "
            "finished.",
            job->group.earlier);
    else
        say(explanation, "It has no answer yet, and it is the oldest message of its partition that "
                         "is not finished: a worker has it in hand, or takes it next.");
    explain_worker(explanation, job);
}

static void explain_failures(struct explanation *explanation) {
    node devices = document_get(explanation->status, "devices");
    for (size_t d = 0; d < document_count(devices); d++) {
        node failures = document_get(devices->values[d], "failures");
        for (size_t i = 0; i < document_count(failures); i++) {
            node at = failures->values[i];
            struct slice id = slice_of_text(document_text(at, "id"));
            if (!id_answers_to(id, explanation->findings->asked)) continue;
            say(explanation, "The worker remembers a failure of it with %s: %s",
                document_text(at, "code"), document_text(at, "message"));
            if (explanation->findings->answer_count == 0 && document_text(at, "fix")[0] != 0)
                say(explanation, "Fix: %s.", document_text(at, "fix"));
        }
    }
}

static size_t kept(size_t count) {
    return count < FINDINGS_MAX ? count : FINDINGS_MAX;
}

/* Whether what is found is of more than one job, by a name that they share. */
static bool is_of_several(const struct findings *findings) {
    bool ret = false;
    for (size_t i = 1; i < kept(findings->job_count); i++)
        ret = ret || strcmp(findings->jobs[i].place.id, findings->jobs[0].place.id) != 0;
    for (size_t i = 1; i < kept(findings->answer_count); i++)
        ret = ret || strcmp(findings->answers[i].place.id, findings->answers[0].place.id) != 0;
    return ret;
}

static void explain(struct explanation *explanation) {
    const struct findings *findings = explanation->findings;
    const struct words since = time_words(findings->since_ms);
    if (findings->job_count == 0)
        say(explanation,
            "No message of the job topics has the id '%s' since %s. If it was sent earlier, say "
            "--since; if it was sent to another topic, no worker of this configuration reads it.",
            findings->asked, since.text);
    if (is_of_several(findings))
        say(explanation, "Several jobs have this name; ask for one of them by its id.");
    for (size_t i = 0; i < kept(findings->cancel_count); i++)
        say(explanation, "It was asked to be cancelled: %s.",
            place_words(explanation, &findings->cancels[i]).text);
    for (size_t i = 0; i < kept(findings->answer_count); i++)
        explain_answer(explanation, &findings->answers[i]);
    for (size_t i = 0; i < kept(findings->job_count); i++) {
        const struct found_job *job = &findings->jobs[i];
        say(explanation, "Its message: %s%s%s.", place_words(explanation, &job->place).text,
            job->program[0] != 0 ? ", for the program " : "", job->program);
        if (findings_answer_of(findings, &job->place) == NULL) explain_waiting(explanation, job);
    }
    explain_failures(explanation);
    size_t left_out = findings->job_count - kept(findings->job_count) + findings->answer_count -
                      kept(findings->answer_count);
    if (left_out > 0)
        say(explanation, "%zu older messages and answers with this id are left out.", left_out);
}

/* ---- output ---- */

static void write_place(struct json_writer *json, const struct place *place) {
    json_text(json, "id", place->id);
    json_text(json, "topic", place->topic);
    json_int(json, "partition", place->partition);
    json_int(json, "offset", place->offset);
    json_uint(json, "unix_ms", place->unix_ms);
}

static void write_jobs(struct json_writer *json, const struct findings *findings) {
    json_array(json, "jobs");
    for (size_t i = 0; i < kept(findings->job_count); i++) {
        json_object(json, NULL);
        write_place(json, &findings->jobs[i].place);
        json_text(json, "program", findings->jobs[i].program);
        json_text(json, "reply_to", findings->jobs[i].reply_to);
        json_end(json);
    }
    json_end(json);
}

static void write_answers(struct json_writer *json, const struct findings *findings) {
    json_array(json, "answers");
    for (size_t i = 0; i < kept(findings->answer_count); i++) {
        const struct found_answer *answer = &findings->answers[i];
        json_object(json, NULL);
        write_place(json, &answer->place);
        json_text(json, "source", answer->source);
        json_text(json, "code", answer->is_ok ? err_code(ERR_OK) : answer->code);
        json_text(json, "message", answer->message);
        json_text(json, "fix", answer->fix);
        json_text(json, "retry", answer->retry);
        json_bool(json, "is_dead_letter", answer->is_dead_letter);
        json_end(json);
    }
    json_end(json);
}

static void print_json(const struct explanation *explanation) {
    const struct findings *findings = explanation->findings;
    struct json_writer json = {.out = stdout};
    json_object(&json, NULL);
    json_text(&json, "id", findings->asked);
    json_text(&json, "verdict", verdict_names[explanation->verdict]);
    json_array(&json, "sentences");
    for (size_t i = 0; i < explanation->count; i++)
        json_text(&json, NULL, explanation->sentences[i]);
    json_end(&json);
    write_jobs(&json, findings);
    write_answers(&json, findings);
    json_array(&json, "cancels");
    for (size_t i = 0; i < kept(findings->cancel_count); i++) {
        json_object(&json, NULL);
        write_place(&json, &findings->cancels[i]);
        json_end(&json);
    }
    json_end_line(&json);
}

static void print(const struct explanation *explanation, bool is_json) {
    if (is_json) print_json(explanation);
    for (size_t i = 0; i < explanation->count && !is_json; i++) {
        print_safely(explanation->sentences[i], stdout);
        printf("\n");
    }
}

/* ---- the command ---- */

/* Without brokers there is still what the worker says. */
static int fail_reading(struct explanation *explanation, bool is_json, const struct error *err) {
    node problems = document_get(explanation->status, "problems");
    explain_failures(explanation);
    for (size_t i = 0; i < document_count(problems); i++)
        if (problems->values[i]->kind == YAML_SCALAR)
            say(explanation, "The worker says: %s.", problems->values[i]->text);
    print(explanation, is_json);
    return cli_fail_sending("explain", err);
}

static int run(const struct settings *settings, const char *id, uint64_t since_ms, bool is_json) {
    struct findings *findings = calloc(1, sizeof *findings);
    struct status status = {0};
    struct error err, status_err;
    if (findings == NULL) return cli_fail(CLI_FAILED, "explain", "no memory");
    findings->asked = id;
    findings->since_ms = since_ms;
    bool is_asked =
        settings->http.listen[0] != 0 && status_ask(settings, &status, &status_err) == ERR_OK;
    struct explanation explanation = {.settings = settings,
        .findings = findings,
        .status = is_asked ? yaml_root(status.document) : NULL};
    int ret = CLI_OK;
    if (findings_read(settings, id, since_ms, findings, &err) != ERR_OK) {
        ret = fail_reading(&explanation, is_json, &err);
    } else {
        explain(&explanation);
        if (settings->http.listen[0] != 0 && !is_asked && explanation.verdict == WAITING)
            say(&explanation, "The worker cannot be asked: %s; %s.", status_err.message,
                status_err.fix);
        print(&explanation, is_json);
        if (explanation.verdict == NOT_FOUND) ret = CLI_FAILED;
    }
    for (size_t i = 0; i < explanation.count; i++) free(explanation.sentences[i]);
    status_fini(&status);
    free(findings);
    return ret;
}

int command_explain(int argc, char **argv) {
    const char *config = NULL, *since = DEFAULT_SINCE;
    bool is_json = false;
    char **words;
    int ret;
    const struct cli_option options[] = {
        {"config", "FILE", "the worker's, with brokers, topics and http.listen", .text = &config},
        {"since", "WHEN",
            "reads messages published at this time or later: 2026-11-21T08:30:00Z, or how long\n"
            "ago, such as 90s, 15m, 2h or 7d; 1d where it is not given",
            .text = &since},
        {"json", NULL, "one JSON object, which also has places, codes and fixes", .flag = &is_json},
        {0}};
    const struct cli_command command = {
        .name = "explain", .words = "ID", .about = about, .options = options, .examples = examples};
    if (!cli_parse(&command, argc, argv, &words, &ret)) return ret;
    uint64_t since_ms;
    if (words[0][0] == 0) return cli_fail_usage("explain", "an id is not empty");
    if (!when_read(since, clock_unix_ms(), &since_ms))
        return cli_fail_when("explain", "since", since);
    struct settings settings;
    ret = cli_load_settings("explain", config, &settings);
    if (ret != CLI_OK) return ret;
    ret = run(&settings, words[0], since_ms, is_json);
    settings_fini(&settings);
    return ret;
}
