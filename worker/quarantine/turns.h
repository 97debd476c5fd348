/**
 * Turns: when suspects run (suspects.h), and when all others do. While a suspect runs nobody else
 * does, and if it ends the executor, everybody waits for the next one. So suspects give way: after
 * what they took, the others have TURNS_SHARE times as long. All messages of a key whose jobs have
 * ended executors are held for longer, and longer after each death (turns_hold_ns()).
 *
 * Nobody gives way to nobody: where no other message has come or was in flight for TURNS_QUIET_MS,
 * or none can come any more, it is the turn of the suspects.
 *
 * Units: nanoseconds, by clock_ns(). Lifetime: plain values. Threads: pure; the caller has a lock.
 */
#ifndef QUARANTINE_TURNS_H
#define QUARANTINE_TURNS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    TURNS_SHARE = 2,
    TURNS_MS = 100, /* suspects that run well have so long at a time */
    TURNS_QUIET_MS = 1000,
    TURNS_HELD_MAX_MS = 600 * 1000
};

struct turns {
    uint64_t
        step_ns; /* what the last life's suspect took, with the death and the start behind it */
    uint64_t spent_ns;       /* by suspects, since the others had theirs */
    uint64_t pause_until_ns; /* no suspect runs before */
    uint64_t others_ns;      /* when there was another message last */
    bool is_over;            /* there will be none */
};

/** A life begins. `alone_ns`: when the suspect was taken that the last one died of; 0: of none. */
struct turns turns_begin(uint64_t alone_ns, uint64_t now_ns);

/** A suspect that was taken at `alone_ns` is answered. */
void turns_end_step(struct turns *turns, uint64_t alone_ns, uint64_t now_ns);

/** For how long the messages of a key are held that ended so many executors, of late. */
uint64_t turns_hold_ns(const struct turns *turns, uint32_t deaths);

/** Whether a message that is held until then still is. */
bool turns_hold(const struct turns *turns, uint64_t held_until_ns, uint64_t now_ns);

/** Whether a suspect that is held until then may run. */
bool turns_have_come(const struct turns *turns, uint64_t held_until_ns, uint64_t now_ns);

#endif
