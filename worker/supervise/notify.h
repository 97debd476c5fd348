/**
 * What systemd is told of the worker (sd_notify(3), Type=notify and notify-reload): datagrams to
 * the socket that the environment names (NOTIFY_SOCKET, a path or, after an @, an abstract name),
 * and signs of life where WATCHDOG_USEC asks for them. Children do not inherit these names
 * (process/child.h).
 *
 * Nothing of it can stop a worker, and nobody waits for a reader: what cannot be sent, where
 * systemd is behind and its socket is full, say, is sent again with the next call of
 * notify_alive(), or notify_status() for the status. Lifetime: notify_open() to notify_close().
 * Threads: one. It logs, once.
 */
#ifndef SUPERVISE_NOTIFY_H
#define SUPERVISE_NOTIFY_H

#include <stdint.h>

struct notify;

/** NULL: nobody asks. Every function takes NULL, and then does nothing. */
struct notify *notify_open(void);
void notify_close(struct notify *notify);

/** The worker has started (READY=1). Only the first call counts. */
void notify_ready(struct notify *notify);

/** A reload begins, and has ended, well or not. Nothing is told of one before notify_ready(). */
void notify_reloading(struct notify *notify);
void notify_reloaded(struct notify *notify);

/** It drains and ends. From now on only the status and signs of life are told. */
void notify_stopping(struct notify *notify);

/** The worker lives, which is told twice in each time that systemd gives. To be called steadily: it
 * also tells again what could not be told. */
void notify_alive(struct notify *notify, uint64_t now_ns);

/** One plain sentence for `systemctl status`; told where it has changed. */
__attribute__((format(printf, 2, 3))) void notify_status(
    struct notify *notify, const char *format, ...);

#endif
