/**
 * Checks of what only a bug of this program can break. INVARIANT() is checked in release builds
 * too: if a bound, a count or an ownership is broken, it ends the process with a line that names
 * it, before memory is overrun.
 *
 * What a sender, a disk or a driver can break is an error instead. Threads: any.
 */
#ifndef BASE_INVARIANT_H
#define BASE_INVARIANT_H

/** `what` says what should be true, such as "a heap of timers has room". */
#define INVARIANT(condition, what)                                                                 \
    ((condition) ? (void)0 : invariant_broken(what, __FILE__, __LINE__))

/** Logs the line and calls abort(): the supervisor sees SIGABRT. */
_Noreturn void invariant_broken(const char *what, const char *file, int line);

#endif
