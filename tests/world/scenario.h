/**
 * Histories that have a name: what they are made of, and how each is played, with several schedules
 * of its threads. How long something takes is the world's time, so it can be said exactly. Threads:
 * the first of the test, and of each world.
 */
#ifndef TESTS_WORLD_SCENARIO_H
#define TESTS_WORLD_SCENARIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "world/account.h"
#include "world/worker.h"

enum {
    SCENARIO_WORKERS = 4,
    SOON_MS = 3000, /* for what waits for nobody */
    SESSION_MS = 20000
};

struct scenario {
    bool exactly_once;
    const char *folder;
    struct account *account;
    struct worker workers[SCENARIO_WORKERS];
    char states[SCENARIO_WORKERS][512];
    size_t worker_count;
};

/** Ends the history where something is not as it must be. */
#define NEED(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) return scenario_tell(#condition, __LINE__);                              \
    } while (0)
bool scenario_tell(const char *what, int line);

/** Makes the topics. `each_once`: no job is answered again, whatever the delivery. */
void scenario_begin(struct scenario *scenario, int32_t partitions, bool each_once, bool in_order);

/** One that runs a job at a time in each of two lanes. It does not start yet. */
struct worker *scenario_add_worker(struct scenario *scenario, const char *name, const char *faults);
void scenario_set_faults(struct worker *worker, const char *faults);

/** Two of a key come one after the other. */
void scenario_send(struct scenario *scenario, int32_t partition, size_t count);

void scenario_pass_ms(uint64_t ms);
size_t scenario_answered(struct scenario *scenario, int32_t partition);

/** Whether so many, or all, are answered in time. */
bool scenario_await_answers(
    struct scenario *scenario, int32_t partition, size_t count, uint64_t within_ms);
bool scenario_await_all(struct scenario *scenario, uint64_t within_ms);

/** The status with which it ends, by itself or asked to; -1: it goes on. */
int scenario_await_end(const struct worker *worker, uint64_t within_ms);
int scenario_stop(const struct worker *worker, uint64_t within_ms);

int64_t scenario_committed(int32_t partition);
bool scenario_is_right(struct scenario *scenario);

/** Plays it with each schedule. */
typedef bool scenario_history(struct scenario *scenario);
void scenario_play(scenario_history *run, bool exactly_once);
void scenario_play_both(scenario_history *run);

#endif
