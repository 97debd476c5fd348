#include "broker/offsets.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/invariant.h"

enum { WORD_BITS = 64, WORDS = OFFSETS_WINDOW / WORD_BITS };

#define NEVER UINT64_MAX

/*
 * All unfinished offsets lie in [lowest, lowest + OFFSETS_WINDOW) and below `next`. `lowest` is one
 * of them, or equals `next` if there is none. Of the offsets from `next` on, only those are
 * finished that were when the lease began.
 *
 * `changes` counts what changes the commit. A message that finishes counts once, in whatever order.
 */
struct partition {
    char *topic;
    int32_t partition;
    bool is_assigned, is_leaving;
    bool is_first;   /* the group has nothing for its log yet */
    bool is_doubted; /* its log may be another one; until the lease ends */
    uint32_t index;  /* in the tracker */
    uint32_t lease_count;
    int64_t lowest; /* OFFSET_UNKNOWN until the first offset is known */
    int64_t next;   /* above everything that has begun */
    uint64_t changes;
    uint64_t taken_changes; /* the value of `changes` at the last commit; NEVER: that failed */
    size_t unfinished_count, started_count;
    uint64_t lowest_since_ns;
    uint64_t unfinished[WORDS];      /* a ring with a bit for each offset */
    uint64_t started[WORDS];         /* of those that are unfinished */
    struct offsets_commit committed; /* when the lease began */
    int64_t committed_end;           /* above all that was finished then */
    int64_t contested_end;           /* above all messages that earlier owners may have died of */
};

struct offsets {
    pthread_mutex_t lock;
    size_t partition_count;
    struct partition *
        *partitions;    /* all that were ever assigned, so that leases and names stay valid */
    size_t last_found;  /* messages come in runs of one partition */
    bool are_under_way; /* commits */
};

static size_t bit_of(int64_t offset) {
    return (size_t)(offset % OFFSETS_WINDOW);
}

static bool has(const uint64_t *ring, int64_t offset) {
    size_t bit = bit_of(offset);
    return (ring[bit / WORD_BITS] >> (bit % WORD_BITS) & 1) != 0;
}

static void flip(uint64_t *ring, int64_t offset) {
    size_t bit = bit_of(offset);
    ring[bit / WORD_BITS] ^= (uint64_t)1 << (bit % WORD_BITS);
}

/* Of any offset: it has begun in this lease, and is not finished. */
static bool is_under_way(const struct partition *p, int64_t offset) {
    return offset >= p->lowest && offset < p->next && has(p->unfinished, offset);
}

/* The first unfinished offset from `from` on; there must be one. */
static int64_t find_unfinished(const struct partition *p, int64_t from) {
    INVARIANT(p->unfinished_count > 0, "a message is finished only once");
    for (;;) {
        size_t bit = bit_of(from), shift = bit % WORD_BITS;
        uint64_t word = p->unfinished[bit / WORD_BITS] >> shift;
        if (word != 0) return from + __builtin_ctzll(word);
        from += (int64_t)(WORD_BITS - shift);
    }
}

static void raise_lowest(struct partition *p, uint64_t now_ns) {
    p->lowest = p->unfinished_count > 0 ? find_unfinished(p, p->lowest) : p->next;
    p->lowest_since_ns = now_ns;
}

/* Whether an offset that did not begin in this lease was finished before it. */
static bool was_finished(const struct partition *p, int64_t offset) {
    return offset >= p->committed.offset && offset < p->committed_end &&
           commit_metadata_has_finished(
               &p->committed.metadata, (size_t)(offset - p->committed.offset));
}

static void start_lease(struct partition *p, const struct offsets_commit *committed) {
    p->lease_count++;
    p->lowest = p->next = committed->offset;
    p->committed = *committed;
    p->committed_end = committed->offset + (int64_t)commit_metadata_span(&committed->metadata);
    p->contested_end = committed->offset + committed->metadata.window;
    p->changes = p->taken_changes = 0;
    p->unfinished_count = p->started_count = 0;
    p->is_doubted = false;
    memset(p->unfinished, 0, sizeof p->unfinished);
    memset(p->started, 0, sizeof p->started);
}

/* Forgets what was finished above `offset`: those may be other messages by now. */
static void start_over(struct partition *p, int64_t offset) {
    struct offsets_commit commit = {.offset = offset, .metadata = p->committed.metadata};
    memset(commit.metadata.finished, 0, sizeof commit.metadata.finished);
    start_lease(p, &commit);
    p->taken_changes = NEVER;
}

static void describe_commit(const struct partition *p, struct offsets_commit *ret) {
    *ret = (struct offsets_commit){.offset = p->lowest,
        .is_first = p->is_first,
        .metadata = {
            .is_open = p->committed.metadata.is_open, .owner = p->committed.metadata.owner}};
    memcpy(ret->metadata.topic_id, p->committed.metadata.topic_id, TOPIC_ID_SIZE);
    if (p->lowest < p->contested_end) {
        ret->metadata.takeovers = p->committed.metadata.takeovers;
        ret->metadata.window = (uint32_t)(p->contested_end - p->lowest);
    }
    int64_t end = p->next > p->committed_end ? p->next : p->committed_end;
    for (int64_t i = 0; i < OFFSETS_WINDOW && p->lowest + i < end; i++) {
        int64_t offset = p->lowest + i;
        if (offset < p->next ? !has(p->unfinished, offset) : was_finished(p, offset))
            commit_metadata_set_finished(&ret->metadata, (size_t)i);
    }
}

/* As start_over(), at what is unfinished below `end`, and keeps what is finished there. */
static void truncate_at(struct partition *p, int64_t end) {
    struct offsets_commit commit;
    describe_commit(p, &commit);
    if (commit.offset < 0 || commit.offset > end) {
        start_over(p, end);
        return;
    }
    for (int64_t i = end - commit.offset; i < OFFSETS_WINDOW; i++)
        commit_metadata_clear_finished(&commit.metadata, (size_t)i);
    start_lease(p, &commit);
    p->taken_changes = NEVER;
}

static struct partition *find_any(struct offsets *offsets, const char *topic, int32_t partition) {
    for (size_t i = 0; i < offsets->partition_count; i++) {
        size_t index = (offsets->last_found + i) % offsets->partition_count;
        struct partition *p = offsets->partitions[index];
        if (p->partition != partition || strcmp(p->topic, topic) != 0) continue;
        offsets->last_found = index;
        return p;
    }
    return NULL;
}

static struct partition *find(struct offsets *offsets, const char *topic, int32_t partition) {
    struct partition *p = find_any(offsets, topic, partition);
    return p != NULL && p->is_assigned ? p : NULL;
}

static uint64_t lease_of(const struct partition *p) {
    return (uint64_t)p->lease_count << 32 | p->index;
}

static struct partition *find_lease(struct offsets *offsets, uint64_t lease) {
    size_t index = (size_t)(lease & UINT32_MAX);
    if (index >= offsets->partition_count) return NULL;
    struct partition *p = offsets->partitions[index];
    return p->is_assigned && lease_of(p) == lease ? p : NULL;
}

/* NULL when memory is short. */
static struct partition *add(struct offsets *offsets, const char *topic, int32_t partition) {
    size_t count = offsets->partition_count;
    struct partition **grown = realloc(offsets->partitions, (count + 1) * sizeof grown[0]);
    if (grown == NULL) return NULL;
    offsets->partitions = grown;
    struct partition *p = calloc(1, sizeof *p);
    if (p == NULL) return NULL;
    p->topic = strdup(topic);
    if (p->topic == NULL) {
        free(p);
        return NULL;
    }
    p->partition = partition;
    p->index = (uint32_t)count;
    grown[count] = p;
    offsets->partition_count++;
    return p;
}

struct offsets *offsets_create(void) {
    struct offsets *offsets = calloc(1, sizeof *offsets);
    if (offsets != NULL) pthread_mutex_init(&offsets->lock, NULL);
    return offsets;
}

void offsets_destroy(struct offsets *offsets) {
    if (offsets == NULL) return;
    for (size_t i = 0; i < offsets->partition_count; i++) {
        free(offsets->partitions[i]->topic);
        free(offsets->partitions[i]);
    }
    free(offsets->partitions);
    pthread_mutex_destroy(&offsets->lock);
    free(offsets);
}

/* Offsets come from brokers; no log has offsets outside this range. */
static bool is_possible(int64_t offset) {
    return offset >= 0 && offset < INT64_MAX - OFFSETS_WINDOW;
}

enum err offsets_assign(struct offsets *offsets, const char *topic, int32_t partition,
    const struct offsets_commit *committed, struct error *err) {
    static const struct offsets_commit nothing = {.offset = OFFSET_UNKNOWN};
    pthread_mutex_lock(&offsets->lock);
    struct partition *p = find_any(offsets, topic, partition);
    INVARIANT(p == NULL || !p->is_assigned, "a partition is assigned once");
    if (p == NULL) p = add(offsets, topic, partition);
    if (p != NULL) {
        p->is_assigned = true;
        p->is_leaving = false;
        p->is_first = committed->is_first;
        start_lease(p, is_possible(committed->offset) ? committed : &nothing);
    }
    pthread_mutex_unlock(&offsets->lock);
    if (p != NULL) return ERR_OK;
    return error_no_memory(err, "no memory to follow the offsets of %s [%d]", topic, partition);
}

void offsets_leave(struct offsets *offsets, const char *topic, int32_t partition) {
    pthread_mutex_lock(&offsets->lock);
    struct partition *p = find(offsets, topic, partition);
    if (p != NULL) p->is_leaving = true;
    pthread_mutex_unlock(&offsets->lock);
}

void offsets_revoke(struct offsets *offsets, const char *topic, int32_t partition) {
    pthread_mutex_lock(&offsets->lock);
    struct partition *p = find(offsets, topic, partition);
    if (p != NULL) p->is_assigned = false;
    pthread_mutex_unlock(&offsets->lock);
}

static int64_t ahead(const struct partition *p, int64_t offset) {
    return p->unfinished_count > 0 && offset > p->lowest ? offset - p->lowest : 0;
}

int64_t offsets_ahead(
    struct offsets *offsets, const char *topic, int32_t partition, int64_t offset) {
    pthread_mutex_lock(&offsets->lock);
    const struct partition *p = find(offsets, topic, partition);
    int64_t distance = p != NULL ? ahead(p, offset) : 0;
    pthread_mutex_unlock(&offsets->lock);
    return distance;
}

/* Moves on to `offset`: nothing is unfinished below it, and nothing has begun from there on. */
static void pass(struct partition *p, int64_t offset) {
    p->next = offset;
    p->changes++;
    if (p->unfinished_count == 0) p->lowest = offset;
}

static void begin(struct partition *p, int64_t offset, uint64_t now_ns) {
    if (p->unfinished_count == 0) {
        if (offset != p->lowest) pass(p, offset);
        p->lowest_since_ns = now_ns;
    }
    p->next = offset + 1;
    p->unfinished_count++;
    flip(p->unfinished, offset);
}

static bool is_contested(const struct partition *p, int64_t offset) {
    return p->committed.metadata.takeovers >= OFFSETS_TAKEOVERS_MAX && offset < p->contested_end;
}

static enum offsets_begun try_begin(struct partition *p, int64_t offset, uint64_t now_ns) {
    if (offset < p->next) start_over(p, offset);
    if (was_finished(p, offset)) {
        pass(p, offset + 1);
        return OFFSETS_NOT_BEGUN;
    }
    if (ahead(p, offset) >= OFFSETS_WINDOW) return OFFSETS_NOT_BEGUN;
    begin(p, offset, now_ns);
    return is_contested(p, offset) ? OFFSETS_BEGUN_ALONE : OFFSETS_BEGUN;
}

enum offsets_begun offsets_begin(struct offsets *offsets, const char *topic, int32_t partition,
    int64_t offset, uint64_t now_ns, struct position *ret) {
    if (!is_possible(offset)) return OFFSETS_NOT_BEGUN;
    pthread_mutex_lock(&offsets->lock);
    struct partition *p = find(offsets, topic, partition);
    enum offsets_begun begun = p != NULL ? try_begin(p, offset, now_ns) : OFFSETS_NOT_BEGUN;
    if (begun != OFFSETS_NOT_BEGUN) {
        ret->topic = p->topic;
        ret->partition = partition;
        ret->offset = offset;
        ret->lease = lease_of(p);
    }
    pthread_mutex_unlock(&offsets->lock);
    return begun;
}

static void put_back(struct partition *p, int64_t offset) {
    if (!is_under_way(p, offset) || !has(p->started, offset)) return;
    flip(p->started, offset);
    p->started_count--;
}

/* A partition that is leaving keeps what has started. */
static bool start(struct partition *p, int64_t offset) {
    if (!is_under_way(p, offset)) return false;
    if (has(p->started, offset)) return true;
    if (p->is_leaving) return false;
    flip(p->started, offset);
    p->started_count++;
    return true;
}

bool offsets_start(struct offsets *offsets, const struct position *position) {
    pthread_mutex_lock(&offsets->lock);
    struct partition *p = find_lease(offsets, position->lease);
    bool has_started = p != NULL && start(p, position->offset);
    pthread_mutex_unlock(&offsets->lock);
    return has_started;
}

void offsets_put_back(struct offsets *offsets, const struct position *position) {
    pthread_mutex_lock(&offsets->lock);
    struct partition *p = find_lease(offsets, position->lease);
    if (p != NULL) put_back(p, position->offset);
    pthread_mutex_unlock(&offsets->lock);
}

static void finish(struct partition *p, int64_t offset, uint64_t now_ns) {
    if (!is_under_way(p, offset)) return;
    put_back(p, offset);
    flip(p->unfinished, offset);
    p->unfinished_count--;
    p->changes++;
    if (offset == p->lowest) raise_lowest(p, now_ns);
}

void offsets_finish(struct offsets *offsets, const struct position *position, uint64_t now_ns) {
    pthread_mutex_lock(&offsets->lock);
    struct partition *p = find_lease(offsets, position->lease);
    if (p != NULL) finish(p, position->offset, now_ns);
    pthread_mutex_unlock(&offsets->lock);
}

/* No earlier owner has seen messages from `end` on. */
static void end_contested(struct partition *p, int64_t end) {
    if (end >= p->contested_end) return;
    if (p->lowest < p->contested_end) p->changes++;
    p->contested_end = end;
}

void offsets_advance(struct offsets *offsets, const char *topic, int32_t partition, int64_t end) {
    pthread_mutex_lock(&offsets->lock);
    struct partition *p = find(offsets, topic, partition);
    if (p != NULL && is_possible(end)) {
        end_contested(p, end);
        if (end > p->next) pass(p, end);
    }
    pthread_mutex_unlock(&offsets->lock);
}

int64_t offsets_truncate(
    struct offsets *offsets, const char *topic, int32_t partition, int64_t end) {
    pthread_mutex_lock(&offsets->lock);
    struct partition *p = find(offsets, topic, partition);
    if (p != NULL) truncate_at(p, end);
    int64_t next = p != NULL ? p->lowest : end;
    pthread_mutex_unlock(&offsets->lock);
    return next;
}

void offsets_begin_anew(
    struct offsets *offsets, const char *topic, int32_t partition, int64_t offset) {
    pthread_mutex_lock(&offsets->lock);
    struct partition *p = find_any(offsets, topic, partition);
    if (p != NULL) {
        p->is_assigned = p->is_first = true;
        start_over(p, offset);
    }
    pthread_mutex_unlock(&offsets->lock);
}

void offsets_set_topic_id(
    struct offsets *offsets, const char *topic, int32_t partition, const char *id) {
    pthread_mutex_lock(&offsets->lock);
    struct partition *p = find(offsets, topic, partition);
    if (p != NULL) snprintf(p->committed.metadata.topic_id, TOPIC_ID_SIZE, "%s", id);
    pthread_mutex_unlock(&offsets->lock);
}

void offsets_get_topic_id(
    struct offsets *offsets, const char *topic, int32_t partition, char ret[static TOPIC_ID_SIZE]) {
    pthread_mutex_lock(&offsets->lock);
    const struct partition *p = find(offsets, topic, partition);
    snprintf(ret, TOPIC_ID_SIZE, "%s", p != NULL ? p->committed.metadata.topic_id : "");
    pthread_mutex_unlock(&offsets->lock);
}

uint64_t offsets_missing(
    struct offsets *offsets, const char *topic, int32_t partition, int64_t from, int64_t to) {
    uint64_t count = to > from ? (uint64_t)(to - from) : 0;
    pthread_mutex_lock(&offsets->lock);
    const struct partition *p = find(offsets, topic, partition);
    if (p != NULL && from < p->committed.offset) from = p->committed.offset;
    for (int64_t i = from; p != NULL && i < to && i < p->committed_end; i++)
        count -= was_finished(p, i);
    pthread_mutex_unlock(&offsets->lock);
    return count;
}

static struct offsets_state state_of(const struct partition *p) {
    return (struct offsets_state){.next_commit = p->lowest,
        .unfinished_count = p->unfinished_count,
        .started_count = p->started_count,
        .lowest_since_ns = p->lowest_since_ns};
}

bool offsets_get(
    struct offsets *offsets, const char *topic, int32_t partition, struct offsets_state *ret) {
    pthread_mutex_lock(&offsets->lock);
    const struct partition *p = find(offsets, topic, partition);
    if (p != NULL) *ret = state_of(p);
    pthread_mutex_unlock(&offsets->lock);
    return p != NULL;
}

bool offsets_at(struct offsets *offsets, size_t index, struct offsets_followed *ret) {
    pthread_mutex_lock(&offsets->lock);
    bool is_there = index < offsets->partition_count;
    if (is_there) {
        const struct partition *p = offsets->partitions[index];
        *ret = (struct offsets_followed){.topic = p->topic,
            .partition = p->partition,
            .is_followed = p->is_assigned,
            .state = state_of(p)};
    }
    pthread_mutex_unlock(&offsets->lock);
    return is_there;
}

static bool is_due(const struct partition *p) {
    return p->is_assigned && p->lowest != OFFSET_UNKNOWN && p->changes != p->taken_changes;
}

/* Marks the partition as handed over, for its last commit. */
static void hand_over(struct partition *p) {
    if (p->committed.metadata.is_open) p->changes++;
    p->committed.metadata.is_open = false;
}

static bool take_commit(struct offsets *offsets, const char *topic, int32_t partition, bool is_last,
    struct offsets_commit *ret) {
    pthread_mutex_lock(&offsets->lock);
    struct partition *p = find(offsets, topic, partition);
    if (p != NULL && is_last) hand_over(p);
    bool was_due = p != NULL && is_due(p);
    if (was_due) {
        describe_commit(p, ret);
        p->taken_changes = p->changes;
    }
    pthread_mutex_unlock(&offsets->lock);
    return was_due;
}

bool offsets_take_commit(
    struct offsets *offsets, const char *topic, int32_t partition, struct offsets_commit *ret) {
    return take_commit(offsets, topic, partition, false, ret);
}

bool offsets_take_last_commit(
    struct offsets *offsets, const char *topic, int32_t partition, struct offsets_commit *ret) {
    return take_commit(offsets, topic, partition, true, ret);
}

void offsets_commit_failed(struct offsets *offsets, const char *topic, int32_t partition) {
    pthread_mutex_lock(&offsets->lock);
    struct partition *p = find(offsets, topic, partition);
    if (p != NULL) p->taken_changes = NEVER;
    pthread_mutex_unlock(&offsets->lock);
}

static bool holds_all(
    struct offsets *offsets, const struct position *const *positions, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (find_lease(offsets, positions[i]->lease) == NULL) return false;
    return true;
}

/* Finishes the messages in a copy of the partition, and takes the commit from that. */
static void take_with(struct partition *p, const struct position *const *positions, size_t count,
    offsets_on_commit *on_commit, void *context) {
    struct partition after = *p;
    for (size_t i = 0; i < count; i++)
        if (positions[i]->lease == lease_of(p)) finish(&after, positions[i]->offset, 0);
    if (!is_due(&after)) return;
    struct offsets_commit commit;
    describe_commit(&after, &commit);
    on_commit(context, p->topic, p->partition, &commit);
    p->taken_changes = after.changes;
}

bool offsets_take_commits(struct offsets *offsets, const struct position *const *positions,
    size_t count, offsets_on_commit *on_commit, void *context) {
    pthread_mutex_lock(&offsets->lock);
    bool is_ours = holds_all(offsets, positions, count);
    offsets->are_under_way = is_ours;
    for (size_t i = 0; i < offsets->partition_count && is_ours; i++)
        take_with(offsets->partitions[i], positions, count, on_commit, context);
    pthread_mutex_unlock(&offsets->lock);
    return is_ours;
}

void offsets_commits_failed(struct offsets *offsets) {
    pthread_mutex_lock(&offsets->lock);
    offsets->are_under_way = false;
    for (size_t i = 0; i < offsets->partition_count; i++)
        offsets->partitions[i]->taken_changes = NEVER;
    pthread_mutex_unlock(&offsets->lock);
}

void offsets_commits_made(
    struct offsets *offsets, const struct position *const *positions, size_t count, bool are_kept) {
    uint64_t now_ns = clock_ns();
    pthread_mutex_lock(&offsets->lock);
    offsets->are_under_way = false;
    for (size_t i = 0; i < offsets->partition_count && are_kept; i++)
        if (offsets->partitions[i]->taken_changes != NEVER)
            offsets->partitions[i]->is_first = false;
    for (size_t i = 0; i < count; i++) {
        struct partition *p = find_lease(offsets, positions[i]->lease);
        if (p != NULL) finish(p, positions[i]->offset, now_ns);
    }
    pthread_mutex_unlock(&offsets->lock);
}

void offsets_doubt(struct offsets *offsets, const char *topic, int32_t partition) {
    pthread_mutex_lock(&offsets->lock);
    struct partition *p = find(offsets, topic, partition);
    if (p != NULL && p->taken_changes != NEVER) p->is_doubted = true;
    pthread_mutex_unlock(&offsets->lock);
}

bool offsets_take_doubted(struct offsets *offsets, const char **topic, int32_t *partition) {
    bool any = false;
    pthread_mutex_lock(&offsets->lock);
    for (size_t i = 0; i < offsets->partition_count && !any; i++) {
        struct partition *p = offsets->partitions[i];
        any = p->is_assigned && p->is_doubted;
        if (!any) continue;
        p->is_doubted = false;
        *topic = p->topic;
        *partition = p->partition;
    }
    pthread_mutex_unlock(&offsets->lock);
    return any;
}

bool offsets_are_under_way(struct offsets *offsets) {
    pthread_mutex_lock(&offsets->lock);
    bool are_under_way = offsets->are_under_way;
    pthread_mutex_unlock(&offsets->lock);
    return are_under_way;
}

bool offsets_is_due(struct offsets *offsets) {
    bool any = false;
    pthread_mutex_lock(&offsets->lock);
    for (size_t i = 0; i < offsets->partition_count && !any; i++)
        any = is_due(offsets->partitions[i]);
    pthread_mutex_unlock(&offsets->lock);
    return any;
}

bool offsets_holds(struct offsets *offsets, const struct position *position) {
    pthread_mutex_lock(&offsets->lock);
    bool is_ours = find_lease(offsets, position->lease) != NULL;
    pthread_mutex_unlock(&offsets->lock);
    return is_ours;
}

bool offsets_keeps(struct offsets *offsets, const struct position *position) {
    pthread_mutex_lock(&offsets->lock);
    const struct partition *p = find_lease(offsets, position->lease);
    bool is_kept = p != NULL && !p->is_leaving;
    pthread_mutex_unlock(&offsets->lock);
    return is_kept;
}

void offsets_get_totals(struct offsets *offsets, struct offsets_totals *ret) {
    *ret = (struct offsets_totals){0};
    pthread_mutex_lock(&offsets->lock);
    for (size_t i = 0; i < offsets->partition_count; i++) {
        const struct partition *p = offsets->partitions[i];
        if (!p->is_assigned) continue;
        ret->partition_count++;
        if (p->unfinished_count == 0) continue;
        if (ret->unfinished_count == 0 || p->lowest_since_ns < ret->lowest_since_ns) {
            ret->lowest_since_ns = p->lowest_since_ns;
            ret->lowest = (struct position){.topic = p->topic,
                .partition = p->partition,
                .offset = p->lowest,
                .lease = lease_of(p)};
        }
        ret->unfinished_count += p->unfinished_count;
    }
    pthread_mutex_unlock(&offsets->lock);
}
