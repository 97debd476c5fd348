#include "decode/decode.h"

#include <inttypes.h>

#include "base/clock.h"
#include "decode/parts.h"

static enum err parse_topic(struct walk *walk, const struct wire_value *value, void *ret) {
    return walk_text(walk, value, TOPIC_BYTES_MAX, ret);
}

static enum err parse_instances(struct walk *walk, const struct wire_value *value, void *ret) {
    enum err code = parse_count_u32(walk, value, ret);
    if (code != ERR_OK) return code;
    return walk_limit(walk, *(uint32_t *)ret, walk->limits->instances_max, "instances",
        "limits.instances_per_job");
}

/* Fields are read in this order: buffers and arguments may have one part for each instance, steps
 * and outputs name buffers. */
static const struct field job_fields[] = {
    {KEY("v"), REQUIRED, parse_version, 0},
    {KEY("id"), REQUIRED, parse_id, offsetof(struct job, id)},
    {KEY("reply_to"), OPTIONAL, parse_topic, offsetof(struct job, reply_to)},
    {KEY("count"), OPTIONAL, parse_instances, offsetof(struct job, instances)},
    {KEY("buffers"), REQUIRED, parse_buffers, 0},
    {KEY("steps"), REQUIRED, parse_steps, 0},
    {KEY("repeat"), OPTIONAL, parse_count_u32, offsetof(struct job, repeat)},
    {KEY("outputs"), REQUIRED, parse_outputs, 0},
    {KEY("until"), OPTIONAL, parse_until, 0},
    {KEY("time_ms"), OPTIONAL, parse_time, 0},
    {KEY("progress"), OPTIONAL, parse_progress, 0},
    {KEY("timing"), OPTIONAL, parse_bool, offsetof(struct job, timing)},
    {KEY("deadline_ms"), OPTIONAL, parse_count_u64, offsetof(struct job, deadline_unix_ms)},
    {KEY("timeout_ms"), OPTIONAL, parse_count_u32, offsetof(struct job, timeout_ms)},
};

/* A newer v has keys that we do not know: say that it is the v before complaining about them. */
static enum err check_version(struct walk *walk, const struct wire_value *map) {
    const struct wire_value *key = map + 1;
    for (uint32_t i = 0; i < map->count; i++, key = wire_next(wire_next(key))) {
        if (key->type != WIRE_TEXT || !slice_is_text(wire_slice(key), "v")) continue;
        walk_enter_key(walk, slice_of_text("v"));
        enum err code = parse_version(walk, wire_next(key), NULL);
        if (code != ERR_OK) return code;
        walk_leave(walk);
    }
    return ERR_OK;
}

/* A long job that names no end of its own would have one that nobody meant. */
static enum err check_repeat(struct walk *walk) {
    struct job *job = walk->job;
    if (job->long_job != NULL && job->repeat == 0)
        return walk_fail(walk, ERR_BAD_JOB,
            "send \"repeat\", or neither \"until\", \"time_ms\" nor \"progress\"",
            "is a long job that does not say how many rounds it runs at most");
    if (job->repeat == 0) job->repeat = 1;
    return ERR_OK;
}

static enum err check_launches(struct walk *walk) {
    const struct job *job = walk->job;
    uint64_t launches = 0;
    for (size_t i = 0; i < job->step_count; i++)
        if (__builtin_add_overflow(launches, job->steps[i].iterations, &launches))
            launches = UINT64_MAX;
    if (job->long_job != NULL)
        return walk_limit(walk, launches, walk->limits->launches_max,
            "launches a round (the sum of iterations)", "limits.launches_per_job");
    if (__builtin_mul_overflow(launches, job->repeat, &launches)) launches = UINT64_MAX;
    return walk_limit(walk, launches, walk->limits->launches_max,
        "launches (repeat x the sum of iterations)", "limits.launches_per_job");
}

/* The one ends executors that have done no wrong, the other holds a GPU for as long as it likes. */
static enum err check_timeout(struct walk *walk) {
    const struct job *job = walk->job;
    const struct decode_limits *limits = walk->limits;
    if (job->timeout_ms == 0) return ERR_OK;
    walk_enter_key(walk, slice_of_text("timeout_ms"));
    if (job->timeout_ms < limits->timeout_ms_min)
        return walk_fail(walk, ERR_BAD_JOB,
            "send at least that, or none for the worker's own; or lower limits.timeout_min_ms",
            "is %" PRIu32 " ms, at least %" PRIu32 " are allowed", job->timeout_ms,
            limits->timeout_ms_min);
    enum err code = walk_limit(
        walk, job->timeout_ms, limits->timeout_ms_max, "milliseconds", "limits.timeout_max_ms");
    walk_leave(walk);
    return code;
}

static enum err parse_job(struct walk *walk, const struct wire_value *root) {
    const struct wire_value *found[FIELDS_MAX];
    enum err code = walk_is_map(walk, root);
    if (code != ERR_OK) return code;
    code = check_version(walk, root);
    if (code != ERR_OK) return code;
    code = walk_map(walk, root, FIELDS(job_fields), walk->job, found);
    if (code == ERR_OK) code = check_repeat(walk);
    if (code != ERR_OK) return code;
    code = check_launches(walk);
    if (code == ERR_OK) code = check_timeout(walk);
    if (walk->job->timeout_ms == 0) walk->job->timeout_ms = walk->limits->timeout_ms_default;
    return code;
}

static enum err read_job(
    struct job *job, struct slice payload, const struct decode_limits *limits, struct error *err) {
    struct walk walk = {.root = "the job", .job = job, .limits = limits, .err = err};
    struct wire_values values;
    enum err code = walk_read(&walk, payload, limits->message_bytes_max, "limits.message_bytes",
        limits->arena_bytes_max, &values);
    if (code != ERR_OK) return code;
    code = parse_job(&walk, values.items);
    wire_values_fini(&values);
    return code;
}

/* Whether `pair` begins with `key` and a valid text; moves past the pair either way. */
static bool take_text_of(struct slice *rest, const char *key, size_t max, struct slice *ret) {
    struct slice pair = *rest, name, text, skipped;
    struct error ignored;
    size_t size;
    for (int i = 0; i < 2; i++) {
        if (wire_scan(*rest, &size, &ignored) != WIRE_COMPLETE) return false;
        if (!slice_take(rest, size, &skipped)) return false;
    }
    if (!wire_take_text(&pair, &name) || !slice_is_text(name, key)) return false;
    if (!wire_take_text(&pair, &text) || !text_is_valid(text, max)) return false;
    *ret = text;
    return true;
}

/* The first valid text under `key` of the map that `payload` is; false if there is none. */
static bool find_text(struct slice payload, const char *key, size_t max, struct slice *ret) {
    size_t pairs;
    if (!wire_take_map_head(&payload, &pairs)) return false;
    for (size_t i = 0; i < pairs; i++)
        if (take_text_of(&payload, key, max, ret)) return true;
    return false;
}

/* Nothing of what was read so far may be used. */
static void forget_request(struct job *job) {
    struct job fresh = {.state = job->state,
        .delivery = job->delivery,
        .edition = job->edition,
        .memory = job->memory,
        .memory_size = job->memory_size};
    arena_fini(&job->arena);
    *job = fresh;
}

/* What can still be said of a message that read_job() refused with `code`: who sent it, and where
 * the answer goes. */
static enum err read_envelope(
    struct job *job, struct slice payload, enum err code, struct error *err) {
    size_t values;
    forget_request(job);
    if (code == ERR_BAD_MESSAGE || wire_check(payload, &values, err) != ERR_OK)
        return ERR_BAD_MESSAGE;
    if (!find_text(payload, "id", ID_BYTES_MAX, &job->id))
        return error_set(err, ERR_BAD_MESSAGE, 0,
            "send a msgpack map with an id: a string of 1 to 256 bytes, UTF-8 without NUL",
            "the %zu-byte message has no valid id", payload.size);
    if (!find_text(payload, "reply_to", TOPIC_BYTES_MAX, &job->reply_to))
        job->reply_to = slice_of("", 0);
    return code;
}

enum err decode_job(struct job *job, const struct decode_limits *limits, struct error *err) {
    uint64_t started_ns = clock_ns();
    job_init_arena(job, limits->arena_bytes_max);
    enum err code = read_job(job, job->delivery->payload, limits, err);
    if (code != ERR_OK) code = read_envelope(job, job->delivery->payload, code, err);
    job->decode_ns = clock_ns() - started_ns;
    return code;
}
