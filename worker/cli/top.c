/* gpu-worker top: what a running worker does, in a terminal. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/yaml.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/options.h"

static const char about[] =
    "Shows what the worker of this configuration does, every two seconds, until Ctrl-C: devices,\n"
    "jobs, stage times, lag, dead letters and the last failures. It asks /status.json at\n"
    "http.listen. Where its output is no terminal, it shows that once.\n";

static const char examples[] = "example:\n  gpu-worker top --config worker.yaml\n";

enum { EVERY_S = 2, PARTITIONS_MAX = 8, FAILURES_MAX = 3, BUCKETS_MAX = 64 };

typedef const struct yaml_node *node;

/* What a look leaves for the next. */
struct look {
    uint64_t answered, unix_ms;
};

/* ---- what stands in a document; what does not, reads as nothing ---- */

static uint64_t number(node at, const char *key) {
    uint64_t ret = 0;
    node value = yaml_get(at, key);
    return value != NULL && yaml_read_uint(value, &ret) ? ret : 0;
}

static double decimal(node at) {
    return at != NULL && at->kind == YAML_SCALAR ? strtod(at->text, NULL) : 0;
}

static const char *text(node at, const char *key) {
    node value = yaml_get(at, key);
    return value != NULL && value->kind == YAML_SCALAR ? value->text : "";
}

static bool is_true(node at, const char *key) {
    return strcmp(text(at, key), "true") == 0;
}

static size_t count_of(node list) {
    return list != NULL && list->kind != YAML_SCALAR ? list->count : 0;
}

/* ---- writing ---- */

/* Senders wrote it: no byte of it steers a terminal, C1 in UTF-8 included. */
static void write_text(const char *words) {
    const unsigned char *at = (const unsigned char *)words;
    for (; *at != 0; at++) {
        bool is_c1 = at[0] == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0;
        putchar(*at < ' ' || *at == 0x7f || is_c1 ? '?' : *at);
        if (is_c1) at++;
    }
}

static void write_bytes(uint64_t bytes) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    size_t unit = 0;
    for (; value >= 1024 && unit < 4; unit++) value /= 1024;
    printf(unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
}

static void write_seconds(double seconds, int width) {
    if (seconds < 1e-3) printf("%*.0f us", width, seconds * 1e6);
    else if (seconds < 1) printf("%*.1f ms", width, seconds * 1e3);
    else if (seconds < 7200) printf("%*.1f s ", width, seconds);
    else printf("%*.1f h ", width, seconds / 3600);
}

static uint64_t sum_of_codes(node codes) {
    uint64_t ret = 0, value;
    for (size_t i = 0; i < count_of(codes); i++)
        if (yaml_read_uint(codes->values[i], &value)) ret += value;
    return ret;
}

/* ---- parts ---- */

static void write_device(node device) {
    node executor = yaml_get(device, "executor"), now = yaml_get(device, "now");
    const char *reason = text(device, "reason");
    if (reason[0] == 0) reason = text(executor, "trouble");
    printf("GPU %-3" PRIu64 " %-10s", number(device, "index"), text(device, "standing"));
    write_text(text(device, "name"));
    if (reason[0] != 0) {
        printf("  (");
        write_text(reason);
        printf(")");
    }
    printf("\n  executor: process %" PRIu64 ", ", number(executor, "pid"));
    write_bytes(number(executor, "resident_bytes"));
    printf(", started %" PRIu64 " times\n", number(executor, "starts"));
    if (count_of(now) == 0) return;
    printf("  in flight %" PRIu64 ": ready %" PRIu64 ", waiting for memory %" PRIu64
           ", for a retry %" PRIu64 "; device pool ",
        number(now, "jobs_in_flight"), number(now, "jobs_ready"), number(now, "jobs_starved"),
        number(now, "jobs_retrying"));
    write_bytes(number(now, "device_pool_live_bytes") + number(now, "device_pool_cached_bytes"));
    printf(" of ");
    write_bytes(number(now, "device_budget_bytes"));
    printf("\n");
}

/* Straight from one bound to the next within the bucket; what is above all counts as the last. */
static double quantile(const uint64_t *buckets, node bounds, uint64_t total, double share) {
    double rest = share * (double)total, low = 0;
    for (size_t i = 0; i < count_of(bounds) && i < BUCKETS_MAX; i++) {
        double high = decimal(bounds->values[i]), here = (double)buckets[i];
        if (here > 0 && rest <= here) return low + (high - low) * rest / here;
        rest -= here;
        low = high;
    }
    return low;
}

static void write_stages(node status) {
    static const char *const stages[] = {
        "queue", "decode", "prepare", "device", "publish", "total"};
    node devices = yaml_get(status, "devices"), bounds = yaml_get(status, "bounds_s");
    printf("\nstage        half within   99 %% within\n");
    for (size_t s = 0; s < sizeof stages / sizeof stages[0]; s++) {
        uint64_t buckets[BUCKETS_MAX] = {0}, total = 0, value;
        for (size_t d = 0; d < count_of(devices); d++) {
            node stage = yaml_get(yaml_get(devices->values[d], "stages"), stages[s]);
            node list = yaml_get(stage, "buckets");
            for (size_t i = 0; i < count_of(list) && i < BUCKETS_MAX; i++) {
                if (!yaml_read_uint(list->values[i], &value)) continue;
                buckets[i] += value;
                total += value;
            }
        }
        printf("%-12s", stages[s]);
        if (total == 0) printf("            -             -");
        for (int i = 0; i < 2 && total > 0; i++)
            write_seconds(quantile(buckets, bounds, total, i == 0 ? 0.5 : 0.99), 9 + i);
        printf("\n");
    }
}

static void write_partitions(node device) {
    node partitions = yaml_get(device, "partitions");
    size_t count = count_of(partitions);
    for (size_t i = 0; i < count && i < PARTITIONS_MAX; i++) {
        node at = partitions->values[i];
        printf("  ");
        write_text(text(at, "topic"));
        printf("/%" PRIu64 ": lag ", number(at, "partition"));
        write_text(strcmp(text(at, "lag"), "null") == 0 ? "not known" : text(at, "lag"));
        printf(", taken %" PRIu64 ", oldest ", number(at, "unfinished"));
        write_seconds(decimal(yaml_get(at, "oldest_s")), 0);
        printf("\n");
    }
    if (count > PARTITIONS_MAX) printf("  and %zu more partitions\n", count - PARTITIONS_MAX);
}

static void write_failures(node device) {
    node failures = yaml_get(device, "failures");
    for (size_t i = 0; i < count_of(failures) && i < FAILURES_MAX; i++) {
        node at = failures->values[i];
        printf("  ");
        write_text(text(at, "code"));
        printf(", job ");
        write_text(text(at, "id")[0] != 0 ? text(at, "id") : "(cannot be read)");
        printf(": ");
        write_text(text(at, "message"));
        if (text(at, "fix")[0] != 0) {
            printf("\n    fix: ");
            write_text(text(at, "fix"));
        }
        printf("\n");
    }
}

static void write_jobs(node status, struct look *look) {
    node devices = yaml_get(status, "devices");
    uint64_t answered = 0, dead = 0, lag = 0, unix_ms = number(status, "unix_ms");
    for (size_t d = 0; d < count_of(devices); d++) {
        node device = devices->values[d], jobs = yaml_get(device, "jobs");
        node partitions = yaml_get(device, "partitions");
        for (size_t i = 0; i < count_of(jobs); i++) answered += number(jobs->values[i], "count");
        for (size_t i = 0; i < count_of(partitions); i++)
            lag += number(partitions->values[i], "lag");
        dead += sum_of_codes(yaml_get(device, "dead_letters"));
    }
    printf("\n%" PRIu64 " answered, %" PRIu64 " dead letters, lag %" PRIu64, answered, dead, lag);
    if (look->unix_ms != 0 && unix_ms > look->unix_ms && answered >= look->answered)
        printf(", %.0f jobs a second",
            (double)(answered - look->answered) * 1000 / (double)(unix_ms - look->unix_ms));
    printf("\n");
    *look = (struct look){.answered = answered, .unix_ms = unix_ms};
}

static void write_status(node status, struct look *look) {
    node problems = yaml_get(status, "problems"), devices = yaml_get(status, "devices");
    printf("gpu-worker %s: %s\n", text(status, "version"),
        is_true(status, "is_stopping") ? "stops"
        : is_true(status, "is_ready")  ? "ready"
                                       : "not ready");
    for (size_t i = 0; i < count_of(problems); i++) {
        printf("! ");
        if (problems->values[i]->kind == YAML_SCALAR) write_text(problems->values[i]->text);
        printf("\n");
    }
    printf("\n");
    for (size_t d = 0; d < count_of(devices); d++) {
        write_device(devices->values[d]);
        write_partitions(devices->values[d]);
    }
    write_jobs(status, look);
    write_stages(status);
    printf("\nlast failures\n");
    for (size_t d = 0; d < count_of(devices); d++) write_failures(devices->values[d]);
}

/* ---- the command ---- */

static int show(
    const struct settings *settings, bool is_json, bool is_terminal, struct look *look) {
    struct problems problems;
    struct error err;
    char *page;
    size_t size;
    if (ask_worker(settings, "/status.json", &page, &size, &err) != ERR_OK)
        return cli_fail_error("top", &err);
    if (is_json) {
        fwrite(page, 1, size, stdout);
        free(page);
        return CLI_OK;
    }
    problems_init(&problems);
    struct yaml_document *document =
        yaml_parse("/status.json", slice_of(page, size), YAML_KEEP_VARIABLES, &problems);
    int ret = CLI_OK;
    if (is_terminal) printf("\033[H\033[2J");
    if (document != NULL) write_status(yaml_root(document), look);
    else ret = cli_fail_problems("top", &problems);
    fflush(stdout);
    yaml_destroy(document);
    problems_fini(&problems);
    free(page);
    return ret;
}

int command_top(int argc, char **argv) {
    const char *config = NULL;
    bool is_json = false;
    char **words;
    int ret;
    const struct cli_option options[] = {
        {"config", "FILE", "of the worker, with its http.listen", .text = &config},
        {"json", NULL, "prints /status.json as it is, once", .flag = &is_json}, {0}};
    const struct cli_command command = {
        .name = "top", .about = about, .options = options, .examples = examples};
    if (!cli_parse(&command, argc, argv, &words, &ret)) return ret;
    struct settings settings;
    struct look look = {0};
    ret = cli_load_settings("top", config, &settings);
    if (ret != CLI_OK) return ret;
    bool is_terminal = !is_json && isatty(STDOUT_FILENO) == 1;
    do ret = show(&settings, is_json, is_terminal, &look);
    while (ret == CLI_OK && is_terminal && sleep(EVERY_S) == 0);
    settings_fini(&settings);
    return ret;
}
