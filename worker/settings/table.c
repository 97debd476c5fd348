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
static const char *const lane_wait_names[] = {
    [LANE_WAIT_BLOCK] = "block", [LANE_WAIT_SPIN] = "spin", NULL};
static const char *const broker_names[] = {
    [BROKER_KAFKA] = "kafka", [BROKER_EMBEDDED] = "embedded", NULL};
static const char *const delivery_names[] = {
    [AT_LEAST_ONCE] = "at_least_once", [EXACTLY_ONCE] = "exactly_once", NULL};
static const char *const ordering_names[] = {
    [ORDERING_NONE] = "none", [ORDERING_KEY] = "key", NULL};
static const char *const stream_names[] = {
    [STREAM_MAPPED] = "mapped", [STREAM_COPIED] = "copied", NULL};
static const char *const graphs_names[] = {[GRAPHS_NONE] = "none", [GRAPHS_AUTO] = "auto", NULL};
static const char *const isolation_names[] = {
    [ISOLATE_NONE] = "none", [ISOLATE_PROGRAM] = "program", [ISOLATE_KEY] = "key", NULL};
static const char *const core_dumps_names[] = {
    [CORE_DUMPS_NONE] = "none", [CORE_DUMPS_INHERIT] = "inherit", NULL};
static const char *const numa_names[] = {[NUMA_LOCAL] = "local", [NUMA_ANY] = "any", NULL};
static const char *const bool_names[] = {[false] = "false", [true] = "true", NULL};
static const char *const log_level_names[] = {[LOG_DEBUG] = "debug",
    [LOG_INFO] = "info",
    [LOG_WARN] = "warn",
    [LOG_ERROR] = "error",
    [LOG_OFF] = "off",
    NULL};
static const char *const log_format_names[] = {[LOG_TEXT] = "text", [LOG_JSON] = "json", NULL};

/* The offset of a field. The comparison, which is never evaluated, makes a wrong type a compiler
 * error. */
#define AT(type, field)                                                                            \
    (offsetof(struct settings, field) +                                                            \
        0 * sizeof((type *)NULL == &((struct settings *)NULL)->field))

/* The last argument of each is the help. RELOADS may follow: SIGHUP then changes the setting; or
 * FOR_LIFE: SIGHUP refuses a change. */
#define RELOADS .reloads = true
#define FOR_LIFE .is_for_life = true
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
#define BOOL(field, text, ...)                                                                     \
    ROW(field, SETTING_BOOL, bool, .names = bool_names, .fallback = text, .help = __VA_ARGS__)
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
        "What runs the kernels: cuda is an NVIDIA GPU through libcuda.so.1, cpu is threads of "
        "this machine, which is enough for trials and tests.",
        FOR_LIFE),
    DEVICES(devices, "all",
        "GPUs to use, with one executor for each: all, or a list of driver numbers and of UUIDs "
        "as nvidia-smi -L prints them."),
    UINT(lanes, 1, 64, "8", "Threads that run batches on the device, each on a stream of its own."),
    UINT(lane_depth, 1, 16, "2",
        "Batches that each lane has in flight, so that one is filled while another runs."),
    SIZE(lane_slab_bytes, 64 * KIB, 1 * GIB, "4MiB",
        "Device memory for small buffers of each batch in flight. As much pinned host memory is "
        "taken for uploads, and again for results."),
    ENUM(lane_wait_choice, lane_wait, lane_wait_names, "block",
        "How lanes wait for jobs. block sleeps. spin may begin a job some microseconds sooner, and "
        "keeps a core busy for each lane, also while there are no jobs: set lanes to fewer than "
        "the cores that each executor may use."),
    ENUM(broker_choice, broker, broker_names, "kafka",
        "Where jobs come from: a Kafka cluster, or a broker inside the worker for trying it "
        "out.",
        FOR_LIFE),
    ENUM(ordering_choice, ordering, ordering_names, "none",
        "none runs jobs in any order. key runs jobs of one key one after another, in the order "
        "of their offsets; residents need it."),
    ENUM(delivery_choice, delivery, delivery_names, "at_least_once",
        "What readers see after a crash or a rebalance. at_least_once may send some results "
        "twice. exactly_once commits results, dead letters and offsets in transactions: readers "
        "of committed messages see each result once, up to commit_interval_ms later."),
    DURATION(commit_interval_ms, 10, 60 * SECOND, "500ms",
        "How often the offsets of finished jobs are committed. A longer interval lets a crash "
        "repeat more jobs."),
    DURATION(drain_timeout_ms, 0, HOUR, "25s",
        "How long a worker that stops, or gives partitions back, may take to finish their jobs "
        "that "
        "have begun; others are left to the next owner of their messages. Keep it below the grace "
        "period of whatever stops it: Kubernetes kills after 30 s by default."),

    UINT(cpu_driver.devices, 1, 16, "1", "How many devices the CPU driver shows."),
    SIZE(cpu_driver.memory_bytes, 16 * MIB, 1 * TIB, "1GiB", "Memory of each of these devices."),
    STRING(cpu_driver.faults, 0, "\"\"",
        "Faults to inject, for tests; worker/cpu_driver/cpu_driver.h describes them."),

    STRING(state.dir, 0, "\"\"",
        "Folder on a local disk for one state file per executor, which tells the next executor "
        "what the last one died of. Empty: gpu-worker in $XDG_STATE_HOME, else in "
        "~/.local/state, else in /var/lib. Two workers on one GPU need two folders."),
    UINT(executors.deaths_max, 1, 1000, "5",
        "After this many deaths within ten minutes that no job caused, with no message finished "
        "in between, an executor is not started again and its GPU counts as unhealthy."),
    DURATION(executors.stall_ms, SECOND, 24 * HOUR, "5m",
        "How long a thread may work on one thing before its executor is killed and started "
        "again; at least twice blobs.timeout_ms is allowed. Idle threads and batches on the "
        "device do not count."),
    ENUM(core_dumps_choice, executors.core_dumps, core_dumps_names, "none",
        "Whether a crash may write a core file, which contains the data of jobs: none forbids "
        "it, inherit keeps the limits of the process."),
    ENUM(numa_choice, executors.numa, numa_names, "local",
        "Which CPUs an executor's threads may use, and so where its pinned memory is, on a "
        "machine with several NUMA nodes: local are those of its GPU's node, any are all that the "
        "process may use. `gpu-worker devices` shows the nodes."),
    BOOL(executors.spare, "false",
        "Whether a second process waits for each device, with programs loaded and the lanes' "
        "memory taken, and takes over at once when the executor dies. It is off because it costs "
        "another context and slabs on the device, and as much memory of the host as an idle "
        "executor (Memory)."),

    STRING(embedded.address_file, 0, "\"\"",
        "File to which the embedded broker's host:port is written, for clients. Empty: "
        "broker.address in state.dir, where commands with the same configuration find it."),
    UINT(embedded.partitions, 1, 1024, "4", "Partitions of each topic of the embedded broker."),

    STRING(kafka.bootstrap_servers, 1, "\"localhost:9092\"",
        "Brokers to connect to first, as host:port, separated by commas."),
    STRING(
        kafka.group, 1, "\"gpu-worker\"", "Consumer group. Workers in one group split the jobs."),
    STRING(kafka.instance_id, 0, "\"\"",
        "Name of this worker that stays the same after a restart, such as the name of a "
        "StatefulSet's pod. Each executor joins the group as the static member "
        "<instance_id>-gpu<device>, so a restart within session.timeout.ms (20 s) moves no "
        "partitions. Empty: a random name, drawn once and kept in state.dir."),
    MAP(kafka.consumer, "{}",
        "More settings of librdkafka's consumer, such as auto.offset.reset or sasl.password. "
        "Those that would break the delivery guarantee are refused."),
    MAP(kafka.producer, "{}", "More settings of librdkafka's producer, such as linger.ms."),

    LIST(topics.jobs, 1, "[\"gpu-jobs\"]", "Topics to take jobs from."),
    STRING(topics.results, 1, "\"gpu-results\"", "Topic for results, one for each job."),
    STRING(topics.dead_letters, 1, "\"gpu-dead-letters\"",
        "Topic for messages that cannot be decoded and for jobs that failed for good."),
    STRING(topics.telemetry, 1, "\"gpu-telemetry\"", "Topic for the workers' metrics."),
    STRING(topics.control, 0, "\"\"",
        "Topic that carries cancels (gpu-worker cancel); every worker reads all of it. It must "
        "exist. Empty: jobs cannot be cancelled."),
    STRING(topics.progress, 0, "\"\"",
        "Topic on which long jobs show how far they are, as often as they ask for it. It must "
        "exist. Empty: they do not show it."),
    LIST(topics.reply_to, 0, "[]",
        "Topics that a job may name as reply_to, to have its result sent there instead of "
        "topics.results.",
        RELOADS),

    UINT(retry.max_attempts, 1, 1000, "5",
        "How many times a job is run in all if it fails with `retry: worker`. After the last "
        "failure it is answered with the error, and becomes a dead letter.",
        RELOADS),
    DURATION(retry.base_ms, 1, HOUR, "200ms",
        "Longest wait before the first retry. It doubles with each further retry; the actual "
        "wait is random, between half of it and all of it.",
        RELOADS),
    DURATION(retry.max_ms, 1, HOUR, "30s", "Upper limit of the wait before any retry.", RELOADS),

    UINT(cancels.ids_max, 1, 10000000, "100000",
        "How many ids of cancelled jobs are remembered. The oldest are forgotten first."),
    DURATION(cancels.ttl_ms, 1 * SECOND, 24 * HOUR, "1h",
        "How long a cancel is remembered. A job with that id that arrives within this time is "
        "not run."),

    UINT(suspend.convictions, 0, 32, "10",
        "Suspends a key when its jobs have ended an executor this often within suspend.window_ms, "
        "each while it ran alone. Suspends a program when jobs of this many keys were convicted of "
        "it, or this many jobs without a key. Jobs of either get the error `suspended`. 0 suspends "
        "nothing."),
    DURATION(suspend.window_ms, SECOND, 24 * HOUR, "10m",
        "The time within which suspend.convictions counts."),
    DURATION(suspend.for_ms, SECOND, 24 * HOUR, "10m",
        "How long a key or program stays suspended, unless gpu-worker resume ends it earlier."),

    STRING(programs.dir, 0, "\"\"",
        "Folder of programs, with one folder for each. Empty: share/gpu-worker/programs beside "
        "the folder of the binary.",
        RELOADS),
    STRING(blobs.dir, 0, "\"\"",
        "Folder of the blob store: large payloads that jobs refer to, each named by its "
        "SHA-256. Empty: no folder is used."),
    STRING(blobs.url, 0, "\"\"",
        "URL of a blob store behind HTTP, used instead of blobs.dir. A blob is read with GET "
        "and written with PUT at URL/ab/ab01..., where ab01... is its SHA-256. The URL may "
        "contain a user and a password."),
    STRING(blobs.cache_dir, 0, "\"\"",
        "Folder on a local disk for blobs that came from blobs.url; it is kept across restarts."),
    SIZE(blobs.cache_bytes, 0, 1024 * TIB, "1GiB",
        "Most bytes that each executor keeps in blobs.cache_dir; every blob counts as at least "
        "4 KiB. Blobs that were used only once, longest ago, are removed first."),
    SIZE(blobs.bytes_max, 1, 1 * TIB, "1GiB",
        "Largest blob that is read or written. Jobs hold blobs in host memory up to this plus "
        "limits.job_bytes in all."),
    UINT(blobs.max_age_hours, 0, 1000000, "0",
        "Blobs in blobs.dir are removed this many hours after their last use. 0 keeps them for "
        "ever."),
    DURATION(blobs.timeout_ms, 100, HOUR, "2m",
        "Time limit of one request to blobs.url. Raise it for large blobs over slow links."),

    SIZE(results.inline_max_bytes, 0, 1 * TIB, "0",
        "Outputs larger than this go to the blob store, and the result carries their SHA-256. 0 "
        "keeps every output in its result."),

    SIZE(limits.message_bytes, 1 * KIB, 1000000000, "1MiB",
        "Largest message that is accepted as a job.", RELOADS),
    UINT(limits.buffers_per_job, 1, 4096, "64", "Most buffers of one job.", RELOADS),
    UINT(limits.steps_per_job, 1, 4096, "64", "Most steps of one job.", RELOADS),
    UINT(limits.launches_per_job, 1, 1000000000, "100000",
        "Most kernel launches of one job: its repeat times the sum of its steps' iterations.",
        RELOADS),
    UINT(limits.instances_per_job, 1, 1000000000, "1000000", "Most instances of one array job.",
        RELOADS),
    UINT(limits.convictions_per_job, 0, 32, "8",
        "Most instances of one array job that are convicted, each by itself, of ending an "
        "executor: the job has the outputs of all others. Each costs about two deaths, which count "
        "towards suspend.convictions. With one more, or with 0, the whole job is convicted."),
    SIZE(limits.job_bytes, 1 * KIB, 1 * TIB, "1GiB",
        "Most device memory for the buffers of one job. Set it to what your largest job needs: "
        "the default sizes of the pools include it."),
    SIZE(limits.array_bytes, 1 * KIB, 1024 * TIB, "1GiB",
        "Most bytes of a buffer of an array job with all of its instances, and of its outputs. "
        "limits.job_bytes bounds those of one instance. Buffers that are blobs, and outputs larger "
        "than results.inline_max_bytes, pass through memory in parts, and blobs.bytes_max does not "
        "bound them.",
        RELOADS),
    SIZE(limits.result_bytes, 1 * KIB, 1000000000, "1000000",
        "Largest encoded result. Kafka's default limit is 1 MiB, headers included.", RELOADS),
    DURATION(limits.timeout_ms, 100, 24 * HOUR, "1m",
        "Time on the device for jobs that name no timeout_ms. When it is over, the executor is "
        "killed and its jobs run again, each alone; one that hangs alone gets gpu_hang.",
        RELOADS),
    DURATION(limits.timeout_min_ms, 1, HOUR, "100ms",
        "Shortest timeout_ms that a job may ask for; less is refused (bad_job). Keep it above "
        "what a slow start takes, because a job over its time ends its executor.",
        RELOADS),
    DURATION(limits.timeout_max_ms, 100, 24 * HOUR, "2m",
        "Longest timeout_ms that a job may ask for; more is refused (too_large). A kernel that "
        "never ends blocks its stream for this long.",
        RELOADS),
    DURATION(limits.long_job_ms, 1, 40 * 24 * HOUR, "24h",
        "Longest time that a long job may ask for with time_ms; more is refused (too_large). One "
        "that asks for none ends after it, with what it has.",
        RELOADS),
    UINT(limits.long_jobs, 1, 65536, "64",
        "Most long jobs that run at a time on a device. Each holds its buffers there between its "
        "turns; others wait until one of these has ended."),
    UINT(limits.jobs_in_flight, 1, 1000000, "8192",
        "Most jobs that are taken and not yet finished. More let small jobs pass faster, above all "
        "with exactly_once."),
    UINT(limits.jobs_per_key, 0, 1000000, "0",
        "Most jobs of one key and partition that are under way at a time, so that a key with "
        "slow jobs leaves room for others. Jobs beyond it wait, and count against "
        "limits.bytes_in_flight only. 0 means a quarter of limits.jobs_in_flight; `ordering: "
        "key` always means 1."),
    SIZE(limits.bytes_in_flight, 1 * KIB, 1 * TIB, "256MiB",
        "Most host memory for messages that are taken and not yet finished, and for their "
        "results. Until a message is decoded, its result is taken to be as large as those before "
        "it. The Kafka client fetches up to a quarter of it ahead, in addition.",
        RELOADS),

    UINT(batch.jobs, 1, 1024, "256",
        "Most jobs in one batch. Lower it for shorter waits, at the cost of throughput."),
    DURATION(batch.span_ms, 1, HOUR, "2ms",
        "Longest time on the device that a batch is planned for, from measured durations. A job "
        "that alone takes longer, or more than a fourth of it where more of them run side by "
        "side, shares batches only with jobs like it: as many as take at most 1.25 times as long "
        "as one, or up to 4 times as long where that makes each of them cheaper."),
    ENUM(isolation_choice, batch.isolation, isolation_names, "none",
        "Which jobs must never see each other's data: none isolates no jobs; program isolates "
        "jobs of different programs; key isolates jobs of different keys or topics. Jobs of one "
        "tenant run at a time, and memory is wiped before the next tenant gets it, which costs "
        "time."),
    ENUM(stream_choice, batch.stream, stream_names, "mapped",
        "Memory for small buffers that a kernel touches once (`access: stream` in its program): "
        "mapped lets the kernel use pinned host memory directly, copied goes through device "
        "memory."),
    ENUM(graphs_choice, batch.graphs, graphs_names, "auto",
        "Whether many launches that come again and again go to the device as one CUDA graph: auto "
        "does so where it was measured to take a lane less time than launches one by one, none "
        "never does."),
    SIZE(pools.device_bytes, 0, 1 * TIB, "0",
        "Most device memory that the worker takes for buffers and statics; residents come on top "
        "of it. 0 means what the lanes, the statics and one largest job need."),
    SIZE(pools.pinned_bytes, 0, 1 * TIB, "0",
        "Most pinned host memory that the worker takes. 0 means what the lanes, prepare.threads "
        "and one largest job need."),

    SIZE(statics.budget_bytes, 0, 1 * TIB, "0",
        "Device memory for statics, which are inputs that jobs share; each counts as at least 4 "
        "KiB. 0 means 1/32 of the device's memory. Raise it if statics are uploaded again and "
        "again."),
    UINT(statics.entries_max, 1, 10000000, "65536",
        "Most statics at a time, whatever their size; each also takes some host memory."),

    DURATION(residents.idle_timeout_ms, 1 * SECOND, 24 * HOUR, "1h",
        "A resident that no job has used for this long is dropped. The next job that names it "
        "gets resident_gone, and must seed it again."),
    SIZE(residents.bytes_max, 0, 1 * TIB, "0",
        "Most device memory for residents, beside pools.device_bytes. A job that would create one "
        "beyond it gets residents_full. 0 means half of the device's memory."),
    SIZE(residents.bytes_per_key, 0, 1 * TIB, "0",
        "Most device memory for the residents of one key and partition, so that a key leaves room "
        "for others. 0 means a quarter of residents.bytes_max."),
    UINT(residents.entries_max, 1, 10000000, "65536",
        "Most residents at a time, whatever their size; each also takes host memory for its key "
        "and name."),
    UINT(residents.entries_per_key, 0, 10000000, "0",
        "Most residents of one key and partition. 0 means a quarter of residents.entries_max."),

    UINT(admission.threads, 0, 64, "4",
        "Threads that decode and plan messages when many arrive at once or they are large, and no "
        "lane has time for them. With `ordering: key` there are none: the thread that reads from "
        "the source does this work."),
    UINT(prepare.threads, 1, 64, "2",
        "Threads that fetch blobs, and as many again that upload statics and load modules."),

    STRING(http.listen, 0, "\"\"",
        "host:port where the supervisor serves a page at / and /status.json, /metrics for "
        "Prometheus, and /livez and /readyz for probes. Anyone who can reach it can read it, job "
        "ids and error texts too. Empty: it does not listen."),
    STRING(http.token_file, 0, "\"\"",
        "File with a secret that requests must carry (Authorization: Bearer SECRET), except for "
        "/livez and /readyz. It is read for every request, so it can be changed at any time. "
        "Empty: no secret is asked for."),
    DURATION(telemetry.interval_ms, 0, HOUR, "10s",
        "How often a worker publishes its metrics to topics.telemetry. 0 turns this off."),
    STRING(tracing.otlp_url, 0, "\"\"",
        "Collector of OpenTelemetry that gets spans of jobs by OTLP over HTTP in JSON, such as "
        "http://collector:4318; without a path, /v1/traces is added. A job is traced if its "
        "traceparent header says that it is sampled. Empty: no job is traced."),
    ENUM(log_level, log.level, log_level_names, "info", "Lowest level that is logged.", RELOADS),
    ENUM(log_format, log.format, log_format_names, "text",
        "Form of log lines: text for people, json for machines."),

    STRING(profile.nvtx_library, 0, "\"\"",
        "NVTX library, such as libnvToolsExt.so.1, that shows the worker's stages in profilers. "
        "Empty: none is loaded."),
};
const size_t setting_count = sizeof setting_table / sizeof setting_table[0];
_Static_assert(sizeof setting_table / sizeof setting_table[0] <= SETTING_COUNT_MAX, "more room");

const struct section section_table[] = {
    {"cpu_driver", "The devices that `driver: cpu` simulates."},
    {"state", "What an executor leaves on disk for the next one."},
    {"executors", "The processes that each own a GPU."},
    {"embedded", "The broker inside the worker, with `broker: embedded`."},
    {"kafka", "How to connect to Kafka."},
    {"topics", "The topics that are read and written."},
    {"retry", "How failed jobs are tried again."},
    {"cancels", "Cancelled jobs, which topics.control names."},
    {"suspend", "When keys and programs are refused because their jobs end executors."},
    {"programs", "The programs that jobs can name."},
    {"blobs", "The blob store, for payloads that are too large for messages."},
    {"results", "The contents of results."},
    {"limits", "Limits for each job, and for all jobs in flight."},
    {"batch", "How jobs share batches."},
    {"pools", "Memory that all lanes share."},
    {"statics", "Immutable inputs that stay on the device and are shared by jobs."},
    {"residents", "Buffers that stay on the device for later jobs of the same key."},
    {"admission", "Decoding and planning of messages."},
    {"prepare", "Slow work that is done before a job reaches a lane."},
    {"http", "Metrics and probes over HTTP."},
    {"telemetry", "Metrics over Kafka."},
    {"tracing", "Traces of jobs."},
    {"log", "Log lines on standard error."},
    {"profile", "Markers for profilers."},
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
