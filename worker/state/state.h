/**
 * The state file: what an executor leaves behind when it dies. One for each executor, mapped into
 * memory: the stores of the hot path are no system calls, and the page cache outlives the process.
 *
 * It says which messages were where (being decoded or encoded by a thread, on the device in a
 * lane's batch), why the executor died if anybody knows, which messages are suspects or convicted,
 * how far a run of files has come, and sums since the file was made.
 *
 * A life of an executor: state_open() takes the lock and shows what the life before left;
 * state_begin() forgets that, suspects, topics, progress and sums excepted; state_end() says that
 * nothing was left. The supervisor looks on with state_watch(), and records a death after it with
 * state_amend(): on copies, so that no fault of the disk is its own death.
 *
 * All that a life leaves is that of its number, which the supervisor draws for it: process ids come
 * again, in containers almost always. The blocks of the file are allocated before they are used.
 *
 * Nothing in the file is trusted: it is taken only where version, sizes and checksum of its head
 * are ours, every count is bounded when it is read, and a topic that is none reads as NULL.
 *
 * Lifetime: state_open() or state_watch() to state_close(). Threads: as each function says. Every
 * function takes a NULL state, and then does nothing and finds nothing.
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
 * Opens or makes the file (0600) and locks it, waiting up to `lock_timeout_ms` for a process that
 * still has it. A file that is damaged, foreign or of another version is renamed to PATH.damaged
 * and a new one is made: `set_aside` then says why, else its code is ERR_OK.
 * ERR_CONFIG: another process keeps the lock. ERR_IO, ERR_NO_MEMORY.
 */
MUST_CHECK enum err state_open(const char *path, int lock_timeout_ms, struct state **ret,
    struct error *set_aside, struct error *err);

/** A number for a life: no other one has it, and none is 0. */
uint64_t state_draw_life(void);

/** The number of the life that state_begin() begins; without it, one is drawn there. */
void state_name_life(struct state *state, uint64_t life);

/** How many batches may be noted: the serial fallback counts as a lane. */
struct state_shape {
    uint32_t lanes, depth, batch_jobs;
};

/**
 * A new life begins: what was left and the last death are forgotten. Before any other thread uses
 * the state. ERR_IO where the file cannot grow.
 */
MUST_CHECK enum err state_begin(struct state *state, const struct state_shape *shape,
    uint32_t device, const char *uuid, struct error *err);

/** The life ends as it should: nothing is left to suspect. After the last thread. */
void state_end(struct state *state);

void state_close(struct state *state);

/* ---- the hot path: any thread, a few stores each ---- */

/** The calling thread works on this message (decode, encode), until state_leave(). */
void state_enter(struct state *state, const struct position *position, uint32_t attempt);
void state_leave(struct state *state);

/** Notes job `index` of the batch that lane `lane` is about to launch from its slot `slot`. */
void state_note_job(struct state *state, uint32_t lane, uint32_t slot, uint32_t index,
    const struct position *position, uint32_t attempt);

/**
 * The noted jobs are launched from now on. `id` grows from batch to batch of a lane. The device may
 * take `limit_ns`, counted from now or from the fence of the lane's batch before it; 0: no limit.
 */
void state_launch(struct state *state, uint32_t lane, uint32_t slot, uint32_t job_count,
    uint64_t id, uint64_t limit_ns);

/** The batch's fence is behind us, and its outcomes are handed on. */
void state_fence(struct state *state, uint32_t lane, uint32_t slot);

void state_heartbeat(struct state *state);

/** Adds to the sums, which go on from life to life. */
void state_count(struct state *state, uint64_t ok, uint64_t errors);

/* ---- deaths ---- */

enum state_death_kind {
    STATE_DEATH_NONE,   /* nobody knows, or there was none */
    STATE_DEATH_STICKY, /* the driver said that the context is lost */
    STATE_DEATH_HANG,   /* the watchdog killed the executor */
    STATE_DEATH_SIGNAL, /* a fatal signal: SEGV, BUS, ABRT, ILL, FPE */
    STATE_DEATH_STALL,  /* killed for a thread that hung */
    STATE_DEATH_STOP,   /* it was asked to stop before: by the operator, or by its supervisor */
    STATE_DEATH_OWN     /* the worker's own trouble, whatever it had in hand */
};
enum { STATE_DEATH_KINDS = STATE_DEATH_OWN + 1 };

/** Whether a death of this kind speaks against a message that was alone. */
static inline bool state_is_evidence(enum state_death_kind kind) {
    return kind == STATE_DEATH_STICKY || kind == STATE_DEATH_HANG || kind == STATE_DEATH_SIGNAL ||
           kind == STATE_DEATH_STALL;
}

struct state_death {
    enum state_death_kind kind;
    enum err code;  /* STICKY, HANG: of the error */
    int native;     /* STICKY: the CUresult; SIGNAL: the signal */
    uint32_t lane;  /* STICKY: that saw it first; HANG: whose batch it was */
    uint64_t batch; /* HANG: the batch's id */
    char message[STATE_MESSAGE_BYTES];
};

/**
 * Records why this life ends. The first record of a life stays: what follows a lost context is
 * its consequence. By the executor, any thread; by the supervisor with state_amend().
 */
void state_record_death(struct state *state, const struct state_death *death);

/** This life was asked to stop: a death that nobody explains is of that. From a signal handler,
 * too. */
void state_note_stop(struct state *state);

/** What was recorded for the life before (or, in mid-life, for this one). */
struct state_death state_death(const struct state *state);

/** A message that a dead executor had in hand. */
struct state_left {
    struct position position; /* the topic lives as long as the mapping; no lease */
    uint32_t attempt;
    bool is_on_device; /* else a thread was decoding or encoding it */
    uint32_t lane;     /* on the device: whose batch, its id and how many jobs were in it */
    uint64_t batch;
    uint32_t batch_jobs;
};

/** Whether anything was left, or a suspect was alone. Of an opened or amended state. */
bool state_has_left(const struct state *state);

typedef void state_visit_left(void *context, const struct state_left *left);

/** Between state_open() and state_begin(): everything that was left, in no order. */
void state_each_left(const struct state *state, state_visit_left *visit, void *context);

/* ---- suspects ---- */

/* A message as the file names it. */
struct state_entry {
    int64_t offset;
    int32_t partition;
    uint16_t topic;
    uint16_t attempt;
};

enum state_standing {
    STATE_FREE,
    STATE_SUSPECT,
    STATE_DECODING_ALONE, /* a suspect that is being decoded while nothing else is in hand */
    STATE_ALONE,          /* one that was decoded, and runs; at most one message is either */
    STATE_CONVICTED,
    STATE_UNDECODABLE /* convicted, by the death of who decoded it */
};

struct state_suspect {
    struct state_entry at;
    enum state_standing standing;
    uint32_t tries;                    /* deaths while it was alone, after the one of at.attempt */
    uint32_t is_counted;               /* not 0: its conviction counts already (suspensions.h) */
    enum err code;                     /* of the convicted */
    char message[STATE_MESSAGE_BYTES]; /* of the convicted: what the driver said */
};

/**
 * The table, kept from life to life; state_open() frees what in it makes no sense. It may grow in
 * state_begin(). One thread at a time. NULL and 0 without a state.
 */
struct state_suspect *state_suspects(struct state *state, size_t *capacity);

/** How the file names a position; false where its topics are full. Any thread. */
MUST_CHECK bool state_entry_of(struct state *state, const struct position *position,
    uint32_t attempt, struct state_entry *ret);

/** Whether both name the same message. */
static inline bool state_same_message(const struct state_entry *a, const struct state_entry *b) {
    return a->topic == b->topic && a->partition == b->partition && a->offset == b->offset;
}

/** NULL where the entry's topic is none. */
const char *state_topic(const struct state *state, const struct state_entry *entry);

/* ---- from outside ---- */

/**
 * Copies the file of a running executor, without a lock: what it says until the next state_look().
 * Suspects, and the jobs of batches, are left out. ERR_IO where it cannot be read, or is not (yet)
 * that of the life `life`; 0 takes any.
 */
MUST_CHECK enum err state_watch(
    const char *path, uint64_t life, struct state **ret, struct error *err);

/** Copies it again. ERR_IO; what it said may be lost then, but not torn into nonsense. */
MUST_CHECK enum err state_look(struct state *watched, struct error *err);

/**
 * Copies the file of a life that is over, with its lock (as state_open()), for
 * state_record_death() and state_set_fault(), which reach the file by state_save(). Makes a file
 * where there is none. As state_open(); ERR_IO.
 */
MUST_CHECK enum err state_amend(
    const char *path, int lock_timeout_ms, struct state **ret, struct error *err);
MUST_CHECK enum err state_save(struct state *amended, struct error *err);

/**
 * Maps the file, whether an executor runs or not, without a lock, for what may be changed beside
 * it: lifting suspensions. ERR_IO as above.
 */
MUST_CHECK enum err state_touch(const char *path, struct state **ret, struct error *err);

struct state_overdue {
    uint32_t lane;
    uint64_t batch;
    uint64_t limit_ns, overdue_ns;
};

/** The watcher's own: until when it saw each lane's batch behind work of other lanes. Zeroed before
 * the first look at a life. */
struct state_waits {
    struct {
        uint64_t batch, until_ns;
    } lanes[STATE_LANES_MAX];
};

/**
 * Finds a batch that has been on the device for longer than its limit. Its time runs once the
 * lane's batch before it has ended, and those of other lanes that were launched before it: the
 * device may have run them first. Fields may be torn where the lane goes on in the same moment:
 * only the same answer several times in a row means it.
 */
MUST_CHECK bool state_find_overdue(const struct state *state, uint64_t now_ns,
    struct state_waits *waits, struct state_overdue *ret);

/* A thread that has been at work on one thing for too long. */
struct state_stall {
    char name[PULSE_NAME_SIZE];
    uint64_t for_ns;
    bool is_evidence; /* it had a message in hand, and waited for nothing outside of the worker */
};

/**
 * Finds one, the intake's first: where that stands still, the whole process may have been frozen.
 * As state_find_overdue(), it means it only several times in a row.
 */
MUST_CHECK bool state_find_stall(
    const struct state *state, uint64_t now_ns, uint64_t limit_ns, struct state_stall *ret);

/* Where the executor stands with the group that it takes its jobs from. */
enum state_group {
    STATE_GROUP_UNKNOWN,   /* it has not begun to take any */
    STATE_GROUP_NOT_ASKED, /* its jobs come from no group */
    STATE_GROUP_NO_BROKER, /* no broker has answered yet */
    STATE_GROUP_JOINING,   /* it has not been a member yet */
    STATE_GROUP_MEMBER,    /* it has its share, which may be no partition */
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
    bool is_unhealthy;     /* its device gets no executor any more, because of */
    char fault[STATE_MESSAGE_BYTES];
    char trouble[STATE_TROUBLE_BYTES]; /* why its jobs wait: the worker is not ready; "": it is */
    uint32_t programs;                 /* that are loaded; 0: not yet */
    bool is_reload_refused;            /* the last one */
    enum state_group group;
    uint64_t group_ns; /* clock_ns() when it became so */
};
struct state_summary state_summary(const struct state *state);

/** Says for tools, in a word, what trouble of the worker's own jobs wait for; "": none. One thread.
 */
void state_set_trouble(struct state *state, const char *trouble);

/** Says for tools how many programs are loaded, whether what was read again was refused, and where
 * it stands with its group. One thread. */
void state_set_programs(struct state *state, uint32_t count);
void state_set_reload(struct state *state, bool is_refused);
void state_set_group(struct state *state, enum state_group group);

/** Says for tools that the device gets no executor any more; until the next life begins. */
void state_set_fault(struct state *state, const char *fault);

/** For pulse_keep(). */
struct pulse *state_pulses(struct state *state);

/** STATE_PROGRESS_BYTES of room for the progress of a run of files; kept from life to life. */
void *state_progress(struct state *state);

#endif
