#include <inttypes.h>

#include "decode/parts.h"

/* Any of its keys makes a job a long one. */
static enum err long_job_of(struct walk *walk, struct long_job **ret) {
    void *made;
    *ret = walk->job->long_job;
    if (*ret != NULL) return ERR_OK;
    enum err code = walk_alloc(walk, 1, sizeof **ret, &made);
    if (code != ERR_OK) return code;
    *ret = walk->job->long_job = made;
    (*ret)->time_ms = walk->limits->long_ms_max;
    return ERR_OK;
}

/* What each instance has of its own, and the host can read after each chunk. */
static enum err check_flags(struct walk *walk, const struct job_buffer *buffer) {
    const char *fix = "name a buffer of 4 bytes for each instance, a UINT32 with data or fill";
    bool has_own = buffer->source == BUFFER_FILL || buffer->source == BUFFER_DATA;
    if (buffer->bytes != sizeof(uint32_t))
        return walk_fail(walk, ERR_BAD_JOB, fix, "has %" PRIu64 " bytes", buffer->bytes);
    if (buffer->datatype != DATATYPE_NONE && buffer->datatype != DATATYPE_UINT32)
        return walk_fail(
            walk, ERR_BAD_JOB, fix, "has the datatype %s", datatype_name(buffer->datatype));
    if (!has_own) return walk_fail(walk, ERR_BAD_JOB, fix, "is a static, a resident or a blob");
    if (walk->job->instances > 0 && !buffer->is_each)
        return walk_fail(walk, ERR_BAD_JOB, "give the buffer \"each\"",
            "is shared by all instances, and each needs its own");
    return ERR_OK;
}

static enum err parse_flags(struct walk *walk, const struct wire_value *value, void *ret) {
    enum err code = find_buffer(walk, value, ret);
    return code == ERR_OK ? check_flags(walk, &walk->job->buffers[*(size_t *)ret]) : code;
}

static const struct field until_fields[] = {
    {KEY("buffer"), REQUIRED, parse_flags, offsetof(struct long_job, until)},
};

enum err parse_until(struct walk *walk, const struct wire_value *value, void *ret) {
    const struct wire_value *found[FIELDS_MAX];
    struct long_job *long_job;
    enum err code = long_job_of(walk, &long_job);
    if (code == ERR_OK) code = walk_is_map(walk, value);
    if (code == ERR_OK) code = walk_map(walk, value, FIELDS(until_fields), long_job, found);
    if (code == ERR_OK) long_job->has_until = true;
    return code;
}

enum err parse_time(struct walk *walk, const struct wire_value *value, void *ret) {
    struct long_job *long_job;
    enum err code = long_job_of(walk, &long_job);
    if (code == ERR_OK) code = parse_count_u64(walk, value, &long_job->time_ms);
    if (code != ERR_OK) return code;
    return walk_limit(
        walk, long_job->time_ms, walk->limits->long_ms_max, "milliseconds", "limits.long_job_ms");
}

/* More often, or more, would take room on the topic, and nobody could look at it. */
static enum err parse_every(struct walk *walk, const struct wire_value *value, void *ret) {
    uint32_t *every_ms = ret;
    enum err code = parse_count_u32(walk, value, ret);
    if (code != ERR_OK || *every_ms >= PROGRESS_EVERY_MS_MIN) return code;
    return walk_fail(walk, ERR_BAD_JOB, "ask for progress less often",
        "is %" PRIu32 " ms, at least %d are allowed", *every_ms, PROGRESS_EVERY_MS_MIN);
}

static enum err parse_shown(struct walk *walk, const struct wire_value *value, void *ret) {
    struct long_job *long_job = ret;
    uint64_t total = 0, instances = job_instances(walk->job), bytes;
    enum err code = read_outputs(walk, value, &long_job->shown, &long_job->shown_count);
    for (size_t i = 0; code == ERR_OK && i < long_job->shown_count; i++)
        if (__builtin_mul_overflow(long_job->shown[i].bytes, instances, &bytes) ||
            __builtin_add_overflow(total, bytes, &total))
            total = UINT64_MAX;
    if (code == ERR_OK) code = walk_limit(walk, total, PROGRESS_BYTES_MAX, "bytes", NULL);
    if (code != ERR_OK || long_job->shown_count == 0) return code;
    void *found;
    code = walk_alloc(walk, long_job->shown_count, sizeof *long_job->found, &found);
    if (code == ERR_OK) long_job->found = found;
    return code;
}

static const struct field progress_fields[] = {
    {KEY("every_ms"), REQUIRED, parse_every, offsetof(struct long_job, every_ms)},
    {KEY("outputs"), OPTIONAL, parse_shown, 0},
};

enum err parse_progress(struct walk *walk, const struct wire_value *value, void *ret) {
    const struct wire_value *found[FIELDS_MAX];
    struct long_job *long_job;
    enum err code = long_job_of(walk, &long_job);
    if (code == ERR_OK) code = walk_is_map(walk, value);
    return code == ERR_OK ? walk_map(walk, value, FIELDS(progress_fields), long_job, found) : code;
}
