/**
 * A world: workers in processes of their own, one cluster, and a history that a seed draws: jobs
 * that come, workers that die, freeze and stop, brokers that go away, topics that change. At the
 * end every job must be answered as the delivery promises.
 *
 * Threads: the first of its process, once.
 */
#ifndef TESTS_WORLD_WORLD_H
#define TESTS_WORLD_WORLD_H

#include <stdbool.h>
#include <stdint.h>

/** What may happen in it. */
enum world_event {
    WORLD_KILLS = 1 << 0,      /* a worker is killed, and another one takes its place */
    WORLD_STOPS = 1 << 1,      /* a worker stops in order, and another one takes its place */
    WORLD_FREEZES = 1 << 2,    /* a worker does not run for a while */
    WORLD_OUTAGES = 1 << 3,    /* no broker answers for a while */
    WORLD_PARTITIONS = 1 << 4, /* the job topic gets more partitions */
    WORLD_MOVES = 1 << 5,      /* somebody commits an earlier offset with the text of a later one */
    WORLD_TRUNCATIONS = 1 << 6,   /* the end of the job topic is lost */
    WORLD_RECREATIONS = 1 << 7,   /* the job topic is deleted, and made anew */
    WORLD_EXPIRIES = 1 << 8,      /* the start of the job topic is lost, as by retention */
    WORLD_POISONS = 1 << 9,       /* a job is sent that ends the executor which runs it */
    WORLD_CANCELS = 1 << 10,      /* a job is cancelled */
    WORLD_STORE_FAULTS = 1 << 11, /* no blob can be read for a while */
    WORLD_TWINS = 1 << 12,        /* a second worker has the name of another for a while */
    WORLD_CLOCKS = 1 << 13,       /* wall clocks are set to another time */
    WORLD_RELOADS = 1 << 14,      /* a worker reads another configuration, or a broken one */
    WORLD_SHORTAGES = 1 << 15,    /* allocations of worker/broker fail now and then for a while */
    WORLD_FULL_DISKS = 1 << 16,   /* nothing of a worker's state can be written for a while */
    WORLD_CONTROL_PARTITIONS = 1 << 17, /* the control topic gets more partitions */
    WORLD_CONTROL_RECREATIONS = 1 << 18 /* the control topic is deleted, and made anew */
};

/* Some are drawn, and others depend on the seed alone: a world without them is what it was before
 * there were any. */
enum {
    /* Nobody dies, and nothing is lost: each job is answered once, whatever the delivery. */
    WORLD_ORDERLY = WORLD_STOPS | WORLD_PARTITIONS | WORLD_EXPIRIES | WORLD_CANCELS |
                    WORLD_STORE_FAULTS | WORLD_CLOCKS | WORLD_RELOADS | WORLD_CONTROL_PARTITIONS |
                    WORLD_CONTROL_RECREATIONS,
    WORLD_STEPS_MAX = 12,
    WORLD_DRAWN_EVENTS = 14,
    WORLD_EVENTS = 19,
    WORLD_ALL = (1 << WORLD_EVENTS) - 1
};

struct world_options {
    uint64_t seed;
    uint32_t events;    /* of enum world_event */
    uint32_t steps_max; /* it ends after so many; 0: when it will */
    bool tells;         /* each event, to standard error */
    const char *folder; /* for the files of its workers */
};

/** Runs it. False: a promise was broken, which is told on standard error. */
bool world_run(const struct world_options *options);

#endif
