/**
 * Tracks which messages of which partitions are unfinished, and so what may be committed.
 *
 * A message begins when it is taken and finishes, in any order, when everything that answers it is
 * acknowledged. The offset to commit is the lowest unfinished one, together with a bitmap of those
 * above it that are finished. Offsets that never begin (compacted away, transaction markers) count
 * as finished.
 *
 * No offset may begin OFFSETS_WINDOW or more above the lowest unfinished one of its partition: a
 * partition's state is a ring of that size, with one bit for each offset.
 *
 * A message that has begun starts when its job is given to the device or answered, and is put back
 * if the job has to wait again. A partition that is leaving waits for messages that have started;
 * the others do not start any more, and begin anew with the next owner.
 *
 * A partition is followed from offsets_assign() to offsets_revoke(). What its earlier owner had
 * committed as finished does not begin again. Each such time is a lease, and finishing a position
 * of an earlier lease does nothing. If an offset begins that is not above all that began before it
 * (another log, a stale fetch), the client reads again from there, and a new lease starts at it.
 *
 * Messages that earlier owners may have died of are contested: those in the window of the committed
 * metadata that existed when the end of the partition was first read. After OFFSETS_TAKEOVERS_MAX
 * takeovers they run alone, and every commit includes what is left of the window. The last commit
 * of a partition hands it over.
 *
 * Units: offsets; nanoseconds of clock_ns(). Threads: any. Memory: 6 KiB for each partition that
 * was ever assigned.
 */
#ifndef BROKER_OFFSETS_H
#define BROKER_OFFSETS_H

#include "base/error.h"
#include "broker/commit_metadata.h"
#include "broker/delivery.h"

enum { OFFSETS_WINDOW = COMMIT_METADATA_WINDOW };
enum { OFFSET_UNKNOWN = -1 };

/** One takeover may be chance; after the second, a message may be what its owners die of. */
enum { OFFSETS_TAKEOVERS_MAX = 2 };

struct offsets;

/** What is known of an assigned partition. */
struct offsets_state {
    int64_t next_commit; /* the lowest unfinished offset; OFFSET_UNKNOWN before the first one */
    size_t unfinished_count;
    size_t started_count;     /* of those */
    uint64_t lowest_since_ns; /* where unfinished_count is not 0 */
};

/** What a group has committed for a partition. */
struct offsets_commit {
    int64_t offset; /* OFFSET_UNKNOWN: nothing */
    bool is_first;  /* as far as is known, the group has nothing for this log yet */
    struct commit_metadata metadata;
};

/** NULL when memory is short. */
struct offsets *offsets_create(void);
void offsets_destroy(struct offsets *offsets); /* NULL is fine */

/** A partition that was ever followed. */
struct offsets_followed {
    const char *topic; /* lives as long as the offsets */
    int32_t partition;
    bool is_followed; /* now; only then the rest counts */
    struct offsets_state state;
};

/** The one at `index`, which stays the same. False: there are no more. */
MUST_CHECK bool offsets_at(struct offsets *offsets, size_t index, struct offsets_followed *ret);

/**
 * Starts to follow a partition, which must not be followed yet, from what is committed. Errors:
 * ERR_NO_MEMORY.
 */
MUST_CHECK enum err offsets_assign(struct offsets *offsets, const char *topic, int32_t partition,
    const struct offsets_commit *committed, struct error *err);

/** The partition is leaving: until it is revoked, nothing of it starts that has not started yet. */
void offsets_leave(struct offsets *offsets, const char *topic, int32_t partition);

/** Forgets a partition; nothing happens if it is not followed. */
void offsets_revoke(struct offsets *offsets, const char *topic, int32_t partition);

/**
 * How far `offset` is above the lowest unfinished one; 0 if nothing is unfinished or it is below.
 * It may begin while this is less than OFFSETS_WINDOW.
 */
int64_t offsets_ahead(
    struct offsets *offsets, const char *topic, int32_t partition, int64_t offset);

enum offsets_begun {
    OFFSETS_NOT_BEGUN,
    OFFSETS_BEGUN,
    OFFSETS_BEGUN_ALONE /* nothing else may be in hand while it runs */
};

/**
 * Begins a message: `ret` becomes the position to finish later. It does not begin if the partition
 * is not followed, or if `offset` was finished before the partition was assigned, is beyond the
 * window, or cannot be an offset of any log.
 */
MUST_CHECK enum offsets_begun offsets_begin(struct offsets *offsets, const char *topic,
    int32_t partition, int64_t offset, uint64_t now_ns, struct position *ret);

/**
 * Starts a message that has begun. True if it had started already, too. False: its partition is
 * leaving, or the lease has ended; its next owner answers it.
 */
MUST_CHECK bool offsets_start(struct offsets *offsets, const struct position *position);

/** A message that has started waits again, or is left; nothing happens if it has not. */
void offsets_put_back(struct offsets *offsets, const struct position *position);

/** A second call for a position, or a call for a lease that has ended, does nothing. */
void offsets_finish(struct offsets *offsets, const struct position *position, uint64_t now_ns);

/** The client has read up to `end`: every message below it has begun or does not exist. */
void offsets_advance(struct offsets *offsets, const char *topic, int32_t partition, int64_t end);

/**
 * The log of a partition ends at `end`, below what was read of it. What was finished below `end`
 * stays so, and a new lease starts at the lowest offset that was not. Returns where to read on.
 */
int64_t offsets_truncate(
    struct offsets *offsets, const char *topic, int32_t partition, int64_t end);

/** Another log begins at `offset`. The partition is followed there, also if it was revoked. */
void offsets_begin_anew(
    struct offsets *offsets, const char *topic, int32_t partition, int64_t offset);

/** The id of the topic that is read, which stands in each commit from now on. "": not known. */
void offsets_set_topic_id(
    struct offsets *offsets, const char *topic, int32_t partition, const char *id);
void offsets_get_topic_id(
    struct offsets *offsets, const char *topic, int32_t partition, char ret[static TOPIC_ID_SIZE]);

/** How many messages from `from` on and below `to`, which never begin now, were not finished. */
uint64_t offsets_missing(
    struct offsets *offsets, const char *topic, int32_t partition, int64_t from, int64_t to);

/** False if the partition is not followed. */
MUST_CHECK bool offsets_get(
    struct offsets *offsets, const char *topic, int32_t partition, struct offsets_state *ret);

/** Whether a commit of this partition is due, and which; it then counts as made. */
MUST_CHECK bool offsets_take_commit(
    struct offsets *offsets, const char *topic, int32_t partition, struct offsets_commit *ret);

/** As offsets_take_commit(), by an owner that is about to leave: marks the commit as a hand-over.
 */
MUST_CHECK bool offsets_take_last_commit(
    struct offsets *offsets, const char *topic, int32_t partition, struct offsets_commit *ret);

/** The commit that was taken failed: it is due again. */
void offsets_commit_failed(struct offsets *offsets, const char *topic, int32_t partition);

typedef void offsets_on_commit(
    void *context, const char *topic, int32_t partition, const struct offsets_commit *commit);

/**
 * Calls `on_commit` for each partition whose commit would be due if the messages at `positions`
 * were finished too; this call does not finish them. These commits then count as made, and
 * finishing the same messages makes none due again. False, and nothing is done, if one of the
 * messages does not belong to this worker any more. `on_commit` must not call this module.
 */
MUST_CHECK bool offsets_take_commits(struct offsets *offsets,
    const struct position *const *positions, size_t count, offsets_on_commit *on_commit,
    void *context);

/** The commits that offsets_take_commits() took failed: they are due again. */
void offsets_commits_failed(struct offsets *offsets);

/**
 * They were made; the messages at `positions` finish with them. Where commits `are_kept`, those
 * that follow are not the first.
 */
void offsets_commits_made(
    struct offsets *offsets, const struct position *const *positions, size_t count, bool are_kept);

/**
 * One of them was for another log than there is now: the partition is in doubt. Nothing happens if
 * a new lease has started since the commit was taken.
 */
void offsets_doubt(struct offsets *offsets, const char *topic, int32_t partition);

/** Takes a partition that is in doubt. False: there is none. The name is as offsets_at() tells it.
 */
MUST_CHECK bool offsets_take_doubted(
    struct offsets *offsets, const char **topic, int32_t *partition);

/** True from offsets_take_commits() until one of these: nobody knows what is committed. */
MUST_CHECK bool offsets_are_under_way(struct offsets *offsets);

/** True if any commit is due. */
bool offsets_is_due(struct offsets *offsets);

/** True if the message at `position` still belongs to this worker: its lease has not ended. */
bool offsets_holds(struct offsets *offsets, const struct position *position);

/** As offsets_holds(), and the partition is not leaving. */
bool offsets_keeps(struct offsets *offsets, const struct position *position);

/**
 * Totals of all followed partitions. `lowest` is the unfinished offset that has held up a commit
 * longest.
 */
struct offsets_totals {
    size_t partition_count;
    size_t unfinished_count;
    struct position lowest; /* valid if unfinished_count is not 0 */
    uint64_t lowest_since_ns;
};
void offsets_get_totals(struct offsets *offsets, struct offsets_totals *ret);

#endif
