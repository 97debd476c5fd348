/**
 * How long batches take on the device, as measured: for each launch signature (plan/signature.h)
 * the time by the number of jobs that shared the batch. Kernels of one block stay as quick until
 * the device's multiprocessors are full; others take longer with each job. Only measuring tells.
 *
 * Counts are kept by powers of two: a level is the batches of 2^level jobs up to the next level.
 * A level that is not known yet is taken for what the one below would give in proportion, which no
 * batch exceeds unless its jobs get into each other's way.
 *
 * A fixed table, in which a new signature takes the place of one that was not seen for longest:
 * however many a sender makes up, those in use are known. Lock-free: a lost update costs a little
 * accuracy and nothing else.
 *
 * Units: nanoseconds. Lifetime: memory that is zero is an empty table, whose 5 MB are touched as
 * they are used; nothing to end. Threads: any.
 */
#ifndef BATCH_DURATIONS_H
#define BATCH_DURATIONS_H

#include <stdatomic.h>
#include <stdint.h>

enum {
    DURATIONS_SLOTS = 32768,
    DURATIONS_LEVELS = 17 /* 1 to 65536 jobs or instances */,
    DURATIONS_UNKNOWN = 0 /* as in memory that is zero */
};

struct durations {
    atomic_uint_fast64_t keys[DURATIONS_SLOTS]; /* apart, so that one look sees eight; 0: free */
    struct durations_slot {
        atomic_uint_fast64_t ns[DURATIONS_LEVELS];
        atomic_uint_fast64_t seen;        /* the count of lessons at the last one */
        atomic_uint_fast64_t own_lessons; /* 0: what stands here is a guess */
    } slots[DURATIONS_SLOTS];
    atomic_uint_fast64_t lessons;
};

/** What a batch of so many jobs of a signature takes; DURATIONS_UNKNOWN before the first one. */
uint64_t durations_expect(struct durations *durations, uint64_t signature, uint32_t count);

/**
 * How many jobs of a signature may share a batch. It takes no longer than `span_ns` or 1.25 times
 * one of them; or up to 4 times one of them where each doubling of the count makes a job at least a
 * fifth cheaper. The largest count that was measured to be so is doubled, to try; `at_once`, as
 * many jobs as the device has room for side by side, is tried without steps in between, until it
 * was found to take too long. 1 for an unknown signature.
 */
uint32_t durations_allow(
    struct durations *durations, uint64_t signature, uint64_t span_ns, uint32_t at_once);

/**
 * A batch of `count` jobs of a signature took `ns`, during which batches of `beside` other lanes
 * may have had a part of the device: of its own it takes between ns / (beside + 1) and ns.
 *
 * A count that took too long is forgotten after some batches of fewer, and so tried again.
 */
void durations_learn(
    struct durations *durations, uint64_t signature, uint32_t count, uint64_t ns, uint32_t beside);

/** A batch that failed took `ns`: better than nothing, until one goes well. */
void durations_guess(struct durations *durations, uint64_t signature, uint64_t ns);

#endif
