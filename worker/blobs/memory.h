/**
 * What the blobs of a store share: host memory, open files, which are few for a process that has to
 * reach its brokers as well, and the trouble that there is. Private to blobs/. Units: bytes.
 * Threads: any.
 */
#ifndef BLOBS_MEMORY_H
#define BLOBS_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum { BLOB_FILES_MAX = 256 };

struct blob_memory {
    uint64_t bytes_max;
    atomic_uint_fast64_t held; /* relaxed, like the next: it publishes no other memory */
    atomic_uint_fast64_t files;
    atomic_bool is_in_trouble; /* the last request to the store failed, but for a full disk */
    atomic_bool is_full;       /* a disk was full, and nothing was written to it since */
};

/** False: others hold too much. */
bool blob_memory_take(struct blob_memory *memory, uint64_t bytes);
void blob_memory_give(struct blob_memory *memory, uint64_t bytes);

/** As blob_memory_take() and blob_memory_give(), for a file that stays open. */
bool blob_memory_take_file(struct blob_memory *memory);
void blob_memory_give_file(struct blob_memory *memory);

/** Whether anything of it is taken. */
bool blob_memory_is_held(const struct blob_memory *memory);

/** Says of an ERR_IO of the store's disk which trouble it is, in `err` and to the store. Returns
 * `code`. */
enum err blob_memory_note_disk(struct blob_memory *memory, enum err code, struct error *err);

/** A whole blob was written to that disk: it is not full. What was only read says nothing of that.
 */
void blob_memory_note_written(struct blob_memory *memory);

/** The trouble there is, as constant text: "" for none. */
const char *blob_memory_trouble(const struct blob_memory *memory);

#endif
