#include "settings/table.h"

#include <string.h>

#include "base/invariant.h"
#include "settings/settings.h"

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)
#define TIB ((uint64_t)1 << 40)
#define SECOND 1000u
#define HOUR (3600u * SECOND)

static const char *const driver_names[] = {[DRIVER_CUDA] = "cuda", [DRIVER_CPU] = "cpu", NULL};
static const char *const broker_names[] = {
    [BROKER_KAFKA] = "kafka", [BROKER_EMBEDDED] = "embedded", NULL};
static const char *const delivery_names[] = {
    [AT_LEAST_ONCE] = "at_least_once", [EXACTLY_ONCE] = "exactly_once", NULL};
static const char *const ordering_names[] = {
    [ORDERING_NONE] = "none", [ORDERING_KEY] = "key", NULL};
static const char *const stream_names[] = {
    [STREAM_MAPPED] = "mapped", [STREAM_COPIED] = "copied", NULL};
static const char *const isolation_names[] = {
    [ISOLATE_NONE] = "none", [ISOLATE_PROGRAM] = "program", [ISOLATE_KEY] = "key", NULL};
static const char *const core_dumps_names[] = {
    [CORE_DUMPS_NONE] = "none", [CORE_DUMPS_INHERIT] = "inherit", NULL};
static const char *const log_level_names[] = {[LOG_DEBUG] = "debug",
    [LOG_INFO] = "info",
    [LOG_WARN] = "warn",
    [LOG_ERROR] = "error",
    [LOG_OFF] = "off",
    NULL};
static const char *const log_format_names[] = {[LOG_TEXT] = "text", [LOG_JSON] = "json", NULL};

/* The offset of a field; the comparison, never evaluated, makes a wrong type a compiler's error. */
#define AT(type, field)                                                                            \
    (offsetof(struct settings, field) +                                                            \
        0 * sizeof((type *)NULL == &((struct settings *)NULL)->field))

/* The last argument of each is the help, which RELOADS may follow: SIGHUP changes the setting. */
#define RELOADS .reloads = true
#define ROW(field, kind, c_type, ...)                                                              \
    { .path = #field, .type = kind, .offset = AT(c_type, field), __VA_ARGS__ }
#define UINT(field, least, most, text, ...)                                                        \
    ROW(field, SETTING_UINT, uint32_t, .min = least, .max = most, .fallback = text,                \
        .help = __VA_ARGS__)
#define DURATION(field, least, most, text, ...)                                                    \
    ROW(field, SETTING_DURATION, uint32_t, .min = least, .max = most, .fallback = text,            \
        .help = __VA_ARGS__)
#define SIZE(field, least, most, text, ...)                                                        \
    ROW(field, SETTING_SIZE, uint64_t, .min = least, .max = most, .fallback = text,                \
        .help = __VA_ARGS__)
#define ENUM(choice, field, known, text, ...)                                                      \
    ROW(field, SETTING_ENUM, enum choice, .names = known, .fallback = text, .help = __VA_ARGS__)
#define STRING(field, least, text, ...)                                                            \
    ROW(field, SETTING_STRING, char *, .min = least, .fallback = text, .help = __VA_ARGS__)
#define LIST(field, least, text, ...)                                                              \
    ROW(field, SETTING_LIST, struct string_list, .min = least, .fallback = text,                   \
        .help = __VA_ARGS__)
#define MAP(field, text, ...)                                                                      \
    ROW(field, SETTING_MAP, struct string_map, .fallback = text, .help = __VA_ARGS__)
#define DEVICES(field, text, ...)                                                                  \
    ROW(field, SETTING_DEVICES, struct string_list, .min = 1, .fallback = text, .help = __VA_ARGS__)

const struct setting setting_table[] = {
    ENUM(driver_choice, driver, driver_names, "cuda",
        "What runs the kernels: a GPU through libcuda.so.1, or threads of this machine's CPU."),
    DEVICES(devices, "all",
        "GPUs to work on, an executor each: all, or a list of numbers as the driver counts them "
        "and "
        "of UUIDs as nvidia-smi -L prints them."),
    UINT(lanes, 1, 64, "8", "Threads that each feed one stream of the device."),
    UINT(
        lane_depth, 1, 16, "2", "Batches that a lane has in flight: one is staged while one runs."),
    SIZE(lane_slab_bytes, 64 * KIB, 1 * GIB, "4MiB",
        "Memory of the device, and pinned memory each way, that each batch in flight keeps for "
        "small "
        "buffers."),
    ENUM(broker_choice, broker, broker_names, "kafka",
        "Where jobs come from: a Kafka cluster, or a broker inside the worker, for trying it out."),
    ENUM(ordering_choice, ordering, ordering_names, "none",
        "Which jobs wait for each other: none, or those of one key, which then run in their order. "
        "Residents need `key`."),
    ENUM(delivery_choice, delivery, delivery_names, "at_least_once",
        "What a crash or a rebalance does to results: some may come twice, or none does, because "
        "results, dead letters and offsets are committed in transactions. Then readers must read "
        "committed messages alone, and see results once a commit_interval_ms."),
    DURATION(commit_interval_ms, 10, 60 * SECOND, "500ms",
        "How often the offsets of finished jobs are committed: what a crash makes run again."),
    DURATION(drain_timeout_ms, 0, HOUR, "25s",
        "How long running jobs may finish after a stop is asked for. Kubernetes kills after 30 s "
        "unless terminationGracePeriodSeconds says otherwise."),

    UINT(cpu_driver.devices, 1, 16, "1", "Devices that the CPU driver pretends to have."),
    SIZE(cpu_driver.memory_bytes, 16 * MIB, 1 * TIB, "1GiB", "Memory of each of them."),
    STRING(cpu_driver.faults, 0, "\"\"", "Faults to inject, for tests; see cpu_driver.h."),

    STRING(state.dir, 0, "\"\"",
        "Folder on this machine's disk for a state file of each executor, by which the next one "
        "knows what the last one died of; where empty, gpu-worker in $XDG_STATE_HOME, in "
        "~/.local/state, or in /var/lib. Two workers on one GPU need two folders."),
    UINT(executors.deaths_max, 1, 1000, "5",
        "An executor that has died so often within ten minutes, without a job's fault and "
        "without having finished a message, is not started again: its GPU counts as unhealthy."),
    DURATION(executors.stall_ms, SECOND, 24 * HOUR, "5m",
        "An executor one of whose threads has been at work on one thing for so long, and for twice "
        "blobs.timeout_ms, is killed and started again. What waits, and what is on the device, is "
        "not meant."),
    ENUM(core_dumps_choice, executors.core_dumps, core_dumps_names, "none",
        "Whether a crash may write a core file, which holds the data of jobs: none, or inherit "
        "what "
        "the process is allowed."),

    STRING(embedded.address_file, 0, "\"\"",
        "File to write the embedded broker's host:port to, for clients; none where empty."),
    UINT(embedded.partitions, 1, 1024, "4", "Partitions of each of its topics."),

    STRING(kafka.bootstrap_servers, 1, "\"localhost:9092\"", "Brokers: host:port, by commas."),
    STRING(kafka.group, 1, "\"gpu-worker\"", "Consumer group; its members share the jobs."),
    STRING(kafka.instance_id, 0, "\"\"",
        "A name of this worker that survives its restarts, such as that of a StatefulSet's pod. "
        "Each executor is the static member <instance_id>-gpu<device> of the group, and a restart "
        "within session.timeout.ms (20 s) moves no partitions. Empty: a name that is drawn once "
        "and "
        "kept in state.dir."),
    MAP(kafka.consumer, "{}",
        "More keys for librdkafka's consumer, such as auto.offset.reset or sasl.password. What "
        "would break the delivery guarantee is refused."),
    MAP(kafka.producer, "{}", "More keys for librdkafka's producer, such as linger.ms."),

    LIST(topics.jobs, 1, "[\"gpu-jobs\"]", "Topics to take jobs from."),
    STRING(topics.results, 1, "\"gpu-results\"", "Topic for one result a job."),
    STRING(topics.dead_letters, 1, "\"gpu-dead-letters\"",
        "Topic for messages that are no jobs and for jobs that failed for good."),
    STRING(
        topics.telemetry, 1, "\"gpu-telemetry\"", "Topic for what the workers say of themselves."),
    STRING(topics.control, 0, "\"\"",
        "Topic on which jobs are cancelled (gpu-worker cancel); every worker reads all of it. None "
        "is read where empty. The topic must exist."),
    LIST(topics.reply_to, 0, "[]", "Topics that a job may name to get its result there.", RELOADS),

    UINT(retry.max_attempts, 1, 1000, "5",
        "How often a job is tried in all that fails with `retry: worker`; after that it is "
        "answered "
        "with the error, and is a dead letter.",
        RELOADS),
    DURATION(retry.base_ms, 1, HOUR, "200ms",
        "Longest wait after a job's first failure. It doubles with each further one; the wait is "
        "half of it or more, at random.",
        RELOADS),
    DURATION(retry.max_ms, 1, HOUR, "30s", "Longest wait of all.", RELOADS),

    UINT(cancels.ids_max, 1, 10000000, "100000",
        "Most ids of cancelled jobs that are remembered; the oldest are forgotten first."),
    DURATION(cancels.ttl_ms, 1 * SECOND, 24 * HOUR, "1h",
        "How long a cancel is remembered: a job of that id which comes in meanwhile is not run."),

    UINT(suspend.convictions, 0, 32, "10",
        "A key is suspended once so many of its jobs were convicted within suspend.window_ms (they "
        "ended an executor while alone), a program once jobs of so many keys were, or so many "
        "without a key. Their jobs are refused (suspended); 0 suspends nobody."),
    DURATION(suspend.window_ms, SECOND, 24 * HOUR, "10m", "As suspend.convictions says."),
    DURATION(suspend.for_ms, SECOND, 24 * HOUR, "10m",
        "How long a key or program is suspended, unless gpu-worker resume ends it earlier."),

    STRING(programs.dir, 0, "\"\"",
        "Folder with a folder for each program; where empty, share/gpu-worker/programs beside the "
        "folder of the binary.",
        RELOADS),
    STRING(blobs.dir, 0, "\"\"",
        "Folder of blobs, each named by its SHA-256, that jobs may refer to; none where empty."),
    STRING(blobs.url, 0, "\"\"",
        "The same behind HTTP, instead of a folder: a blob is got from and put at the URL with "
        "/ab/ab01... behind it, the digits of its digest. It may carry a user and a password."),
    STRING(blobs.cache_dir, 0, "\"\"",
        "Folder on this machine's disk for what came from blobs.url, kept across restarts."),
    SIZE(blobs.cache_bytes, 0, 1024 * TIB, "1GiB",
        "Most bytes kept there, 4 KiB at least for each blob. Those used once and longest ago "
        "leave "
        "first."),
    SIZE(blobs.bytes_max, 1, 1 * TIB, "1GiB",
        "Largest blob that is read or stored. Blobs that jobs hold in host memory take at most "
        "this "
        "and limits.job_bytes together."),
    UINT(blobs.max_age_hours, 0, 1000000, "0",
        "Hours after its last use that a blob in blobs.dir is removed; 0 keeps all."),
    DURATION(blobs.timeout_ms, 100, HOUR, "2m", "Longest request to blobs.url."),

    SIZE(results.inline_max_bytes, 0, 1 * TIB, "0",
        "Larger outputs are put into the blob store, and results name them; 0 puts none there."),

    SIZE(limits.message_bytes, 1 * KIB, 1000000000, "1MiB",
        "Largest message that is taken as a job.", RELOADS),
    UINT(limits.buffers_per_job, 1, 4096, "64", "Buffers of one job.", RELOADS),
    UINT(limits.steps_per_job, 1, 4096, "64", "Steps of one job.", RELOADS),
    UINT(limits.launches_per_job, 1, 1000000000, "100000",
        "Kernel launches of one job: repeat x the sum of its iterations.", RELOADS),
    SIZE(limits.job_bytes, 1 * KIB, 1 * TIB, "1GiB", "Device memory of one job's own buffers."),
    SIZE(limits.result_bytes, 1 * KIB, 1000000000, "1000000",
        "Largest encoded result. Kafka's own default takes 1 MiB with headers.", RELOADS),
    DURATION(limits.timeout_ms, 100, 24 * HOUR, "1m",
        "Longest that a job without timeout_ms may be on the device. Then its executor is killed, "
        "and the job that does so alone gets gpu_hang.",
        RELOADS),
    DURATION(limits.timeout_min_ms, 1, HOUR, "100ms",
        "Least timeout_ms that a job may ask for: one that asks for less is refused (bad_job), "
        "since a job that is only slow to start would end its executor.",
        RELOADS),
    DURATION(limits.timeout_max_ms, 100, 24 * HOUR, "2m",
        "Most that a job may ask for: one that asks for more is refused (too_large), since a "
        "kernel that never ends holds its stream for so long.",
        RELOADS),
    UINT(limits.jobs_in_flight, 1, 1000000, "4096",
        "Jobs taken and not finished. A stop waits for all of them, so jobs of more than some 40 "
        "ms "
        "want fewer, or a longer drain_timeout_ms."),
    UINT(limits.jobs_per_key, 0, 1000000, "0",
        "Jobs of one key and partition that are under way at a time, so that a key with slow jobs "
        "leaves the others their places. Those behind them wait, and count by their bytes alone. 0 "
        "is a quarter of limits.jobs_in_flight; with `ordering: key` it is one."),
    SIZE(limits.bytes_in_flight, 1 * KIB, 1 * TIB, "256MiB",
        "Host memory of messages taken and not finished, and of their results. The Kafka client "
        "fetches up to a quarter "
        "of it ahead, besides.",
        RELOADS),

    UINT(batch.jobs, 1, 1024, "256", "Most jobs that a lane runs together."),
    DURATION(batch.span_ms, 1, HOUR, "2ms",
        "Most device time of a batch, as measured. Jobs that take longer alone share batches with "
        "their like only, as many as take at most 1.25 times as long as one, so that no quick job "
        "waits for a slow one."),
    ENUM(isolation_choice, batch.isolation, isolation_names, "none",
        "What makes two jobs different tenants, who never find each other's bytes: nothing, other "
        "programs, or another key or topic. Jobs of one tenant run at a time, and memory that "
        "passes to the next is wiped."),
    ENUM(stream_choice, batch.stream, stream_names, "mapped",
        "Small jobs whose kernel touches each byte once (`access: stream` in its program): mapped "
        "lets the kernel work in pinned host memory, copied goes through device memory."),
    SIZE(pools.device_bytes, 0, 1 * TIB, "0",
        "Most device memory for jobs' own buffers; 0 is what the lanes and one largest job need."),
    SIZE(pools.pinned_bytes, 0, 1 * TIB, "0", "Most pinned host memory; 0 as above."),

    SIZE(statics.budget_bytes, 0, 1 * TIB, "0",
        "Device memory for inputs that jobs share; 0 is 1/32 of the device. Each is charged 4 KiB "
        "at "
        "least."),
    UINT(statics.entries_max, 1, 10000000, "65536",
        "Most of these inputs at a time, however small: each takes some host memory, too."),

    DURATION(residents.idle_timeout_ms, 1 * SECOND, 24 * HOUR, "1h",
        "A resident that no job has used for so long is dropped; the next job that names it is "
        "told to seed it again."),
    UINT(residents.entries_max, 1, 10000000, "65536",
        "Most residents at a time, however small: each takes some host memory for its key and "
        "name, "
        "too."),

    UINT(admission.threads, 0, 64, "4",
        "Threads that copy, decode and plan messages which come in numbers or are large; 0, and "
        "`ordering: key`, leave all to the thread that takes them."),
    UINT(prepare.threads, 1, 64, "2",
        "Threads for reading blobs, and as many for other cold work: uploading statics that came "
        "in a message, loading modules."),

    STRING(http.listen, 0, "\"\"",
        "Address, host:port, at which the supervisor serves /metrics (for Prometheus), /livez and "
        "/readyz (for probes; with ?verbose it says all) to whoever can reach it; where empty, it "
        "listens nowhere."),
    STRING(http.token_file, 0, "\"\"",
        "File with a secret that whoever asks for anything but /livez and /readyz must bring "
        "(Authorization: Bearer SECRET). It is read anew for each question, so it may be changed "
        "at "
        "any time; where empty, nobody is asked."),
    DURATION(telemetry.interval_ms, 0, HOUR, "10s",
        "How often a worker publishes its sums and gauges; 0 is never."),
    ENUM(log_level, log.level, log_level_names, "info", "The least that is logged.", RELOADS),
    ENUM(log_format, log.format, log_format_names, "text", "How lines look: for people, or JSON."),

    STRING(profile.nvtx_library, 0, "\"\"",
        "NVTX library, such as libnvToolsExt.so.1, through which profilers see the worker's stages "
        "by name; empty for none."),
};
const size_t setting_count = sizeof setting_table / sizeof setting_table[0];
_Static_assert(sizeof setting_table / sizeof setting_table[0] <= SETTING_COUNT_MAX, "more room");

const struct section section_table[] = {
    {"cpu_driver", "What `driver: cpu` pretends to be."},
    {"state", "What executors leave behind."},
    {"executors", "The processes that own a GPU each."},
    {"embedded", "What `broker: embedded` serves."},
    {"kafka", "How to reach the brokers."},
    {"topics", "What is read and written."},
    {"retry", "Jobs that failed, and may succeed here or on another worker."},
    {"cancels", "What came on topics.control."},
    {"suspend", "Senders and programs whose jobs end executors again and again."},
    {"programs", "What may run."},
    {"blobs", "Where payloads stand that are too large for messages."},
    {"results", "What stands in results."},
    {"limits", "Bounds on what messages may ask for, and on what is under way."},
    {"batch", "How jobs share what travels to the device and back."},
    {"pools", "Memory that all lanes share."},
    {"statics", "Inputs that stay on the device across jobs."},
    {"residents", "Buffers that stay on the device across the jobs of one key."},
    {"admission", "From messages to jobs."},
    {"prepare", "Work that is done before a job reaches a lane."},
    {"http", "What can be asked of the worker."},
    {"telemetry", "What the worker says of itself."},
    {"log", "What is written to standard error."},
    {"profile", "What profilers are told."},
};
const size_t section_count = sizeof section_table / sizeof section_table[0];

const struct section *section_find(const char *name) {
    for (size_t i = 0; i < section_count; i++)
        if (strcmp(section_table[i].name, name) == 0) return &section_table[i];
    return NULL;
}

const struct section *setting_section(const struct setting *setting) {
    const char *dot = strchr(setting->path, '.');
    if (dot == NULL) return NULL;
    char name[SETTING_PATH_MAX] = {0};
    INVARIANT((size_t)(dot - setting->path) < sizeof name,
        "a section is no longer than SETTING_PATH_MAX");
    memcpy(name, setting->path, (size_t)(dot - setting->path));
    return section_find(name);
}

const char *setting_key(const struct setting *setting) {
    const char *dot = strchr(setting->path, '.');
    return dot == NULL ? setting->path : dot + 1;
}
