/* gpu-worker resume: shows what is suspended or set aside on this machine, and ends it. */
#include <errno.h>
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/json_writer.h"
#include "base/number.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "quarantine/fetches.h"
#include "quarantine/suspensions.h"

static const char about[] = "Shows the keys and programs that the executors of this machine "
                            "refuse, since too many of their\n"
                            "jobs were convicted (settings: suspend), one a line, with tabs "
                            "between state file, kind, name and\n"
                            "until when. With an option it ends that instead: their jobs are run "
                            "from then on. It works on the\n"
                            "files in state.dir, beside a worker that runs, or without one; each "
                            "machine of a fleet has its own.\n";

static const char examples[] = "example:\n"
                               "  gpu-worker resume --config worker.yaml --program saxpy\n";

struct wish {
    const char *key, *program, *partition;
    bool is_all, is_json;
};

/* What is shown of one state file. */
struct listing {
    const char *path;
    bool is_json;
};

static int count_of(const struct wish *wish) {
    return (wish->key != NULL) + (wish->program != NULL) + (wish->partition != NULL) + wish->is_all;
}

/* One JSON object a line, begun. */
static struct json_writer begin_json(const struct listing *listing, const char *kind) {
    struct json_writer json = {.out = stdout};
    json_object(&json, NULL);
    json_text(&json, "state", listing->path);
    json_text(&json, "kind", kind);
    return json;
}

/* Names come from senders: characters that are not plain text are written as \xNN. */
static void print_name(struct slice name) {
    for (size_t i = 0; i < name.size; i++) {
        uint8_t byte = name.data[i];
        if (byte >= ' ' && byte < 0x7f && byte != '\\') putchar(byte);
        else printf("\\x%02x", byte);
    }
}

static void print_one(void *context, const struct suspension *suspension) {
    const struct listing *listing = context;
    const char *kind = suspension->kind == SUSPENSION_KEY ? "key" : "program";
    if (listing->is_json) {
        struct json_writer json = begin_json(listing, kind);
        json_bytes(&json, "name", suspension->name);
        json_uint(&json, "until_unix_ms", suspension->until_ms);
        json_end_line(&json);
        return;
    }
    time_t until = (time_t)(suspension->until_ms / 1000);
    struct tm parts;
    char text[32] = "?";
    if (gmtime_r(&until, &parts) != NULL) strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
    printf("%s\t%s\t", listing->path, kind);
    print_name(suspension->name);
    printf("\t%s\n", text);
}

static void print_aside(void *context, const char *topic, int32_t partition, int64_t offset) {
    const struct listing *listing = context;
    if (listing->is_json) {
        struct json_writer json = begin_json(listing, "partition");
        json_text(&json, "topic", topic);
        json_int(&json, "partition", partition);
        json_int(&json, "offset", offset);
        json_end_line(&json);
        return;
    }
    printf("%s\tpartition\t%s/%" PRId32 "\toffset %" PRId64 "\n", listing->path, topic, partition,
        offset);
}

/* `name` is TOPIC/N. */
static bool lift_partition(struct state *state, const char *name) {
    const char *slash = strrchr(name, '/');
    uint64_t number;
    if (slash == NULL || number_read(slash + 1, &number) != strlen(slash + 1) || number > INT32_MAX)
        return false;
    char *topic = strndup(name, (size_t)(slash - name));
    bool is_lifted = topic != NULL && fetches_lift(state, topic, (int32_t)number);
    free(topic);
    return is_lifted;
}

static size_t lift(struct state *state, const struct wish *wish) {
    if (wish->partition != NULL) return lift_partition(state, wish->partition);
    if (wish->key != NULL) return suspensions_lift(state, SUSPENSION_KEY, slice_of_text(wish->key));
    if (wish->program != NULL)
        return suspensions_lift(state, SUSPENSION_PROGRAM, slice_of_text(wish->program));
    uint64_t now_ms = clock_unix_ms();
    size_t count = suspensions_count(state, SUSPENSION_KEY, now_ms) +
                   suspensions_count(state, SUSPENSION_PROGRAM, now_ms) +
                   fetches_count_aside(state);
    suspensions_lift_all(state);
    fetches_lift_all(state);
    return count;
}

static enum err resume_file(
    char *path, const struct wish *wish, size_t *lifted, struct error *err) {
    struct state *state;
    bool is_shown = count_of(wish) == 0;
    enum err code = is_shown ? state_watch(path, 0, &state, err) : state_touch(path, &state, err);
    if (code != ERR_OK) return code;
    if (is_shown) {
        struct listing listing = {.path = path, .is_json = wish->is_json};
        suspensions_each(state, clock_unix_ms(), print_one, &listing);
        fetches_each_aside(state, print_aside, &listing);
    } else {
        *lifted += lift(state, wish);
    }
    state_close(state);
    return ERR_OK;
}

static void print_ended(size_t count, bool is_json) {
    if (!is_json) {
        printf("ended %zu\n", count);
        return;
    }
    struct json_writer json = {.out = stdout};
    json_object(&json, NULL);
    json_uint(&json, "ended", count);
    json_end_line(&json);
}

static int resume(const struct settings *settings, const struct wish *wish) {
    char *folder = settings_state_dir(settings), *pattern = NULL;
    if (folder == NULL || asprintf(&pattern, "%s/gpu*.state", folder) < 0) {
        free(folder);
        return cli_fail(CLI_FAILED, "resume", "no memory for a path");
    }
    glob_t files;
    struct error err = {.code = ERR_OK};
    size_t lifted = 0;
    enum err code = ERR_OK;
    int found = glob(pattern, 0, NULL, &files);
    for (size_t i = 0; found == 0 && i < files.gl_pathc && code == ERR_OK; i++)
        code = resume_file(files.gl_pathv[i], wish, &lifted, &err);
    if (found == 0) globfree(&files);
    int ret = code == ERR_OK ? CLI_OK : cli_fail_error("resume", &err);
    if (found != 0)
        ret = cli_fail(
            CLI_FAILED, "resume", "no executor has a state file in %s; see state.dir", folder);
    else if (code == ERR_OK && count_of(wish) > 0) print_ended(lifted, wish->is_json);
    free(pattern);
    free(folder);
    return ret;
}

int command_resume(int argc, char **argv) {
    const char *config = NULL;
    struct wish wish = {0};
    char **words;
    int ret;
    const struct cli_option options[] = {
        {"config", "FILE", "the configuration with state.dir; without it, all defaults",
            .text = &config},
        {"key", "KEY", "run jobs again whose messages have this key", .text = &wish.key},
        {"program", "NAME", "run jobs again that name this program", CLI_OR, .text = &wish.program},
        {"partition", "TOPIC/N", "read a partition again that was set aside", CLI_OR,
            .text = &wish.partition},
        {"all", NULL, "all of these", CLI_OR, .flag = &wish.is_all},
        {"json", NULL, "JSON objects, one a line", .flag = &wish.is_json}, {0}};
    const struct cli_command command = {
        .name = "resume", .about = about, .options = options, .examples = examples};
    if (!cli_parse(&command, argc, argv, &words, &ret)) return ret;
    struct settings settings;
    ret = cli_load_settings("resume", config, &settings);
    if (ret != CLI_OK) return ret;
    ret = resume(&settings, &wish);
    settings_fini(&settings);
    return ret;
}
