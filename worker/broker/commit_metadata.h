/**
 * What a group keeps beside the committed offset of a partition: which messages above it are
 * finished, and how its owner left.
 *
 *     gpu-worker/1 mark=open owner=8c0ffee03141592a takeovers=2 window=300 finished=BgAAIA==
 *
 * One line of fields. `mark` is open while `owner` has the partition and clean after a hand-over.
 * `takeovers` counts how often an owner ended without one since the oldest of the `window` messages
 * from the committed offset on was first read: those were, or may have been, in the hands of owners
 * that died. `finished` is base64 of a bitmap, the lowest bit of the first byte for the committed
 * offset itself, without the zero bytes at its end. A field that is missing has its zero; fields
 * that this version does not know are skipped, so that later ones may add some. A change that must
 * not be skipped is another number after the slash.
 *
 * Brokers take 4096 bytes (offset.metadata.max.bytes); COMMIT_METADATA_TEXT_SIZE is less.
 * Threads: plain values.
 */
#ifndef BROKER_COMMIT_METADATA_H
#define BROKER_COMMIT_METADATA_H

#include "base/slice.h"

/** Offsets above the committed one that the bitmap can say something of. */
enum { COMMIT_METADATA_WINDOW = 16384 };

struct commit_metadata {
    bool is_open;
    uint64_t owner; /* 0: it has no name that the next one could know */
    uint32_t takeovers;
    uint32_t window; /* at most COMMIT_METADATA_WINDOW; 0: no owner died with what is left */
    uint64_t finished[COMMIT_METADATA_WINDOW / 64]; /* from the lowest bit of the first word */
};

/** Room for any encoded text and its NUL. */
enum { COMMIT_METADATA_TEXT_SIZE = 2880 };

/** Returns the length, without the NUL. */
size_t commit_metadata_encode(
    const struct commit_metadata *metadata, char text[static COMMIT_METADATA_TEXT_SIZE]);

/**
 * Reads what is committed. Nothing at all says nothing: zeroes. False, and *ret zeroes, where the
 * text is another tool's, or another version's, or damaged: it must not be read as something.
 */
bool commit_metadata_decode(struct slice text, struct commit_metadata *ret);

/**
 * `owner` takes the partition. Where the one before is another and left it open, this is a takeover
 * of what that one may have had in hand, which is at most COMMIT_METADATA_WINDOW messages. The
 * window of an earlier takeover stays as it is until all of it is committed: an end comes nearer
 * with every message, however often owners die. An owner that finds its own mark has a state file
 * that says more.
 */
void commit_metadata_claim(struct commit_metadata *metadata, uint64_t owner);

static inline bool commit_metadata_has_finished(
    const struct commit_metadata *metadata, size_t index) {
    return (metadata->finished[index / 64] >> (index % 64) & 1) != 0;
}

static inline void commit_metadata_set_finished(struct commit_metadata *metadata, size_t index) {
    metadata->finished[index / 64] |= (uint64_t)1 << (index % 64);
}

#endif
