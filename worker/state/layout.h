/**
 * How the state file lies in memory. Private to state/.
 *
 *     head | topics | threads | pulses | progress | suspensions | unevens | fetches[FETCHES_MAX]
 *          | suspects[suspect_count] | searches[STATE_SEARCHES_MAX]
 *          | lanes[lanes] | batches[lanes x depth] | entries[lanes x depth x batch_jobs]
 *
 * Where each part starts is computed from the shape; no offset is read from the file. Everything up
 * to the suspects is at the same place for every shape.
 */
#ifndef STATE_LAYOUT_H
#define STATE_LAYOUT_H

#include <pthread.h>
#include <stdatomic.h>

#include "state/bounds.h"
#include "state/state.h"
#include "state/tables.h"

#define STATE_MAGIC "gpuwstat"
enum { STATE_VERSION = 13, STATE_LINE_BYTES = 64, STATE_TOPIC_BYTES = 256 };

/*
 * The rest of the file is read only if this is as this build writes it. The checksum covers all
 * fields before it.
 */
struct state_fixed {
    char magic[8];
    uint32_t version;
    uint32_t error_count; /* codes are stored as numbers */
    uint32_t head_bytes, suspect_bytes, batch_bytes, search_bytes;
    uint32_t suspect_count;
    struct state_shape shape;
    uint64_t checksum;
};

struct state_head {
    struct state_fixed fixed;
    _Atomic uint64_t lives;
    _Atomic uint64_t life; /* stored last of what state_begin() writes */
    _Atomic int32_t pid;
    uint32_t device;
    char uuid[STATE_UUID_BYTES];
    _Alignas(STATE_LINE_BYTES) _Atomic uint64_t heartbeat_ns;
    _Alignas(STATE_LINE_BYTES) _Atomic uint64_t ok;
    _Atomic uint64_t errors;
    _Alignas(STATE_LINE_BYTES) _Atomic uint32_t death_taken; /* one writer has claimed `death` */
    _Atomic uint32_t death_written;
    _Atomic uint32_t stop_asked; /* a death without a record was caused by the stop */
    struct state_death death;
    _Atomic uint32_t topic_count;
    _Atomic uint32_t is_unhealthy; /* with `fault` */
    char fault[STATE_MESSAGE_BYTES];
    _Atomic uint32_t is_troubled; /* with `trouble` */
    char trouble[STATE_TROUBLE_BYTES];
    _Atomic uint32_t programs; /* that are loaded; 0: not yet */
    _Atomic uint32_t is_reload_refused;
    _Atomic uint32_t group;    /* an enum state_group */
    _Atomic uint64_t group_ns; /* since when */
};

/* What a thread has in hand. Each has a cache line of its own, against false sharing. */
struct state_thread {
    _Alignas(STATE_LINE_BYTES) _Atomic uint32_t is_set;
    struct state_entry entry;
};

struct state_lane {
    _Alignas(STATE_LINE_BYTES) _Atomic uint64_t fence_ns; /* of the last batch that is behind it */
};

struct state_batch {
    _Alignas(STATE_LINE_BYTES) _Atomic uint32_t job_count; /* 0: not in flight */
    _Atomic uint64_t id, begun_ns, limit_ns;
    _Atomic uint64_t rounds; /* that its long job has had once it is over; 0: it has none */
};

/* By hashes of their names, with the secret of the suspensions; 0: free. */
struct state_unevens {
    _Atomic uint64_t hashes[STATE_UNEVENS_MAX];
    uint32_t next;
};

typedef char state_topic_name[STATE_TOPIC_BYTES];

/* The parts, as pointers into the mapping. */
struct state {
    int fd;
    void *base;
    size_t bytes;
    uint64_t serial; /* tells this mapping from earlier ones at the same address */
    struct state_shape shape;
    uint32_t suspect_count;
    uint64_t life; /* to begin; 0: any */
    _Atomic uint32_t has_begun;
    struct state_head *head;
    state_topic_name *topics;
    struct state_thread *threads;
    struct pulse *pulses;
    uint8_t *progress;
    struct suspensions *suspensions;
    struct state_unevens *unevens;
    struct state_fetch *fetches;
    struct state_suspect *suspects;
    struct state_search *searches;
    struct state_lane *lanes;
    struct state_batch *batches;
    struct state_entry *entries;
    _Atomic uint32_t thread_count; /* slots that threads of this process have taken */
    pthread_mutex_t topics_lock;   /* for adding one */
    char path[];
};

/** The slot's batch; its jobs are entries from `index` x shape.batch_jobs on. */
static inline size_t state_batch_index(const struct state *state, uint32_t lane, uint32_t slot) {
    return (size_t)lane * state->shape.depth + slot;
}

#endif
