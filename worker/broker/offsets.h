/**
 * Which messages of which partitions are unfinished, and so what may be committed.
 *
 * A message begins when it is taken and finishes, in any order, when everything that answers it is
 * acknowledged. The offset to commit is the lowest unfinished one, and with it goes which of those
 * above it are finished. Offsets that never begin (compacted away, transaction markers) count as
 * finished.
 *
 * No offset may begin OFFSETS_WINDOW or more above the lowest unfinished one of its partition: what
 * is known of a partition is one bit an offset in a ring of that size.
 *
 * A partition is followed from offsets_assign() to offsets_revoke(). What its earlier owner had
 * committed as finished does not begin again. Each such span is a lease of its own, and finishing a
 * position of an earlier lease does nothing. Where an offset begins that is not above all that
 * began before it (a log that was truncated, a stale fetch), the client reads again from there: a
 * new lease starts at it.
 *
 * Messages that owners before may have died of are contested: those of the committed metadata's
 * window, as far as they were there when the end of the partition was first read. After
 * OFFSETS_TAKEOVERS_MAX takeovers they begin alone, and what is left of the window is committed
 * with every commit. Its last commit hands a partition over.
 *
 * Units: offsets; nanoseconds of clock_ns(). Threads: any. Memory: 4 KiB a
 * partition ever assigned.
 */
#ifndef BROKER_OFFSETS_H
#define BROKER_OFFSETS_H

#include "base/error.h"
#include "broker/commit_metadata.h"
#include "broker/delivery.h"

enum { OFFSETS_WINDOW = COMMIT_METADATA_WINDOW };
enum { OFFSET_UNKNOWN = -1 };

/** One takeover may be chance; with the second one, a message may be what its owners die of. */
enum { OFFSETS_TAKEOVERS_MAX = 2 };

struct offsets;

/** What is known of an assigned partition. */
struct offsets_state {
    int64_t next_commit; /* the lowest unfinished offset; OFFSET_UNKNOWN before the first one */
    size_t unfinished_count;
};

/** What a group holds of a partition. */
struct offsets_commit {
    int64_t offset; /* OFFSET_UNKNOWN: nothing */
    struct commit_metadata metadata;
};

/** NULL when memory is short. */
struct offsets *offsets_create(void);
void offsets_destroy(struct offsets *offsets); /* NULL is fine */

/** Starts to follow a partition, which is not followed yet, from what is committed. ERR_NO_MEMORY.
 */
MUST_CHECK enum err offsets_assign(struct offsets *offsets, const char *topic, int32_t partition,
    const struct offsets_commit *committed, struct error *err);

/** Forgets a partition; nothing happens if it is not followed. */
void offsets_revoke(struct offsets *offsets, const char *topic, int32_t partition);

/**
 * How many offsets above the lowest unfinished one `offset` stands; 0 where nothing is unfinished
 * or where it is below. It may begin while this is less than OFFSETS_WINDOW.
 */
int64_t offsets_ahead(
    struct offsets *offsets, const char *topic, int32_t partition, int64_t offset);

enum offsets_begun {
    OFFSETS_NOT_BEGUN,
    OFFSETS_BEGUN,
    OFFSETS_BEGUN_ALONE /* nothing else may be in hand while it runs */
};

/**
 * A message is taken: `ret` becomes the position to finish later. It is not where the partition is
 * not followed, `offset` was finished before the partition was assigned, lies beyond the window, or
 * is an offset that no log can have.
 */
MUST_CHECK enum offsets_begun offsets_begin(struct offsets *offsets, const char *topic,
    int32_t partition, int64_t offset, uint64_t now_ns, struct position *ret);

/** Its second call for a position, and one for a lease that has ended, do nothing. */
void offsets_finish(struct offsets *offsets, const struct position *position, uint64_t now_ns);

/** No message that has not begun stands below `end`: the client has read up to it. */
void offsets_advance(struct offsets *offsets, const char *topic, int32_t partition, int64_t end);

/** False where the partition is not followed. */
MUST_CHECK bool offsets_get(
    struct offsets *offsets, const char *topic, int32_t partition, struct offsets_state *ret);

/** Says whether a commit of this partition is due, and which; it then counts as made. */
MUST_CHECK bool offsets_take_commit(
    struct offsets *offsets, const char *topic, int32_t partition, struct offsets_commit *ret);

/** The same for an owner that is about to leave: what it commits says that it did. */
MUST_CHECK bool offsets_take_last_commit(
    struct offsets *offsets, const char *topic, int32_t partition, struct offsets_commit *ret);

/** The commit that was taken failed: it is due again. */
void offsets_commit_failed(struct offsets *offsets, const char *topic, int32_t partition);

typedef void offsets_on_commit(
    void *context, const char *topic, int32_t partition, const struct offsets_commit *commit);

/**
 * Calls `on_commit` for each partition with a commit that is due once the messages at `positions`
 * are finished, too; they are not by this. These commits then count as made; finishing the same
 * messages makes none due again. False, and nothing done, where one of the messages is not ours any
 * more. From inside `on_commit` nothing may be asked.
 */
MUST_CHECK bool offsets_take_commits(struct offsets *offsets,
    const struct position *const *positions, size_t count, offsets_on_commit *on_commit,
    void *context);

/** What offsets_take_commits() took failed: it is due again. */
void offsets_commits_failed(struct offsets *offsets);

/** True where any commit is due. */
bool offsets_is_due(struct offsets *offsets);

/** True where the message at `position` is ours still: its lease has not ended. */
bool offsets_holds(struct offsets *offsets, const struct position *position);

/** Over all followed partitions. `lowest` is the unfinished offset that holds up a commit longest.
 */
struct offsets_totals {
    size_t partition_count;
    size_t unfinished_count;
    struct position lowest; /* where unfinished_count is not 0 */
    uint64_t lowest_since_ns;
};
void offsets_get_totals(struct offsets *offsets, struct offsets_totals *ret);

#endif
