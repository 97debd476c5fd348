/**
 * Tells systemd how the worker is (sd_notify(3), Type=notify and notify-reload). It sends datagrams
 * to the socket that NOTIFY_SOCKET names (a path or, after an @, an abstract name), and signs of
 * life if WATCHDOG_USEC asks for them. Children do not inherit these variables (process/child.h).
 *
 * A failure here never stops a worker, and no call waits for systemd. What cannot be sent, for
 * example because the socket is full, is sent again by the next notify_alive(), or notify_status()
 * for the status. Lifetime: from notify_open() to notify_close(). Threads: one. It logs a failure
 * once.
 */
#ifndef SUPERVISE_NOTIFY_H
#define SUPERVISE_NOTIFY_H

#include <stdint.h>

struct notify;

/** NULL: systemd did not ask. Every function accepts NULL, and then does nothing. */
struct notify *notify_open(void);
void notify_close(struct notify *notify);

/** The worker has started (READY=1). Only the first call counts. */
void notify_ready(struct notify *notify);

/**
 * A reload begins; it has ended, with or without success. Neither is sent before notify_ready().
 */
void notify_reloading(struct notify *notify);
void notify_reloaded(struct notify *notify);

/**
 * The worker finishes its jobs and ends. From now on only the status and signs of life are sent.
 */
void notify_stopping(struct notify *notify);

/**
 * Sends a sign of life twice in each interval of systemd's watchdog, and again what could not be
 * sent before. Call it again and again.
 */
void notify_alive(struct notify *notify, uint64_t now_ns);

/** One plain sentence for `systemctl status`, sent when it has changed. */
__attribute__((format(printf, 2, 3))) void notify_status(
    struct notify *notify, const char *format, ...);

#endif
