/**
 * The tables that quarantine/ keeps in the state file, besides that of suspects (state.h): which
 * keys and programs are suspended, and from where partitions are read. quarantine/suspensions.h and
 * quarantine/fetches.h say what their values mean.
 *
 * Every count and text in them may be damaged, so readers must bound them. Lifetime: that of the
 * state. Threads: _Atomic members are for any thread, also of another process; for the others see
 * quarantine/.
 */
#ifndef STATE_TABLES_H
#define STATE_TABLES_H

#include <stdatomic.h>

#include "state/bounds.h"
#include "state/state.h"

/* A key or a program whose jobs were convicted. */
struct suspension_entry {
    _Atomic uint64_t hash;                      /* 0: free */
    _Atomic uint64_t until_ms;                  /* 0: not suspended */
    _Atomic uint64_t held_until_ns;             /* of a key: by clock_ns() */
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
    _Atomic uint64_t last_until_ms; /* all suspensions end by then */
    struct suspension_entry keys[SUSPENSION_KEYS_MAX], programs[SUSPENSION_PROGRAMS_MAX];
    struct suspension_standing standings[SUSPENSION_STANDINGS_MAX];
};

enum fetch_standing {
    FETCH_FREE,
    FETCH_OPEN,     /* it is being read */
    FETCH_LEFT,     /* it was being read when the previous life died */
    FETCH_SUSPECT,  /* it was being read when several lives in a row died */
    FETCH_ON_TRIAL, /* it alone is being read */
    FETCH_ASIDE     /* it is not read */
};

/* A partition, and where reading began. */
struct state_fetch {
    struct state_entry at;
    uint16_t lives;            /* lives in a row that began there and died */
    uint16_t deaths;           /* deaths in a row while on trial */
    uint32_t has_inflated;     /* memory grew while on trial, by more than any message explains */
    _Atomic uint32_t standing; /* an enum fetch_standing */
};

/** NULL without a state. */
struct suspensions *state_suspensions(const struct state *state);

/** FETCHES_MAX of them; NULL without a state. */
struct state_fetch *state_fetches(const struct state *state);

#endif
