/**
 * How the state file lies in memory. Private to state/.
 *
 *     head | topics | threads | pulses | progress | suspensions | fetches[FETCHES_MAX]
 *          | suspects[suspect_count]
 *          | lanes[lanes] | batches[lanes x depth] | entries[lanes x depth x batch_jobs]
 *
 * Where each part starts follows from the shape alone: no offset is read from the file. Everything
 * up to the suspects stands where it stands whatever the shape.
 */
#ifndef STATE_LAYOUT_H
#define STATE_LAYOUT_H

#include <pthread.h>
#include <stdatomic.h>

#include "state/bounds.h"
#include "state/state.h"

#define STATE_MAGIC "gpuwstat"
enum { STATE_VERSION = 8, STATE_LINE_BYTES = 64, STATE_TOPIC_BYTES = 256 };

/* What must be ours for the rest to be read; the checksum is over all before it. */
struct state_fixed {
    char magic[8];
    uint32_t version;
    uint32_t error_count; /* codes are stored as numbers */
    uint32_t head_bytes, suspect_bytes, batch_bytes;
    uint32_t suspect_count;
    struct state_shape shape;
    uint32_t reserved; /* zero: no padding in what is summed */
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
    _Alignas(
        STATE_LINE_BYTES) _Atomic uint32_t death_taken; /* somebody writes, or wrote, `death` */
    _Atomic uint32_t death_written;
    _Atomic uint32_t stop_asked; /* a death that is not written is of the stop */
    struct state_death death;
    _Atomic uint32_t topic_count;
    _Atomic uint32_t is_unhealthy; /* with `fault` */
    char fault[STATE_MESSAGE_BYTES];
    _Atomic uint32_t is_troubled; /* with `trouble` */
    char trouble[STATE_TROUBLE_BYTES];
    _Atomic uint32_t programs; /* that are loaded; 0: not yet */
    _Atomic uint32_t group;    /* an enum state_group */
    _Atomic uint64_t group_ns; /* since when */
};

/* What a thread has in hand. A line each, so that threads do not meet. */
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
};

/* A key or a program of which jobs were convicted. */
struct suspension_entry {
    _Atomic uint64_t hash;                      /* 0: free */
    _Atomic uint64_t until_ms;                  /* 0: not suspended */
    uint64_t at_ms[SUSPENSION_CONVICTIONS_MAX]; /* when; 0: none */
    uint64_t by[SUSPENSION_CONVICTIONS_MAX];    /* of a program: the key's hash; 0: no key */
    uint32_t name_bytes;
    uint8_t name[SUSPENSION_NAME_BYTES];
};

struct suspension_standing {
    _Atomic uint64_t hash; /* of program and key; 0: free */
    _Atomic uint64_t at_ms;
};

struct suspensions {
    uint64_t secret[2];
    _Atomic uint64_t last_until_ms; /* nobody is suspended for longer */
    struct suspension_entry keys[SUSPENSION_KEYS_MAX], programs[SUSPENSION_PROGRAMS_MAX];
    struct suspension_standing standings[SUSPENSION_STANDINGS_MAX];
};

enum fetch_standing {
    FETCH_FREE,
    FETCH_OPEN,     /* it is read, from there */
    FETCH_LEFT,     /* it was when the life before died */
    FETCH_SUSPECT,  /* it was when several in a row died */
    FETCH_ON_TRIAL, /* it is read alone */
    FETCH_ASIDE     /* it is not read */
};

/* A partition, and where reading it began. */
struct state_fetch {
    struct state_entry at;
    uint16_t lives;            /* in a row that died after they had begun there */
    uint16_t deaths;           /* on trial, in a row */
    uint32_t has_inflated;     /* memory grew on trial by what no message explains */
    _Atomic uint32_t standing; /* an enum fetch_standing */
};

/* Once for each file. */
void suspensions_draw_secret(struct suspensions *all);

typedef char state_topic_name[STATE_TOPIC_BYTES];

/* The parts, as pointers into the mapping. */
struct state {
    int fd;
    void *base;
    size_t bytes;
    uint64_t serial; /* tells this mapping from others that stood at the same address */
    struct state_shape shape;
    uint32_t suspect_count;
    uint64_t life; /* to begin; 0: any */
    struct state_head *head;
    state_topic_name *topics;
    struct state_thread *threads;
    struct pulse *pulses;
    uint8_t *progress;
    struct suspensions *suspensions;
    struct state_fetch *fetches;
    struct state_suspect *suspects;
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
