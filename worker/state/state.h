/**
 * The state file: what an executor leaves behind when it dies. There is one for each executor. It
 * is mapped into memory, so the hot path writes it without system calls, and the page cache keeps
 * it when the process dies.
 *
 * It says where each message was (being decoded or encoded by a thread, or on the device in a
 * lane's batch), why the executor died if that is known, which messages are suspects or convicted,
 * which instances of arrays, how far a run of files has come, and how many messages
 * were answered since the file was made.
 *
 * A life of an executor: state_open() takes the lock and shows what the previous life left.
 * state_begin() clears that, except for suspects, topics, progress and sums. state_end() says that
 * nothing was left. The supervisor watches with state_watch(), and records a death afterwards with
 * state_amend(). It works on copies, so that a disk error cannot kill the supervisor.
 *
 * The supervisor draws a number for each life, and everything in the file belongs to a life by that
 * number. Process ids would not do: they are reused, in containers almost always. The blocks of the
 * file are allocated before they are used.
 *
 * Nothing in the file is trusted. It is used only if version, sizes and checksum of its head match
 * this build; every count is bounded when it is read; and an invalid topic reads as NULL.
 *
 * Lifetime: from state_open() or state_watch() to state_close(). Threads: each function says which.
 * Every function accepts a NULL state, and then does nothing and finds nothing.
 */
#ifndef STATE_STATE_H
#define STATE_STATE_H

#include <sys/types.h>

#include "base/error.h"
#include "base/pulse.h"
#include "broker/delivery.h"
#include "state/bounds.h"

struct state;

/* ---- a life of an executor ---- */

/**
 * Opens or creates the file (0600) and locks it, waiting up to `lock_timeout_ms` for another
 * process to release it. A file that is damaged, foreign or of another version is renamed to
 * PATH.damaged and a new one is made; `set_aside` then says why, otherwise its code is ERR_OK.
 * Errors: ERR_CONFIG (another process keeps the lock), ERR_IO, ERR_NO_MEMORY.
 */
MUST_CHECK enum err state_open(const char *path, int lock_timeout_ms, struct state **ret,
    struct error *set_aside, struct error *err);

/** Draws a number for a life: random, and never 0. */
uint64_t state_draw_life(void);

/**
 * Sets the number of the life that state_begin() begins. If this is not called, state_begin() draws
 * one.
 */
void state_name_life(struct state *state, uint64_t life);

/** How many batches the file has room for. The serial fallback counts as a lane. */
struct state_shape {
    uint32_t lanes, depth, batch_jobs;
};

/**
 * Begins a new life: what was left, and the last death, are cleared. Call it before any other
 * thread uses the state. Errors: ERR_IO, if the file cannot grow.
 */
MUST_CHECK enum err state_begin(struct state *state, const struct state_shape *shape,
    uint32_t device, const char *uuid, struct error *err);

/** Ends the life in order: nothing is left to suspect. Call it after the last thread has ended. */
void state_end(struct state *state);

/**
 * Forgets all messages: what was left, suspects, arrays, and partitions that are set aside. For a
 * broker that is new, whose messages have the positions of others. Call it before state_begin().
 */
void state_forget(struct state *state);

void state_close(struct state *state);

/* ---- the hot path: any thread, a few stores each ---- */

/** The calling thread works on this message (decodes or encodes it) until state_leave(). */
void state_enter(struct state *state, const struct position *position, uint32_t attempt);
void state_leave(struct state *state);

/** Notes job `index` of the batch that lane `lane` is about to launch from its slot `slot`. */
void state_note_job(struct state *state, uint32_t lane, uint32_t slot, uint32_t index,
    const struct position *position, uint32_t attempt);

/** The batch is of a long job, which has had so many rounds once it is over; 0: of other jobs. */
void state_note_rounds(struct state *state, uint32_t lane, uint32_t slot, uint64_t rounds);

/**
 * The noted jobs are being launched. `id` grows from batch to batch of a lane. The device may take
 * `limit_ns`, counted from now or from the fence of the lane's previous batch; 0: no limit.
 */
void state_launch(struct state *state, uint32_t lane, uint32_t slot, uint32_t job_count,
    uint64_t id, uint64_t limit_ns);

/** The batch's fence has happened, and its outcomes have been passed on. */
void state_fence(struct state *state, uint32_t lane, uint32_t slot);

void state_heartbeat(struct state *state);

/** Adds to the sums, which are kept from life to life. */
void state_count(struct state *state, uint64_t ok, uint64_t errors);

/* ---- deaths ---- */

enum state_death_kind {
    STATE_DEATH_NONE,   /* unknown, or there was no death */
    STATE_DEATH_STICKY, /* the driver said that the context is lost */
    STATE_DEATH_HANG,   /* the watchdog killed the executor */
    STATE_DEATH_SIGNAL, /* a fatal signal: SEGV, BUS, ABRT, ILL, FPE */
    STATE_DEATH_STALL,  /* killed for a thread that hung */
    STATE_DEATH_STOP,   /* it had been asked to stop, by the operator or the supervisor */
    STATE_DEATH_OWN     /* the worker's own fault, whatever it had in hand */
};
enum { STATE_DEATH_KINDS = STATE_DEATH_OWN + 1 };

/** Whether a death of this kind is evidence against a message that ran alone. */
static inline bool state_is_evidence(enum state_death_kind kind) {
    return kind == STATE_DEATH_STICKY || kind == STATE_DEATH_HANG || kind == STATE_DEATH_SIGNAL ||
           kind == STATE_DEATH_STALL;
}

struct state_death {
    enum state_death_kind kind;
    enum err code;  /* STICKY, HANG: of the error */
    int native;     /* STICKY: the CUresult; SIGNAL: the signal */
    uint32_t lane;  /* STICKY: the lane that saw it first; HANG: the batch's lane */
    uint64_t batch; /* HANG: the batch's id */
    char message[STATE_MESSAGE_BYTES];
};

/** Whether the device itself is at fault, whatever it ran: errors of its memory or of a link. */
bool state_is_fault_of_device(const struct state_death *death);

/**
 * Records why this life ends. Only the first record of a life counts, because what follows a lost
 * context is a consequence of it. Threads: any of the executor; the supervisor calls it after
 * state_amend().
 */
void state_record_death(struct state *state, const struct state_death *death);

/**
 * Notes that this life was asked to stop: a death without another record is put down to that. Does
 * nothing before state_begin(). May be called in a signal handler.
 */
void state_note_stop(struct state *state);

/** What was recorded for the previous life or, after state_begin(), for this one. */
struct state_death state_death(const struct state *state);

/** A message that a dead executor had in hand. */
struct state_left {
    struct position position; /* the topic lives as long as the mapping; has no lease */
    uint32_t attempt;
    bool is_on_device; /* else a thread was decoding or encoding it */
    uint32_t lane;     /* on the device: the batch's lane, its id and its number of jobs */
    uint64_t batch;
    uint32_t batch_jobs;
    uint64_t rounds; /* as state_note_rounds() says */
};

/**
 * Whether anything was left, or a suspect was running alone. For a state that was opened or
 * amended.
 */
bool state_has_left(const struct state *state);

typedef void state_visit_left(void *context, const struct state_left *left);

/**
 * Visits everything that was left, in any order. Call it between state_open() and state_begin().
 */
void state_each_left(const struct state *state, state_visit_left *visit, void *context);

/* ---- suspects ---- */

/* A message, as the file names it. */
struct state_entry {
    int64_t offset;
    uint64_t published_unix_ms; /* 0: not known */
    int32_t partition;
    uint16_t topic;
    uint16_t attempt;
};

enum state_standing {
    STATE_FREE,
    STATE_SUSPECT,
    STATE_DECODING_ALONE, /* a suspect that is being decoded while nothing else is in hand */
    STATE_ALONE,          /* a suspect that was decoded, and runs; at most one message is either */
    STATE_CONVICTED,
    STATE_UNDECODABLE /* convicted, because decoding it ended an executor */
};

struct state_suspect {
    struct state_entry at;
    enum state_standing standing;
    uint32_t tries;      /* deaths while it was alone, after the one that at.attempt counts */
    uint32_t is_counted; /* not 0: its conviction has been counted (suspensions.h) */
    uint32_t hung_with;  /* so many shared the batch with it that the watchdog ended; 0: none did */
    uint64_t rounds;     /* a long job: one of the first so many may have ended the executor */
    uint64_t alone_ns;   /* clock_ns() when it was last taken to run alone; 0: never */
    enum err code;       /* of the convicted */
    char message[STATE_MESSAGE_BYTES]; /* of the convicted: what the driver reported */
};

/**
 * The table of suspects, kept from life to life. state_open() frees entries that make no sense;
 * state_begin() may enlarge the table. Threads: one at a time. Without a state: NULL, and 0.
 */
struct state_suspect *state_suspects(struct state *state, size_t *capacity);

/**
 * Finds how the file names a position, adding its topic if needed. False: the table of topics is
 * full. Threads: any.
 */
MUST_CHECK bool state_entry_of(struct state *state, const struct position *position,
    uint32_t attempt, struct state_entry *ret);

/** Whether both name the same message, and not another one that came to its place. */
static inline bool state_same_message(const struct state_entry *a, const struct state_entry *b) {
    bool is_known = a->published_unix_ms != 0 && b->published_unix_ms != 0;
    return a->topic == b->topic && a->partition == b->partition && a->offset == b->offset &&
           (!is_known || a->published_unix_ms == b->published_unix_ms);
}

/** NULL if the entry has no valid topic. */
const char *state_topic(const struct state *state, const struct state_entry *entry);

/* Instances of an array, from `first` on; `count` 0: none. */
struct state_range {
    uint32_t first, count;
};

/* An instance that ended an executor while it ran alone. */
struct state_culprit {
    uint32_t instance;
    enum err code;
    char message[STATE_MESSAGE_BYTES];
};

enum state_search_use {
    STATE_SEARCH_FREE,
    STATE_SEARCH_ACTIVE,
    STATE_SEARCH_ANSWERED /* the answer is not committed yet */
};

/* What is known of an array that is a suspect, from life to life. */
struct state_search {
    struct state_entry at;
    uint32_t use;                     /* an enum state_search_use */
    uint32_t instances, culprits_max; /* of the array, as the life says that runs it */
    struct state_range running;       /* on the device now */
    struct state_range suspected;     /* in them is a culprit that is not known yet */
    uint32_t suspected_end;           /* up to here there may be more; 0: nothing is suspected */
    uint32_t is_narrowed;             /* a death has led to `suspected`, and no culprit yet */
    uint32_t deaths;                  /* that were of some instances */
    uint32_t counted_deaths;          /* so many of them have been counted (suspensions.h) */
    uint32_t fruitless;               /* how often all of `suspected` ran well after all */
    uint32_t culprit_count;
    struct state_culprit culprits[STATE_CULPRITS_MAX];
};

/** STATE_SEARCHES_MAX of them, kept from life to life (quarantine/culprits.h); NULL without a
 * state. Threads: one at a time. A life with another shape finds none. */
struct state_search *state_searches(const struct state *state);

/* ---- uneven kernels ---- */

/**
 * Kernels whose times depend on their data: a batch of them took longer than all its jobs may,
 * each of which then ran well alone. Kept from life to life, STATE_UNEVENS_MAX of them. Threads:
 * the first two any; one at a time notes. `state_note_uneven()`: false where it was known.
 */
bool state_has_unevens(const struct state *state);
bool state_is_uneven(const struct state *state, struct slice program, struct slice entry);
bool state_note_uneven(struct state *state, struct slice program, struct slice entry);

/* ---- from outside ---- */

/**
 * Copies the file of a running executor, without a lock. The copy stays as it is until the next
 * state_look(); it leaves out suspects and the jobs of batches. Errors: ERR_IO, if the file cannot
 * be read or does not (yet) belong to the life `life`; 0 accepts any life.
 */
MUST_CHECK enum err state_watch(
    const char *path, uint64_t life, struct state **ret, struct error *err);

/**
 * Copies the file again. Errors: ERR_IO; the copy may then be out of date, but is never
 * inconsistent enough to be dangerous.
 */
MUST_CHECK enum err state_look(struct state *watched, struct error *err);

/**
 * Locks the file of a life that is over and copies it, for state_record_death() and
 * state_set_fault(); state_save() then writes their changes to the file. Creates the file if it is
 * missing. Errors: as state_open().
 */
MUST_CHECK enum err state_amend(
    const char *path, int lock_timeout_ms, struct state **ret, struct error *err);
MUST_CHECK enum err state_save(struct state *amended, struct error *err);

/**
 * Maps the file without a lock, whether an executor runs or not, for the one thing that may be
 * changed beside it: lifting suspensions. Errors: ERR_IO.
 */
MUST_CHECK enum err state_touch(const char *path, struct state **ret, struct error *err);

/** How many lanes have a batch on the device; NULL: none. */
uint32_t state_busy_lanes(const struct state *state);

struct state_overdue {
    uint32_t lane;
    uint64_t batch;
    uint64_t limit_ns, overdue_ns;
};

/**
 * Kept by the watcher: until when each lane's batch was seen behind batches of other lanes. Zero it
 * before the first look at a life.
 */
struct state_waits {
    struct {
        uint64_t batch, until_ns;
    } lanes[STATE_LANES_MAX];
};

/**
 * Finds a batch that has been on the device for longer than its limit. Its time begins once the
 * lane's previous batch has ended, and so have those of other lanes that were launched before it,
 * because the device may have run them first. If the lane moves on at the same moment, fields may
 * not belong together: believe the answer only if it is the same several times in a row.
 */
MUST_CHECK bool state_find_overdue(const struct state *state, uint64_t now_ns,
    struct state_waits *waits, struct state_overdue *ret);

/* A thread that has been at work on one thing for too long. */
struct state_stall {
    char name[PULSE_NAME_SIZE];
    uint64_t for_ns;
    bool is_evidence; /* it had a message in hand, and waited for nothing outside the worker */
};

/**
 * Finds a stalled thread, the intake first: if the intake is stalled, the whole process may have
 * been frozen. As with state_find_overdue(), believe it only several times in a row.
 */
MUST_CHECK bool state_find_stall(
    const struct state *state, uint64_t now_ns, uint64_t limit_ns, struct state_stall *ret);

/* The executor's membership in the group that it takes its jobs from. */
enum state_group {
    STATE_GROUP_UNKNOWN,   /* it has not begun to take any */
    STATE_GROUP_NOT_ASKED, /* its jobs come from no group */
    STATE_GROUP_NO_BROKER, /* no broker has answered yet */
    STATE_GROUP_JOINING,   /* it has not been a member yet */
    STATE_GROUP_MEMBER,    /* it is a member, possibly without a partition */
    STATE_GROUP_AWAY       /* it was a member, and waits to be one again */
};

struct state_summary {
    uint64_t life; /* that began last; 0: there was none */
    pid_t pid;     /* its process */
    uint32_t device;
    char uuid[STATE_UUID_BYTES];
    uint64_t lives;
    uint64_t heartbeat_ns; /* clock_ns() */
    uint64_t ok, errors;   /* of all lives */
    bool is_unhealthy;     /* its device gets no executor any more; `fault` says why */
    char fault[STATE_MESSAGE_BYTES];
    char trouble[STATE_TROUBLE_BYTES]; /* why jobs wait and the worker is not ready; "": it is ready
                                        */
    uint32_t programs;                 /* loaded; 0: not yet */
    bool is_reload_refused;            /* the last reload */
    enum state_group group;
    uint64_t group_ns; /* clock_ns() when `group` last changed */
};
struct state_summary state_summary(const struct state *state);

/**
 * Publishes, as one word, which trouble of the worker's own makes jobs wait; "": none. Threads:
 * one.
 */
void state_set_trouble(struct state *state, const char *trouble);

/**
 * Publishes how many programs are loaded, whether the last reload was refused, and the membership
 * in the group. Threads: one.
 */
void state_set_programs(struct state *state, uint32_t count);
void state_set_reload(struct state *state, bool is_refused);
void state_set_group(struct state *state, enum state_group group);

/** Publishes that the device gets no executor any more. It holds until the next life begins. */
void state_set_fault(struct state *state, const char *fault);

/** For pulse_keep(). */
struct pulse *state_pulses(struct state *state);

/** STATE_PROGRESS_BYTES for the progress of a run of files, kept from life to life. */
void *state_progress(struct state *state);

#endif
