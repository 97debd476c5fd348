/* gpu-worker top: what a running worker does, in a terminal. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/options.h"
#include "cli/screen.h"
#include "cli/status_document.h"

static const char about[] =
    "Shows what the worker of this configuration does, every two seconds, until Ctrl-C: devices,\n"
    "jobs, stage times, lag, dead letters and the last failures. It asks /status.json at\n"
    "http.listen. Where its output is no terminal, or TERM is dumb, it shows that once.\n";

static const char examples[] = "example:\n  gpu-worker top --config worker.yaml\n";

enum { EVERY_S = 2, PARTITIONS_MAX = 8, FAILURES_MAX = 3, BUCKETS_MAX = 64 };

/* What a look leaves for the next. */
struct look {
    uint64_t answered, unix_ms;
};

/* ---- writing ---- */

static void write_bytes(uint64_t bytes, FILE *out) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    size_t unit = 0;
    for (; value >= 1024 && unit < 4; unit++) value /= 1024;
    fprintf(out, unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
}

static void write_seconds(double seconds, int width, FILE *out) {
    if (seconds < 1e-3) fprintf(out, "%*.0f us", width, seconds * 1e6);
    else if (seconds < 1) fprintf(out, "%*.1f ms", width, seconds * 1e3);
    else if (seconds < 7200) fprintf(out, "%*.1f s ", width, seconds);
    else fprintf(out, "%*.1f h ", width, seconds / 3600);
}

static uint64_t sum_of_codes(node codes) {
    uint64_t ret = 0, value;
    for (size_t i = 0; i < document_count(codes); i++)
        if (yaml_read_uint(codes->values[i], &value)) ret += value;
    return ret;
}

/* ---- parts ---- */

/* Nothing where nobody measures it. */
static void write_usage(node usage, FILE *out) {
    if (strcmp(document_text(usage, "memory_bytes"), "null") == 0 || usage == NULL) return;
    fprintf(out, "  device: ");
    write_bytes(document_number(usage, "memory_used_bytes"), out);
    fprintf(out, " of ");
    write_bytes(document_number(usage, "memory_bytes"), out);
    if (strcmp(document_text(usage, "utilisation_percent"), "null") != 0)
        fprintf(out, ", %" PRIu64 " %% busy", document_number(usage, "utilisation_percent"));
    if (strcmp(document_text(usage, "temperature_celsius"), "null") != 0)
        fprintf(out, ", %" PRIu64 " C", document_number(usage, "temperature_celsius"));
    if (strcmp(document_text(usage, "power_milliwatts"), "null") != 0)
        fprintf(out, ", %" PRIu64 " W", document_number(usage, "power_milliwatts") / 1000);
    if (document_number(usage, "ecc_uncorrected") > 0)
        fprintf(out, ", %" PRIu64 " memory errors", document_number(usage, "ecc_uncorrected"));
    fprintf(out, "\n");
}

/* Nothing where none is kept. */
static void write_spare(node spare, FILE *out) {
    if (document_count(spare) == 0) return;
    uint64_t pid = document_number(spare, "pid");
    bool is_ready = strcmp(document_text(spare, "is_ready"), "true") == 0;
    fprintf(out, "  spare: %s", pid == 0 ? "none" : is_ready ? "ready" : "starting");
    if (pid != 0) fprintf(out, ", process %" PRIu64 ", ", pid);
    if (pid != 0) write_bytes(document_number(spare, "resident_bytes"), out);
    fprintf(out, "\n");
}

static void write_device(node device, FILE *out) {
    node executor = document_get(device, "executor"), now = document_get(device, "now");
    const char *reason = document_text(device, "reason");
    if (reason[0] == 0) reason = document_text(executor, "trouble");
    fprintf(out, "GPU %-3" PRIu64 " %-10s", document_number(device, "index"),
        document_text(device, "standing"));
    const char *name = document_text(device, "name");
    print_safely(name[0] != 0 ? name : document_text(device, "uuid"), out);
    if (reason[0] != 0) {
        fprintf(out, "  (");
        print_safely(reason, out);
        fprintf(out, ")");
    }
    uint64_t pid = document_number(executor, "pid");
    fprintf(out, pid != 0 ? "\n  executor: process %" PRIu64 ", " : "\n  executor: none", pid);
    if (pid != 0) write_bytes(document_number(executor, "resident_bytes"), out);
    uint64_t starts = document_number(executor, "starts");
    fprintf(out, ", started %" PRIu64 " time%s\n", starts, starts == 1 ? "" : "s");
    write_spare(document_get(device, "spare"), out);
    write_usage(document_get(device, "usage"), out);
    if (document_count(now) == 0) return;
    fprintf(out, "  %" PRIu64 " of %" PRIu64 " lanes busy; device pool ",
        document_number(device, "busy_lanes"), document_number(device, "lanes"));
    write_bytes(document_number(now, "device_pool_live_bytes") +
                    document_number(now, "device_pool_cached_bytes"),
        out);
    fprintf(out, " of ");
    write_bytes(document_number(now, "device_budget_bytes"), out);
    uint64_t rebalances = document_number(document_get(device, "work"), "rebalances");
    if (rebalances > 1) fprintf(out, "; %" PRIu64 " rebalances", rebalances);
    fprintf(out,
        "\n  in flight %" PRIu64 ": long %" PRIu64 ", ready %" PRIu64
        ", waiting for memory %" PRIu64 ", for a retry %" PRIu64 "\n",
        document_number(now, "jobs_in_flight"), document_number(now, "jobs_long"),
        document_number(now, "jobs_ready"), document_number(now, "jobs_starved"),
        document_number(now, "jobs_retrying"));
}

/* Straight from one bound to the next within the bucket; what is above all counts as the last. */
static double quantile(const uint64_t *buckets, node bounds, uint64_t total, double share) {
    double rest = share * (double)total, low = 0;
    for (size_t i = 0; i < document_count(bounds) && i < BUCKETS_MAX; i++) {
        double high = document_decimal(bounds->values[i]), here = (double)buckets[i];
        if (here > 0 && rest <= here) return low + (high - low) * rest / here;
        rest -= here;
        low = high;
    }
    return low;
}

static void write_stages(node status, FILE *out) {
    static const char *const stages[] = {
        "queue", "decode", "prepare", "device", "publish", "total"};
    node devices = document_get(status, "devices"), bounds = document_get(status, "bounds_s");
    fprintf(out, "\nstage        half within   99 %% within\n");
    for (size_t s = 0; s < sizeof stages / sizeof stages[0]; s++) {
        uint64_t buckets[BUCKETS_MAX] = {0}, total = 0, value;
        for (size_t d = 0; d < document_count(devices); d++) {
            node stage = document_get(document_get(devices->values[d], "stages"), stages[s]);
            node list = document_get(stage, "buckets");
            for (size_t i = 0; i < document_count(list) && i < BUCKETS_MAX; i++) {
                if (!yaml_read_uint(list->values[i], &value)) continue;
                buckets[i] += value;
                total += value;
            }
        }
        fprintf(out, "%-12s", stages[s]);
        if (total == 0) fprintf(out, "            -             -");
        for (int i = 0; i < 2 && total > 0; i++)
            write_seconds(quantile(buckets, bounds, total, i == 0 ? 0.5 : 0.99), 9 + i, out);
        fprintf(out, "\n");
    }
}

static void write_partitions(node device, FILE *out) {
    node partitions = document_get(device, "partitions");
    size_t count = document_count(partitions);
    for (size_t i = 0; i < count && i < PARTITIONS_MAX; i++) {
        node at = partitions->values[i];
        fprintf(out, "  ");
        print_safely(document_text(at, "topic"), out);
        fprintf(out, "/%" PRIu64 ": lag ", document_number(at, "partition"));
        print_safely(
            strcmp(document_text(at, "lag"), "null") == 0 ? "not known" : document_text(at, "lag"),
            out);
        fprintf(out, ", taken %" PRIu64, document_number(at, "unfinished"));
        double oldest_s = document_decimal(document_get(at, "oldest_s"));
        if (oldest_s > 0) fprintf(out, ", oldest ");
        if (oldest_s > 0) write_seconds(oldest_s, 0, out);
        fprintf(out, "\n");
    }
    if (count > PARTITIONS_MAX) fprintf(out, "  and %zu more partitions\n", count - PARTITIONS_MAX);
}

static bool is_said_again(node failures, size_t index) {
    const char *message = document_text(failures->values[index], "message");
    for (size_t i = 0; i < index; i++)
        if (strcmp(document_text(failures->values[i], "message"), message) == 0) return true;
    return false;
}

/* Of those that say the same, the newest. */
static void write_failures(node device, FILE *out) {
    node failures = document_get(device, "failures");
    size_t shown = 0;
    for (size_t i = 0; i < document_count(failures) && shown < FAILURES_MAX; i++) {
        node at = failures->values[i];
        if (is_said_again(failures, i)) continue;
        shown++;
        fprintf(out, "  ");
        print_safely(document_text(at, "code"), out);
        fprintf(out, ", job ");
        print_safely(
            document_text(at, "id")[0] != 0 ? document_text(at, "id") : "(cannot be read)", out);
        fprintf(out, ": ");
        print_safely(document_text(at, "message"), out);
        if (document_text(at, "fix")[0] != 0) {
            fprintf(out, "\n    fix: ");
            print_safely(document_text(at, "fix"), out);
        }
        fprintf(out, "\n");
    }
}

static void write_suspended(node device, FILE *out) {
    node suspended = document_get(device, "suspended");
    for (size_t i = 0; i < document_count(suspended); i++) {
        node at = suspended->values[i];
        fprintf(out, "  suspended: ");
        print_safely(document_text(at, "kind"), out);
        fprintf(out, " ");
        print_safely(document_text(at, "name"), out);
        fprintf(out, "\n");
    }
}

static void write_jobs(node status, struct look *look, FILE *out) {
    node devices = document_get(status, "devices");
    uint64_t answered = 0, dead = 0, lag = 0, unix_ms = document_number(status, "unix_ms");
    for (size_t d = 0; d < document_count(devices); d++) {
        node device = devices->values[d], jobs = document_get(device, "jobs");
        node partitions = document_get(device, "partitions");
        for (size_t i = 0; i < document_count(jobs); i++)
            answered += document_number(jobs->values[i], "count");
        for (size_t i = 0; i < document_count(partitions); i++)
            lag += document_number(partitions->values[i], "lag");
        dead += sum_of_codes(document_get(device, "dead_letters"));
    }
    fprintf(
        out, "\n%" PRIu64 " answered, %" PRIu64 " dead letters, lag %" PRIu64, answered, dead, lag);
    if (look->unix_ms != 0 && unix_ms > look->unix_ms && answered >= look->answered)
        fprintf(out, ", %.0f jobs a second",
            (double)(answered - look->answered) * 1000 / (double)(unix_ms - look->unix_ms));
    fprintf(out, "\n");
    *look = (struct look){.answered = answered, .unix_ms = unix_ms};
}

static void write_status(node status, struct look *look, FILE *out) {
    node problems = document_get(status, "problems"), devices = document_get(status, "devices");
    fprintf(out, "gpu-worker %s: %s\n", document_text(status, "version"),
        document_is_true(status, "is_stopping") ? "stops"
        : document_is_true(status, "is_ready")  ? "ready"
                                                : "not ready");
    for (size_t i = 0; i < document_count(problems); i++) {
        fprintf(out, "! ");
        if (problems->values[i]->kind == YAML_SCALAR) print_safely(problems->values[i]->text, out);
        fprintf(out, "\n");
    }
    fprintf(out, "\n");
    for (size_t d = 0; d < document_count(devices); d++) {
        write_device(devices->values[d], out);
        write_partitions(devices->values[d], out);
        write_suspended(devices->values[d], out);
    }
    write_jobs(status, look, out);
    write_stages(status, out);
    size_t failures = 0;
    for (size_t d = 0; d < document_count(devices); d++)
        failures += document_count(document_get(devices->values[d], "failures"));
    fprintf(out, "\nlast failures%s\n", failures == 0 ? ": none" : "");
    for (size_t d = 0; d < document_count(devices); d++) write_failures(devices->values[d], out);
}

/* ---- the command ---- */

/* False: there was no memory for the page. */
static bool draw(node status, struct look *look) {
    char *page = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&page, &size);
    if (out == NULL) return false;
    write_status(status, look, out);
    bool is_whole = fclose(out) == 0;
    if (is_whole) screen_draw(page, size);
    free(page);
    return is_whole;
}

static int show(const struct settings *settings, bool is_json, bool is_screen, struct look *look) {
    struct status status;
    struct error err;
    enum err code = status_ask(settings, &status, &err);
    if (code != ERR_OK) return cli_fail_error("top", &err);
    if (is_json) fwrite(status.page, 1, status.size, stdout);
    else if (!is_screen) write_status(yaml_root(status.document), look, stdout);
    else if (!draw(yaml_root(status.document), look))
        code = error_no_memory(&err, "no memory for a page");
    status_fini(&status);
    return code == ERR_OK ? CLI_OK : cli_fail_error("top", &err);
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
    bool is_screen = !is_json && screen_open();
    ret = show(&settings, is_json, is_screen, &look);
    while (ret == CLI_OK && is_screen) {
        screen_wait(EVERY_S);
        ret = show(&settings, is_json, is_screen, &look);
    }
    settings_fini(&settings);
    return ret;
}
