/**
 * What only we can break. INVARIANT() holds in release builds too: a bound, a count or an ownership
 * that a bug has broken ends the process with a line that names it, before memory is overrun.
 *
 * It is for bugs of ours alone: what a sender, a disk or a driver can break is an error. Threads:
 * any.
 */
#ifndef BASE_INVARIANT_H
#define BASE_INVARIANT_H

/** `what` is what should have been true, such as "a heap of timers has room". */
#define INVARIANT(condition, what)                                                                 \
    ((condition) ? (void)0 : invariant_broken(what, __FILE__, __LINE__))

/** Logs the line and calls abort(): the supervisor sees SIGABRT. */
_Noreturn void invariant_broken(const char *what, const char *file, int line);

#endif
