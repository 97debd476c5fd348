#include "base/signals.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

_Static_assert(ATOMIC_BOOL_LOCK_FREE == 2, "a signal handler must not take a lock");
static atomic_bool caught_stop;

bool signal_is_ignored(int number) {
    struct sigaction action;
    return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

static void on_stop_signal(int number) {
    /* relaxed: it passes nothing on */
    atomic_store_explicit(&caught_stop, true, memory_order_relaxed);
}

void signals_catch_stop(void) {
    const struct sigaction action = {.sa_handler = on_stop_signal};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
}

bool signals_caught_stop(void) {
    return atomic_load_explicit(&caught_stop, memory_order_relaxed); /* as above */
}
