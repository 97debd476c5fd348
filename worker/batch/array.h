/**
 * An array job: one message, one result, one retry and one deadline, but many instances.
 *
 * The array is one struct job. Lanes cut it into slices: a slice is so many instances as fit a
 * lane's slab and the time that a batch may take (ready.h). Any lane that is free takes the next
 * slice, so the lanes share an array, and look for other jobs between slices. A slice is a copy of
 * the array's struct job, in the batch that runs it: it shares the plan and all that the array
 * holds, and has a state, an outcome and a time-out of its own. It is alone in its batch, and
 * coalesce.h gives each of its instances a row of one launch.
 *
 * The outputs of a slice go to their places among the outputs of all instances. The array ends when
 * its last slice has: well, or with the first error of a slice. After an error no more slices are
 * taken; a cancel, a deadline and the time-out are looked at before each slice. A retry starts from
 * the first instance.
 *
 * The time-out counts what the slices had of the device, by a clock that the caller reads: for
 * lanes, which share the device, that of array_clock.h.
 *
 * Lifetime: a slice ends before its array. Threads: array_merge(), array_take(),
 * array_begin_slice(), array_run_slice(), array_stop_slice(), array_leave_out(), array_make_slice()
 * and `progress` need the lock of ready.h, or one thread that runs the whole array; a slice belongs
 * to its lane.
 */
#ifndef BATCH_ARRAY_H
#define BATCH_ARRAY_H

#include "batch/layout.h"

/** The array starts from its first instance: nothing of it is on the device. */
void array_reset(struct job *array);

/** The slice that starts with the next instance, of at most `most`; there is one. */
struct array_slice array_take(struct job *array, uint32_t most);

/** As array_take(), with instances of the caller's choice, which no slice has had. */
void array_begin_slice(struct job *array, struct array_slice slice);

/** An instance that is not run; its outputs are zeros. Errors: those of spool_write(). */
MUST_CHECK enum err array_leave_out(struct job *array, uint32_t instance, struct error *err);

/** Whether there are instances that no slice has, and that are still to be run. */
bool array_has_more(const struct job *array);

/** Makes `ret` a slice of `array`, ready to run. It may be on the device for what is left of the
 * array's time, while `sharers` lanes share that. */
void array_make_slice(struct job *array, struct array_slice slice, uint64_t now_ns,
    uint32_t sharers, struct job *ret);

/** Nothing is before the slice in its lane any more: its array's time runs until it is stopped. */
void array_run_slice(struct job *slice, uint64_t now_ns);

/** The slice is over, also if it has never run. */
void array_stop_slice(struct job *slice, uint64_t now_ns);

/** ERR_GPU_HANG: the array has had its time before the slice was begun. */
MUST_CHECK enum err array_check_time(const struct job *slice, struct error *err);

/** Copies an output of a slice, whose instances are `stride` bytes apart, to its place. Errors:
 * those of spool_write(). */
MUST_CHECK enum err array_assemble(const struct job *slice, size_t output, const uint8_t *bytes,
    uint64_t stride, struct error *err);

/** The array has run as far as its slice has; array_merge() does the same. */
void array_note_run(struct job *array, const struct job *slice);

/** The slice has ended, as its outcome says. True where that was the last of its array, whose
 * outcome is whole now. */
bool array_merge(struct job *array, const struct job *slice);

#endif
