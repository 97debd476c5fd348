/** A tracker of offsets that follows one partition, "jobs" [0], as its tests handle it. */
#ifndef TESTS_BROKER_TRACKING_H
#define TESTS_BROKER_TRACKING_H

#include "broker/offsets.h"
#include "testing.h"

static inline void assign(struct offsets *offsets, const char *topic, int32_t partition) {
    static const struct offsets_commit nothing = {.offset = OFFSET_UNKNOWN};
    struct error err;
    assert_int_equal(offsets_assign(offsets, topic, partition, &nothing, &err), ERR_OK);
}

/* A tracker that follows one partition, "jobs" [0]. */
static inline struct offsets *follow_one(void) {
    struct offsets *offsets = offsets_create();
    assert_non_null(offsets);
    assign(offsets, "jobs", 0);
    return offsets;
}

static inline struct position begin(struct offsets *offsets, int64_t offset) {
    struct position position;
    assert_true(offsets_begin(offsets, "jobs", 0, offset, 1, &position));
    assert_int_equal(position.offset, offset);
    assert_int_equal(position.partition, 0);
    assert_string_equal(position.topic, "jobs");
    return position;
}

static inline void finish(struct offsets *offsets, struct position position) {
    offsets_finish(offsets, &position, 2);
}

static inline struct offsets_state state_of(struct offsets *offsets) {
    struct offsets_state known;
    assert_true(offsets_get(offsets, "jobs", 0, &known));
    return known;
}

static inline int64_t next_commit(struct offsets *offsets) {
    return state_of(offsets).next_commit;
}

static inline size_t unfinished(struct offsets *offsets) {
    return state_of(offsets).unfinished_count;
}

/* A tracker that takes over what is due in another. */
static inline struct offsets *take_over(struct offsets *from) {
    struct offsets_commit commit;
    struct error err;
    struct offsets *offsets = offsets_create();
    assert_non_null(offsets);
    assert_true(offsets_take_commit(from, "jobs", 0, &commit));
    assert_int_equal(offsets_assign(offsets, "jobs", 0, &commit, &err), ERR_OK);
    return offsets;
}

static inline bool begins(struct offsets *offsets, int64_t offset) {
    struct position position;
    return offsets_begin(offsets, "jobs", 0, offset, 1, &position);
}

#endif
