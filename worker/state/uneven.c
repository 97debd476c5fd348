/* Which kernels take times that depend on their data. */
#include <string.h>

#include "base/hash.h"
#include "state/layout.h"

/* Never 0, which marks a free place. */
static uint64_t hash_of(const struct state *state, struct slice program, struct slice entry) {
    const uint64_t *secret = state->suspensions->secret;
    const uint64_t own[2] = {secret[0] ^ hash_with_key(secret, program), secret[1]};
    uint64_t hash = hash_with_key(own, entry);
    return hash != 0 ? hash : 1;
}

/* relaxed, here and below: each hash stands alone */
static bool have(const struct state_unevens *unevens, uint64_t hash) {
    for (size_t i = 0; i < STATE_UNEVENS_MAX; i++) {
        uint64_t each = atomic_load_explicit(&unevens->hashes[i], memory_order_relaxed);
        if (each == hash) return true;
        if (each == 0) return false; /* they are filled in order */
    }
    return false;
}

bool state_has_unevens(const struct state *state) {
    return state != NULL &&
           atomic_load_explicit(&state->unevens->hashes[0], memory_order_relaxed) != 0;
}

bool state_is_uneven(const struct state *state, struct slice program, struct slice entry) {
    return state_has_unevens(state) && have(state->unevens, hash_of(state, program, entry));
}

bool state_note_uneven(struct state *state, struct slice program, struct slice entry) {
    if (state == NULL || state_is_uneven(state, program, entry)) return false;
    struct state_unevens *unevens = state->unevens;
    atomic_store_explicit(&unevens->hashes[unevens->next++ % STATE_UNEVENS_MAX],
        hash_of(state, program, entry), memory_order_relaxed);
    return true;
}
