#include "quarantine/turns.h"

#include <stddef.h>

#define MS 1000000ull

static uint64_t at_most(uint64_t value, uint64_t most) {
    return value < most ? value : most;
}

/* The time may be of another boot, whose clock was ahead. */
static uint64_t since(uint64_t then_ns, uint64_t now_ns) {
    return then_ns != 0 && then_ns < now_ns ? at_most(now_ns - then_ns, TURNS_HELD_MAX_MS * MS) : 0;
}

struct turns turns_begin(uint64_t alone_ns, uint64_t now_ns) {
    uint64_t step_ns = since(alone_ns, now_ns);
    return (struct turns){
        .step_ns = step_ns, .pause_until_ns = now_ns + TURNS_SHARE * step_ns, .others_ns = now_ns};
}

void turns_end_step(struct turns *turns, uint64_t alone_ns, uint64_t now_ns) {
    turns->spent_ns += since(alone_ns, now_ns);
    if (turns->spent_ns < TURNS_MS * MS) return;
    turns->pause_until_ns = now_ns + TURNS_SHARE * turns->spent_ns;
    turns->spent_ns = 0;
}

/* One poisonous job, or an array with one culprit, has its answer soon. After some more deaths they
 * cost the others a hundredth of their time. */
uint64_t turns_hold_ns(const struct turns *turns, uint32_t deaths) {
    static const uint64_t times[] = {0, 2, 8, 32, 100};
    size_t last = sizeof times / sizeof times[0] - 1;
    return at_most(turns->step_ns * times[deaths < last ? deaths : last], TURNS_HELD_MAX_MS * MS);
}

static bool is_quiet(const struct turns *turns, uint64_t now_ns) {
    return turns->is_over || now_ns - turns->others_ns >= TURNS_QUIET_MS * MS;
}

bool turns_hold(const struct turns *turns, uint64_t held_until_ns, uint64_t now_ns) {
    bool is_held = now_ns < held_until_ns && held_until_ns - now_ns <= TURNS_HELD_MAX_MS * MS;
    return is_held && !is_quiet(turns, now_ns);
}

bool turns_have_come(const struct turns *turns, uint64_t held_until_ns, uint64_t now_ns) {
    return is_quiet(turns, now_ns) ||
           (now_ns >= turns->pause_until_ns && !turns_hold(turns, held_until_ns, now_ns));
}
