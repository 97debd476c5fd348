#include "state/crash.h"

#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/exit.h"
#include "state/layout.h"

static const int signals[] = {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE};
enum { SIGNAL_COUNT = sizeof signals / sizeof signals[0], THREAD_NAME_SIZE = 16 };

/* The names of librdkafka's threads begin with this. They never hold a message that runs here. */
static const char CLIENT_THREADS[] = "rdk:";

static const char NO_ROOM[] =
    "gpu-worker run: the disk of the state file is full, or the file was truncated; free "
    "space on the disk of state.dir, or set it to another one\n";

static struct state *watched;
static struct sigaction before[SIGNAL_COUNT];
static _Thread_local bool is_innocent;

static bool is_clients(void) {
    char name[THREAD_NAME_SIZE] = "";
    return prctl(PR_GET_NAME, name) == 0 &&
           strncmp(name, CLIENT_THREADS, sizeof CLIENT_THREADS - 1) == 0;
}

static bool is_of_file(const void *address) {
    const char *at = address, *base = watched->base;
    return at >= base && at < base + watched->bytes;
}

/*
 * Writes the death with system calls, because the mapping is what failed. If they fail too, the
 * death stays unexplained.
 */
static _Noreturn void end_without_file(void) {
    static const struct state_death death = {.kind = STATE_DEATH_OWN,
        .message = "the disk of the state file was full, or the file was truncated"};
    static const uint32_t written = 1;
    (void)!pwrite(watched->fd, &death, sizeof death, offsetof(struct state_head, death));
    (void)!pwrite(
        watched->fd, &written, sizeof written, offsetof(struct state_head, death_written));
    (void)!write(STDERR_FILENO, NO_ROOM, sizeof NO_ROOM - 1);
    _exit(CLI_FAILED);
}

/*
 * Lets the signal act as if there were no handler. A fault repeats when the handler returns; a
 * signal that was sent must be raised again.
 */
static void pass_on(int number, const siginfo_t *info) {
    for (size_t i = 0; i < SIGNAL_COUNT; i++)
        if (signals[i] == number) sigaction(number, &before[i], NULL);
    if (info->si_code <= 0) raise(number);
}

static void on_crash(int number, siginfo_t *info, void *context) {
    static const struct state_death own = {.kind = STATE_DEATH_OWN,
        .native = 0,
        .message = "a thread of the worker that holds no message crashed"};
    (void)context;
    if (number == SIGBUS && info->si_code > 0 && is_of_file(info->si_addr)) end_without_file();
    if (is_innocent || is_clients()) state_record_death(watched, &own);
    pass_on(number, info);
}

void crash_watch(struct state *state) {
    const struct sigaction action = {.sa_sigaction = on_crash, .sa_flags = SA_SIGINFO};
    if (state == NULL) return;
    watched = state;
    for (size_t i = 0; i < SIGNAL_COUNT; i++) sigaction(signals[i], &action, &before[i]);
}

bool crash_is_signal(int number) {
    for (size_t i = 0; i < SIGNAL_COUNT; i++)
        if (signals[i] == number) return true;
    return false;
}

void crash_is_no_evidence(void) {
    is_innocent = true;
}
