#include "batch/chunk.h"

#include <endian.h>
#include <string.h>

#include "plan/extent.h"

enum {
    ALLOWED_TIMES = 4, /* a chunk may take so many times as long as expected, beside a round */
    PART = 8           /* of the time that the job has had */
};

/* 9 bytes for each instance, and 4 while it is live. */
static enum err start(struct job *job, uint64_t now_ns, struct error *err) {
    struct long_job *long_job = job->long_job;
    uint32_t count = job_instances(job);
    if (long_job->live == NULL) {
        uint32_t *words = arena_alloc_beyond(&job->arena, count * (2 * sizeof *words + 1));
        if (words == NULL)
            return error_no_memory(err, "no memory to count the rounds of %u instances", count);
        long_job->live = words;
        long_job->rounds_of = words + count;
        long_job->ends = (uint8_t *)(words + 2 * (size_t)count);
    }
    for (uint32_t i = 0; i < count; i++) long_job->live[i] = i;
    memset(long_job->rounds_of, 0, count * sizeof *long_job->rounds_of);
    memset(long_job->ends, LONG_END_NONE, count);
    long_job->live_count = count;
    long_job->begun_ns = now_ns;
    long_job->show_ns = now_ns + long_job->every_ms * 1000000ull;
    job->slice.count = job->instances;
    return ERR_OK;
}

/* The instances that are left end after the rounds that they have had. */
static void end_all(struct long_job *long_job, enum long_end end) {
    for (uint32_t i = 0; i < long_job->live_count; i++) {
        long_job->rounds_of[long_job->live[i]] = long_job->rounds;
        long_job->ends[long_job->live[i]] = (uint8_t)end;
    }
    long_job->live_count = 0;
}

static enum long_end find_end(
    const struct job *job, const struct long_job *long_job, uint64_t now_ns) {
    if (long_job->rounds == job->repeat) return LONG_END_REPEAT;
    if (long_job->rounds == 0) return LONG_END_NONE;
    if (long_job->is_stopped) return LONG_END_STOP;
    return now_ns - long_job->begun_ns >= long_job->time_ms * 1000000 ? LONG_END_TIME
                                                                      : LONG_END_NONE;
}

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* At least one, whatever a round takes. */
static uint32_t rounds_of_chunk(
    const struct job *job, const struct long_job *long_job, uint64_t now_ns) {
    if (long_job->round_ns == 0) return 1;
    uint64_t had_ns = now_ns - long_job->begun_ns;
    uint64_t left_ns = long_job->time_ms * 1000000 - had_ns;
    uint64_t chunk_ns = least(had_ns / PART, CHUNK_MS_MAX * 1000000ull);
    if (chunk_ns < CHUNK_MS_MIN * 1000000ull) chunk_ns = CHUNK_MS_MIN * 1000000ull;
    uint64_t rounds = least(chunk_ns, left_ns) / long_job->round_ns;
    rounds = least(rounds, job->repeat - long_job->rounds);
    return rounds > 0 ? (uint32_t)rounds : 1;
}

/* Whether it is due when the chunk is over. */
static bool is_due(const struct long_job *long_job, uint64_t now_ns) {
    uint64_t end_ns = now_ns + long_job->chunk * long_job->round_ns;
    return long_job->every_ms > 0 && long_job->chunk > 0 && end_ns >= long_job->show_ns;
}

enum err chunk_begin(struct job *job, uint64_t now_ns, struct error *err) {
    struct long_job *long_job = job->long_job;
    enum err code = ERR_OK;
    if (long_job->rounds == 0) code = start(job, now_ns, err);
    if (code != ERR_OK) return code;
    enum long_end end = find_end(job, long_job, now_ns);
    if (end != LONG_END_NONE) end_all(long_job, end);
    long_job->chunk = long_job->live_count > 0 ? rounds_of_chunk(job, long_job, now_ns) : 0;
    long_job->is_shown = is_due(long_job, now_ns);
    return ERR_OK;
}

uint64_t chunk_flags_bytes(const struct job *job) {
    const struct long_job *long_job = job->long_job;
    if (!long_job->has_until) return 0;
    return extent_buffer_bytes(&job->plan->buffers[long_job->until], job_slice_count(job));
}

struct shown_extent chunk_shown(const struct job *job, size_t index) {
    struct shown_extent extent = {.at = plan_aligned(chunk_flags_bytes(job))};
    for (size_t i = 0; i <= index && i < job->long_job->shown_count; i++) {
        const struct job_output *output = &job->long_job->shown[i];
        const struct plan_buffer *place = &job->plan->buffers[output->buffer];
        bool is_slice = job_is_slice(job);
        extent.at += plan_aligned(extent.bytes);
        extent.offset = is_slice ? 0 : output->offset;
        extent.bytes = is_slice ? extent_buffer_bytes(place, job_slice_count(job)) : output->bytes;
    }
    return extent;
}

uint64_t chunk_readback_bytes(const struct job *job) {
    const struct long_job *long_job = job->long_job;
    if (!long_job->is_shown || long_job->shown_count == 0) return chunk_flags_bytes(job);
    struct shown_extent last = chunk_shown(job, long_job->shown_count - 1);
    return last.at + last.bytes;
}

void chunk_launched(struct long_job *long_job, uint32_t rows) {
    long_job->is_on_device = true;
    if (long_job->chunk > 0) long_job->rows_on_device = rows;
    long_job->instance_rounds += (uint64_t)long_job->chunk * long_job->live_count;
}

uint64_t chunk_allowance_ns(const struct long_job *long_job) {
    return ALLOWED_TIMES * long_job->chunk * long_job->round_ns;
}

/* An instance cannot be done after a round that has not run: its kernel counts wrongly. */
static void take_flags(struct long_job *long_job, const uint8_t *flags, uint64_t stride) {
    uint32_t live = 0;
    for (uint32_t i = 0; i < long_job->live_count; i++) {
        uint32_t instance = long_job->live[i], flag;
        memcpy(&flag, flags + stride * instance, sizeof flag);
        flag = le32toh(flag);
        if (flag == 0) {
            long_job->live[live++] = instance;
            continue;
        }
        long_job->rounds_of[instance] = (uint32_t)least(flag, long_job->rounds);
        long_job->ends[instance] = LONG_END_UNTIL;
    }
    long_job->live_count = live;
}

void chunk_end(
    struct job *job, const uint8_t *flags, uint64_t stride, uint64_t now_ns, uint64_t ns) {
    struct long_job *long_job = job->long_job;
    long_job->rounds += long_job->chunk;
    long_job->round_ns = ns / long_job->chunk + 1;
    if (long_job->is_shown) long_job->show_ns = now_ns + long_job->every_ms * 1000000ull;
    if (long_job->has_until) take_flags(long_job, flags, stride);
}

bool chunk_was_last(const struct job *job) {
    return job->outcome.code != ERR_OK || job->run == RUN_DONE;
}

void chunk_reset(struct long_job *long_job) {
    long_job->is_on_device = long_job->is_stopped = false;
    long_job->rounds = long_job->chunk = long_job->rows_on_device = 0;
    long_job->round_ns = long_job->instance_rounds = 0;
    long_job->telemetry = (struct job_telemetry){0};
}
