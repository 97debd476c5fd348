/**
 * How long jobs take on the device, learned by the shape of what they launch (plan/shape.h). It
 * decides who may share a batch: one fence must never hold a quick job behind a slow one.
 *
 * A fixed table of moving averages, in which a new shape takes the place of one that was not seen
 * for longest: however many shapes a sender makes up, those in use are known. Lock-free: a lost
 * update costs a little accuracy and nothing else.
 *
 * Units: nanoseconds. Lifetime: pace_init() once; nothing to end. Threads: any.
 */
#ifndef EXECUTE_PACE_H
#define EXECUTE_PACE_H

#include <stdatomic.h>
#include <stdint.h>

enum { PACE_SLOTS = 4096, PACE_UNKNOWN = 0 };

struct pace {
    struct pace_slot {
        atomic_uint_fast64_t key; /* 0: free */
        atomic_uint_fast64_t ns;
        atomic_uint_fast64_t seen; /* the count of lessons at the last one */
    } slots[PACE_SLOTS];
    atomic_uint_fast64_t lessons;
};

void pace_init(struct pace *pace);

/** The average time of a job of that shape; PACE_UNKNOWN before the first one. */
uint64_t pace_get(struct pace *pace, uint64_t shape_key);

/** A job of that shape took `ns`. */
void pace_learn(struct pace *pace, uint64_t shape_key, uint64_t ns);

#endif
