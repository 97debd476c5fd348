#include "batch/array.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

#include "blobs/spool.h"

void array_reset(struct job *array) {
    static atomic_uint_fast64_t runs;
    /* relaxed: only uniqueness matters */
    uint64_t run = atomic_fetch_add_explicit(&runs, 1, memory_order_relaxed) + 1;
    array->progress = (struct array_progress){.run = run};
    array->outcome = (struct outcome){.code = ERR_OK};
    array->run = RUN_NONE;
}

bool array_has_more(const struct job *array) {
    return !array->progress.is_stopped && array->progress.taken < array->instances;
}

void array_begin_slice(struct job *array, struct array_slice slice) {
    struct array_progress *progress = &array->progress;
    progress->taken += slice.count;
    progress->in_flight++;
}

struct array_slice array_take(struct job *array, uint32_t most) {
    uint32_t taken = array->progress.taken, left = array->instances - taken;
    struct array_slice slice = {.first = taken, .count = most < left ? most : left};
    array_begin_slice(array, slice);
    return slice;
}

static enum err spool_zeros(struct spool *spool, uint64_t at, uint64_t size, struct error *err) {
    static const uint8_t zeros[4096];
    enum err code = ERR_OK;
    for (uint64_t done = 0; done < size && code == ERR_OK; done += sizeof zeros) {
        uint64_t left = size - done;
        code = spool_write(
            spool, at + done, slice_of(zeros, left < sizeof zeros ? left : sizeof zeros), err);
    }
    return code;
}

enum err array_leave_out(struct job *array, uint32_t instance, struct error *err) {
    enum err code = ERR_OK;
    array->progress.taken++;
    for (size_t i = 0; i < array->output_count && code == ERR_OK; i++) {
        uint64_t size = array->outputs[i].bytes;
        if (array->spools[i] != NULL)
            code = spool_zeros(array->spools[i], size * instance, size, err);
        else memset(job_output_place(array, i) + size * instance, 0, size);
    }
    return code;
}

void array_make_slice(struct job *array, struct array_slice slice, uint64_t now_ns,
    uint32_t sharers, struct job *ret) {
    const struct array_progress *progress = &array->progress;
    uint64_t used_ms = (progress->used_ns + progress->running * now_ns) / 1000000;
    uint64_t left_ms = used_ms < array->timeout_ms ? array->timeout_ms - used_ms : 0;
    left_ms *= sharers;
    *ret = *array;
    ret->array = array;
    ret->slice = slice;
    ret->state = JOB_READY;
    ret->run = RUN_NONE;
    ret->is_running = false;
    ret->outcome = (struct outcome){.code = ERR_OK};
    if (left_ms < array->timeout_ms) ret->timeout_ms = (uint32_t)left_ms;
}

void array_run_slice(struct job *slice, uint64_t now_ns) {
    struct array_progress *progress = &slice->array->progress;
    if (slice->is_running) return;
    slice->is_running = true;
    progress->running++;
    progress->used_ns -= now_ns; /* it may wrap: with the end of the slice it is right again */
}

void array_stop_slice(struct job *slice, uint64_t now_ns) {
    struct array_progress *progress = &slice->array->progress;
    if (!slice->is_running) return;
    slice->is_running = false;
    progress->running--;
    progress->used_ns += now_ns;
}

enum err array_check_time(const struct job *slice, struct error *err) {
    if (slice->timeout_ms > 0) return ERR_OK;
    return error_set(err, ERR_GPU_HANG, 0, "send fewer instances, or raise timeout_ms",
        "the array has had the device for its %" PRIu32 " ms, and instances from %" PRIu32
        " of %" PRIu32 " on had not begun",
        slice->array->timeout_ms, slice->slice.first, slice->instances);
}

/* Instances that are `stride` bytes apart, side by side. Without bytes, `bytes` may be NULL. */
static void pack(
    uint8_t *to, const uint8_t *bytes, uint64_t size, uint64_t stride, uint32_t count) {
    if (size == 0) return;
    if (size == stride) memcpy(to, bytes, size * count);
    for (uint32_t i = 0; i < count && size != stride; i++)
        memcpy(to + size * i, bytes + stride * i, size);
}

/* A few at a time. */
static enum err spool_instances(struct spool *spool, uint64_t at, const uint8_t *bytes,
    uint64_t size, uint64_t stride, uint32_t count, struct error *err) {
    uint8_t packed[16 << 10];
    uint64_t at_once = size > 0 && size <= sizeof packed ? sizeof packed / size : 1;
    enum err code = ERR_OK;
    if (size == stride) return spool_write(spool, at, slice_of(bytes, size * count), err);
    for (uint32_t i = 0, some; i < count && code == ERR_OK; i += some) {
        some = count - i < at_once ? count - i : (uint32_t)at_once;
        const uint8_t *from = bytes + stride * i;
        if (some > 1) pack(packed, from, size, stride, some);
        code =
            spool_write(spool, at + size * i, slice_of(some > 1 ? packed : from, size * some), err);
    }
    return code;
}

enum err array_assemble(const struct job *slice, size_t output, const uint8_t *bytes,
    uint64_t stride, struct error *err) {
    const struct job *array = slice->array != NULL ? slice->array : slice; /* a long one */
    uint64_t size = slice->outputs[output].bytes, at = size * slice->slice.first;
    if (array->spools[output] != NULL)
        return spool_instances(
            array->spools[output], at, bytes, size, stride, slice->slice.count, err);
    pack(job_output_place(array, output) + at, bytes, size, stride, slice->slice.count);
    return ERR_OK;
}

void array_note_run(struct job *array, const struct job *slice) {
    if (slice->run != RUN_NONE) array->run = RUN_STARTED;
}

bool array_merge(struct job *array, const struct job *slice) {
    struct array_progress *progress = &array->progress;
    struct outcome *outcome = &array->outcome;
    progress->in_flight--;
    array_note_run(array, slice);
    if (slice->outcome.telemetry.batch.id != 0)
        telemetry_merge(&outcome->telemetry, &slice->outcome.telemetry);
    if (slice->outcome.code == ERR_OK) {
        progress->instances_ok += slice->slice.count;
    } else {
        progress->is_stopped = true;
        if (outcome->code == ERR_OK) {
            outcome->code = slice->outcome.code;
            outcome->err = slice->outcome.err;
        }
    }
    if (progress->in_flight > 0 || array_has_more(array)) return false;
    if (outcome->code != ERR_OK) return true;
    array->run = RUN_DONE;
    outcome->outputs = array->found;
    if (array->plan->resident_count > 0) outcome->generations = array->generations;
    return true;
}
