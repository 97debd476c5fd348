#include "world/scheduler.h"

#include <errno.h>
#include <execinfo.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    FRAMES_MAX = 32,
    LOOK_MS = 20,   /* real time, between two looks for a process that died with the world in hand,
                       should its signal come too early */
    STUCK_S = 120,  /* real time, without a step */
    STEP_NS = 1000, /* what a step takes */
    SWITCH_ONE_IN = 8,
    STATUS_STUCK = 97
};
static const uint64_t WALL_START_NS = 1790000000ull * 1000000000u;
static const size_t REGION_BYTES = (size_t)1 << 30; /* of addresses; pages come as they are used */

enum slot_state { SLOT_FREE, SLOT_READY, SLOT_WAITING, SLOT_ENDED };

struct slot {
    atomic_int turn; /* a futex: 1 lets its thread run */
    enum slot_state state;
    pid_t process;
    pthread_t thread;
    pid_t tid;
    const void *key; /* what it waits for */
    uint64_t until_ns;
    bool is_late;
    void *(*run)(void *);
    void *context;
};

struct process {
    pid_t id;
    bool has_ended, is_reaped;
    int status;
    uint64_t silent_since_ns, frozen_until_ns;
};

enum { PROCESSES = 256 };

struct region {
    size_t used;
    uint64_t now_ns, random;
    int64_t wall_shift_ns;
    size_t slot_count, process_count;
    struct slot *current;
    struct slot slots[SCHEDULER_SLOTS];
    struct process processes[PROCESSES];
};

static struct region *world;
static _Thread_local struct slot *self;

/* ---- the region ---- */

static struct slot *add_slot(pid_t process) {
    struct slot *slot = NULL;
    for (size_t i = 0; i < world->slot_count && slot == NULL; i++)
        if (world->slots[i].state == SLOT_FREE) slot = &world->slots[i];
    if (slot == NULL && world->slot_count == SCHEDULER_SLOTS) {
        fprintf(stderr, "more than %d threads in a world\n", SCHEDULER_SLOTS);
        abort();
    }
    if (slot == NULL) slot = &world->slots[world->slot_count++];
    memset(slot, 0, sizeof *slot);
    slot->state = SLOT_READY;
    slot->process = process;
    return slot;
}

/* Of SIGCHLD: it ends the wait for a turn. */
static void on_death(int signal) {}

void *scheduler_alloc(size_t size) {
    size_t begin = (world->used + 15) / 16 * 16;
    if (size > REGION_BYTES - begin) {
        fprintf(stderr, "a world's memory is full\n");
        abort();
    }
    world->used = begin + size;
    return (char *)world + begin;
}

uint64_t scheduler_now_ns(void) {
    return world->now_ns;
}

uint64_t scheduler_wall_ns(void) {
    return WALL_START_NS + world->now_ns + (uint64_t)world->wall_shift_ns;
}

void scheduler_shift_wall(int64_t ns) {
    world->wall_shift_ns += ns;
}

/* SplitMix64 (Steele, Lea and Flood, 2014). */
uint64_t scheduler_draw(uint64_t bound) {
    uint64_t z = world->random += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % bound;
}

bool scheduler_is_on(void) {
    return self != NULL;
}

/* ---- who runs ---- */

static struct process *find_process(pid_t id) {
    for (size_t i = 0; i < world->process_count; i++)
        if (world->processes[i].id == id) return &world->processes[i];
    return NULL;
}

static bool is_frozen(const struct slot *slot) {
    const struct process *process = find_process(slot->process);
    return process != NULL && process->frozen_until_ns > world->now_ns;
}

/* Of those that may run, one; NULL: all wait. */
static struct slot *choose(void) {
    struct slot *ready[SCHEDULER_SLOTS];
    size_t count = 0;
    for (size_t i = 0; i < world->slot_count; i++) {
        struct slot *slot = &world->slots[i];
        if (slot->state == SLOT_WAITING && slot->until_ns <= world->now_ns) {
            slot->state = SLOT_READY;
            slot->is_late = true;
        }
        if (slot->state == SLOT_READY && !is_frozen(slot)) ready[count++] = slot;
    }
    return count > 0 ? ready[scheduler_draw(count)] : NULL;
}

/* The next time at which anybody may run; UINT64_MAX: never. */
static uint64_t next_time(void) {
    uint64_t next_ns = UINT64_MAX;
    for (size_t i = 0; i < world->slot_count; i++) {
        const struct slot *slot = &world->slots[i];
        if (slot->state != SLOT_READY && slot->state != SLOT_WAITING) continue;
        uint64_t at_ns = slot->state == SLOT_READY ? world->now_ns : slot->until_ns;
        const struct process *process = find_process(slot->process);
        if (process != NULL && process->frozen_until_ns > at_ns && at_ns != UINT64_MAX)
            at_ns = process->frozen_until_ns;
        if (at_ns < next_ns) next_ns = at_ns;
    }
    return next_ns;
}

/* What each thread waits for. */
static void tell_waiting(void) {
    static const char *const states[] = {"free", "ready", "waiting", "ended"};
    fprintf(stderr, "at %" PRIu64 " us:\n", world->now_ns / 1000);
    for (size_t i = 0; i < world->slot_count; i++) {
        const struct slot *slot = &world->slots[i];
        if (slot->state == SLOT_READY || slot->state == SLOT_WAITING)
            fprintf(stderr, "  process %d: %s for %p until %" PRIu64 " us\n", (int)slot->process,
                states[slot->state], slot->key, slot->until_ns / 1000);
    }
}

static void tell_stack(int signal) {
    void *frames[FRAMES_MAX];
    backtrace_symbols_fd(frames, backtrace(frames, FRAMES_MAX), STDERR_FILENO);
    _exit(STATUS_STUCK);
}

/* Each turn takes time of the world. Where none has, the thread whose turn it is tells where it is,
 * which ends its process. */
static void look_for_progress(int signal) {
    static uint64_t seen_ns;
    const struct slot *current = world->current;
    alarm(STUCK_S);
    if (world->now_ns != seen_ns) {
        seen_ns = world->now_ns;
        return;
    }
    tell_waiting();
    fprintf(stderr, "and process %d has its turn:\n", (int)current->process);
    (void)syscall(SYS_tgkill, current->process, current->tid, SIGUSR1);
    _exit(STATUS_STUCK);
}

void scheduler_begin(uint64_t seed) {
    const struct sigaction action = {.sa_handler = on_death};
    (void)sigaction(SIGCHLD, &action, NULL);
    world = mmap(NULL, REGION_BYTES, PROT_READ | PROT_WRITE,
        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (world == MAP_FAILED) abort();
    world->used = sizeof *world;
    world->now_ns = 1000000000;
    world->random = seed * 0x9e3779b97f4a7c15u + 1;
    self = add_slot(getpid());
    world->current = self;
    (void)signal(SIGALRM, look_for_progress);
    alarm(STUCK_S);
}

static struct slot *choose_next(void) {
    struct slot *next;
    world->now_ns += STEP_NS;
    while ((next = choose()) == NULL) {
        uint64_t at_ns = next_time();
        if (at_ns == UINT64_MAX) {
            fprintf(stderr, "all threads of the world wait for ever\n");
            tell_waiting();
            _exit(STATUS_STUCK);
        }
        if (at_ns > world->now_ns) world->now_ns = at_ns;
    }
    return next;
}

static long futex(atomic_int *word, int operation, int value, const struct timespec *timeout) {
    return syscall(SYS_futex, word, operation, value, timeout, NULL, 0);
}

static void give_turn(struct slot *next) {
    world->current = next;
    /* release: with await_turn()'s acquire, what this thread has done is seen by the next */
    atomic_store_explicit(&next->turn, 1, memory_order_release);
    futex(&next->turn, FUTEX_WAKE, 1, NULL);
}

static void set_slots(pid_t process, enum slot_state state) {
    for (size_t i = 0; i < world->slot_count; i++)
        if (world->slots[i].process == process) world->slots[i].state = state;
}

/* Threads of the process may still wait for a turn: others must not have their slots before it is
 * reaped. */
static void end_slots(pid_t process) {
    set_slots(process, SLOT_ENDED);
}

static void free_slots(pid_t process) {
    set_slots(process, SLOT_FREE);
}

/* The first thread of the world, which forked all processes, takes over from one that died in its
 * turn. It has none itself, so it touches nothing while anybody else lives that has. */
static void look_for_dead(void) {
    int status;
    pid_t id = world->current->process;
    if (waitpid(id, &status, WNOHANG) != id) return;
    struct process *process = find_process(id);
    process->has_ended = process->is_reaped = true;
    process->status = status;
    if (process->silent_since_ns == UINT64_MAX) process->silent_since_ns = world->now_ns;
    free_slots(id);
    give_turn(choose_next());
}

static void await_turn(void) {
    const struct timespec look = {.tv_nsec = LOOK_MS * 1000000};
    bool is_first = self == &world->slots[0];
    /* acquire: see give_turn() */
    while (atomic_load_explicit(&self->turn, memory_order_acquire) == 0) {
        long woken = futex(&self->turn, FUTEX_WAIT, 0, is_first ? &look : NULL);
        if (is_first && woken != 0 && (errno == ETIMEDOUT || errno == EINTR)) look_for_dead();
    }
    atomic_store_explicit(&self->turn, 0, memory_order_relaxed); /* only its thread looks now */
}

static void hand_on(void) {
    struct slot *next = choose_next();
    if (next == self) {
        world->current = self;
        return;
    }
    give_turn(next);
    await_turn();
}

/* ---- waiting ---- */

void scheduler_yield(void) {
    hand_on();
}

void scheduler_maybe_yield(void) {
    if (scheduler_draw(SWITCH_ONE_IN) == 0) hand_on();
}

bool scheduler_wait(const void *key, uint64_t until_ns) {
    self->state = SLOT_WAITING;
    self->key = key;
    self->until_ns = until_ns;
    self->is_late = false;
    hand_on();
    self->key = NULL;
    return !self->is_late;
}

static bool is_shared(const void *key) {
    return (const char *)key >= (const char *)world &&
           (const char *)key < (const char *)world + REGION_BYTES;
}

static bool waits_for(const struct slot *slot, const void *key) {
    return slot->state == SLOT_WAITING && slot->key == key &&
           (is_shared(key) || slot->process == self->process);
}

void scheduler_wake_one(const void *key) {
    size_t count = 0;
    struct slot *chosen = NULL;
    for (size_t i = 0; i < world->slot_count; i++)
        if (waits_for(&world->slots[i], key) && scheduler_draw(++count) == 0)
            chosen = &world->slots[i];
    if (chosen != NULL) chosen->state = SLOT_READY;
}

void scheduler_wake_all(const void *key) {
    for (size_t i = 0; i < world->slot_count; i++)
        if (waits_for(&world->slots[i], key)) world->slots[i].state = SLOT_READY;
}

void scheduler_sleep_ns(uint64_t ns) {
    (void)scheduler_wait(NULL, world->now_ns + ns);
}

/* ---- threads and processes ---- */

static void *run_thread(void *context) {
    self = context;
    self->tid = gettid();
    await_turn();
    void *ret = self->run(self->context);
    self->state = SLOT_ENDED;
    scheduler_wake_all(self);
    struct slot *next = choose_next();
    self = NULL; /* what ends with the thread waits as threads do without a world */
    give_turn(next);
    return ret;
}

int __real_pthread_create(
    pthread_t *ret, const pthread_attr_t *attributes, void *(*run)(void *), void *context);
int __real_pthread_join(pthread_t thread, void **ret);

int scheduler_create(
    pthread_t *ret, const pthread_attr_t *attributes, void *(*run)(void *), void *context) {
    struct slot *slot = add_slot(self->process);
    slot->run = run;
    slot->context = context;
    int code = __real_pthread_create(&slot->thread, attributes, run_thread, slot);
    *ret = slot->thread;
    if (code != 0) slot->state = SLOT_FREE;
    return code;
}

int scheduler_join(pthread_t thread, void **ret) {
    struct slot *slot = NULL;
    for (size_t i = 0; i < world->slot_count; i++)
        if (world->slots[i].state != SLOT_FREE && world->slots[i].process == self->process &&
            &world->slots[i] != self && pthread_equal(world->slots[i].thread, thread))
            slot = &world->slots[i];
    while (slot != NULL && slot->state != SLOT_ENDED) (void)scheduler_wait(slot, UINT64_MAX);
    int code = __real_pthread_join(thread, ret);
    if (slot != NULL) slot->state = SLOT_FREE;
    return code;
}

/* On a busy machine the kernel soon gives the number of a process that has ended to another one,
 * which would be taken for it. */
static pid_t fork_with_new_id(void) {
    pid_t id;
    while ((id = fork()) > 0 && find_process(id) != NULL) {
        kill(id, SIGKILL); /* it waits for its turn */
        (void)waitpid(id, NULL, 0);
    }
    return id;
}

pid_t scheduler_fork(int (*run)(void *context), void *context) {
    struct slot *slot = add_slot(0);
    slot->state = SLOT_WAITING; /* until it is known which process it is of */
    slot->until_ns = UINT64_MAX;
    pid_t id = fork_with_new_id();
    if (id < 0) abort();
    if (id == 0) {
        self = slot;
        self->tid = gettid();
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)signal(SIGUSR1, tell_stack);
        await_turn();
        scheduler_exit(run(context));
    }
    slot->process = id;
    slot->thread = pthread_self();
    slot->state = SLOT_READY;
    if (world->process_count == PROCESSES) abort();
    world->processes[world->process_count++] =
        (struct process){.id = id, .silent_since_ns = UINT64_MAX};
    return id;
}

void scheduler_exit(int status) {
    struct process *process = find_process(self->process);
    process->has_ended = true;
    process->status = status << 8; /* as waitpid() tells it */
    process->silent_since_ns = world->now_ns;
    end_slots(self->process);
    give_turn(choose_next());
    _exit(status);
}

void scheduler_kill(pid_t id) {
    struct process *process = find_process(id);
    if (process->has_ended) return;
    kill(id, SIGKILL);
    (void)waitpid(id, &process->status, 0);
    process->has_ended = process->is_reaped = true;
    if (process->silent_since_ns == UINT64_MAX) process->silent_since_ns = world->now_ns;
    free_slots(id);
}

void scheduler_freeze(pid_t id, uint64_t until_ns) {
    struct process *process = find_process(id);
    if (process->has_ended) return;
    process->frozen_until_ns = until_ns;
    process->silent_since_ns = world->now_ns;
}

static bool is_silent(const struct process *process) {
    return process->has_ended || process->frozen_until_ns > world->now_ns;
}

bool scheduler_is_silent(pid_t id) {
    const struct process *process = find_process(id);
    return process != NULL && is_silent(process);
}

uint64_t scheduler_silence_ns(pid_t id, uint64_t since_ns) {
    const struct process *process = find_process(id);
    if (process == NULL || process->silent_since_ns == UINT64_MAX ||
        process->silent_since_ns < since_ns)
        return 0;
    return (is_silent(process) ? world->now_ns : process->frozen_until_ns) -
           process->silent_since_ns;
}

bool scheduler_has_ended(pid_t id, int *status) {
    struct process *process = find_process(id);
    if (process->has_ended && !process->is_reaped) { /* what it had open is closed then */
        (void)waitpid(id, &process->status, 0);
        process->is_reaped = true;
        free_slots(id);
    }
    *status = process->status;
    return process->has_ended;
}
