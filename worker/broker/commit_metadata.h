/**
 * What a group keeps beside the committed offset of a partition: which messages above it are
 * finished, and how its last owner left.
 *
 *     gpu-worker/1 offset=47 topic=gIW0Yp9ZQfKhK1PvH0rNpw@q1Sh mark=open owner=8c0ffee03141592a \
 *         takeovers=2 window=300 finished=Bg==
 *
 * One line of fields. `offset` is the committed offset that the text was written beside. A tool
 * that moves offsets and keeps their texts (MirrorMaker 2 translates offsets from one log to
 * another) makes the two differ, and then the text says nothing. `topic` is the id of the topic
 * that the offset is of, and of its cluster, where ids are told (topic_ids.h). `mark` is open while
 * `owner` has the partition and clean after a hand-over. `takeovers` counts how often an owner
 * ended without a hand-over since the oldest of the `window` messages from the committed offset on
 * was first read. Owners that died may have had these messages in hand. `finished` is base64 of a
 * bitmap without its trailing zero bytes; the lowest bit of the first byte is the committed offset
 * itself. A missing field counts as zero. Fields that this version does not know are skipped, so
 * later versions may add some. A change that older versions must not skip gets another number after
 * the slash.
 *
 * Brokers take 4096 bytes (offset.metadata.max.bytes); COMMIT_METADATA_TEXT_SIZE is less.
 * Threads: plain values.
 */
#ifndef BROKER_COMMIT_METADATA_H
#define BROKER_COMMIT_METADATA_H

#include "base/slice.h"

/** How many offsets from the committed one on the bitmap covers. */
enum { COMMIT_METADATA_WINDOW = 16384 };

enum { TOPIC_ID_SIZE = 64 }; /* with its NUL */

struct commit_metadata {
    bool is_open;
    uint64_t owner; /* 0: it has no name that a restart would recognise */
    uint32_t takeovers;
    uint32_t window;   /* at most COMMIT_METADATA_WINDOW; 0: no owner died with what is left */
    bool names_offset; /* of what was read: earlier versions wrote none */
    uint64_t offset;   /* that the text names */
    char topic_id[TOPIC_ID_SIZE];                   /* "": it is not known */
    uint64_t finished[COMMIT_METADATA_WINDOW / 64]; /* from the lowest bit of the first word */
};

/** Room for any encoded text and its NUL. */
enum { COMMIT_METADATA_TEXT_SIZE = 2976 };

/** Writes the text to stand beside `offset`, and returns its length, without the NUL. */
size_t commit_metadata_encode(const struct commit_metadata *metadata, int64_t offset,
    char text[static COMMIT_METADATA_TEXT_SIZE]);

/**
 * Reads what is committed beside `offset`. An empty text gives zeroes. False, with zeroes in *ret,
 * if the text is damaged, from another tool or version, or names another offset.
 */
bool commit_metadata_decode(struct slice text, int64_t offset, struct commit_metadata *ret);

/** How many offsets, from the committed one on, it takes to reach the last that is finished. */
size_t commit_metadata_span(const struct commit_metadata *metadata);

/**
 * `owner` takes the partition. If another owner had it and left it open, this is a takeover of the
 * messages that it may have had in hand, at most COMMIT_METADATA_WINDOW. The window of an earlier
 * takeover stays until all of it is committed, so that it ends however often owners die. Finding
 * its own mark is no takeover: the owner's state file says more.
 */
void commit_metadata_claim(struct commit_metadata *metadata, uint64_t owner);

static inline bool commit_metadata_has_finished(
    const struct commit_metadata *metadata, size_t index) {
    return (metadata->finished[index / 64] >> (index % 64) & 1) != 0;
}

static inline void commit_metadata_set_finished(struct commit_metadata *metadata, size_t index) {
    metadata->finished[index / 64] |= (uint64_t)1 << (index % 64);
}

static inline void commit_metadata_clear_finished(struct commit_metadata *metadata, size_t index) {
    metadata->finished[index / 64] &= ~((uint64_t)1 << (index % 64));
}

#endif
