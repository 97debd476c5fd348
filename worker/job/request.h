/**
 * What a message asks for: buffers, steps and outputs, as decode/ reads them
 * (schemas/job.schema.json). Every name is resolved to an index, every length is known to lie
 * inside the message.
 *
 * An array job has `count` instances: the same steps, each with its own parts of the `each` buffers
 * and its own `each` arguments. The other buffers are shared by all of them.
 *
 * Units: bytes, unless a name says otherwise. Numbers in data are little-endian, arrays row-major.
 * Lifetime: slices point into the message, everything else lives in the job's arena. Threads: plain
 * values.
 */
#ifndef JOB_REQUEST_H
#define JOB_REQUEST_H

#include <string.h>

#include "base/digest.h"
#include "job/datatype.h"

/** Where a buffer's first bytes come from. */
enum buffer_source {
    BUFFER_FILL,    /* `fill` in every byte; no source at all means fill 0 */
    BUFFER_DATA,    /* `data`, exactly `bytes` long, from the message */
    BUFFER_STATIC,  /* `digest`, kept on the device; `data` only where the sender adds it */
    BUFFER_BLOB,    /* `digest`, from the blob store, for this job only */
    BUFFER_RESIDENT /* `resident`, on the device across the jobs of one key */
};

/** What a resident holds when this job is the one that creates it. */
enum resident_init { RESIDENT_MUST_EXIST, RESIDENT_INIT_DATA, RESIDENT_INIT_FILL };

struct job_write {
    bool names_instance; /* of an `each` buffer */
    uint32_t instance;
    uint64_t offset;
    struct slice data; /* offset + data.size <= the buffer's bytes */
};

struct job_buffer {
    struct slice name;
    uint64_t bytes; /* of an `each` buffer: of one instance */
    bool is_each;   /* each instance of the array has its own, one behind the other */
    enum buffer_source source;
    uint8_t fill;         /* FILL, RESIDENT_INIT_FILL */
    bool has_data;        /* STATIC: the payload is in the message */
    struct slice data;    /* DATA, STATIC with has_data, RESIDENT_INIT_DATA: exactly `bytes`, or
                             those of all instances */
    struct digest digest; /* STATIC, BLOB */
    struct slice resident;
    enum resident_init init;
    bool has_expect;
    uint64_t expect; /* the generation that the job was made for */
    size_t write_count;
    const struct job_write *writes; /* applied in order after the source */
    enum datatype datatype;
    size_t rank;
    const uint64_t *shape; /* NULL: not given; a scalar has one of rank 0 */
};

enum arg_kind { ARG_BUFFER, ARG_U32, ARG_I32, ARG_U64, ARG_I64, ARG_F32, ARG_F64, ARG_WORDS };

struct job_arg {
    enum arg_kind kind;
    size_t buffer;         /* BUFFER: index into the job's buffers */
    uint64_t bits;         /* scalars: their bits, the narrower ones in the low half */
    const uint8_t *each;   /* of an array: the values of all instances; NULL: all have the same */
    size_t word_count;     /* WORDS: of one instance */
    const uint32_t *words; /* WORDS, without `each`: in the host's order */
};

struct job_step {
    struct slice program; /* without the "@sha256:" part */
    bool has_image;
    struct digest image; /* the program's image is pinned to these bytes */
    struct slice entry;  /* empty: the program's only or first entry */
    size_t arg_count;
    const struct job_arg *args;
    uint64_t elements; /* 0: `grid` is given */
    uint32_t grid[3];  /* blocks; all >= 1 unless `elements` is given */
    bool has_block;
    uint32_t block[3]; /* threads; all >= 1 */
    bool has_shared_bytes;
    uint32_t shared_bytes;
    uint32_t iterations; /* >= 1 */
    bool cooperative;
};

struct job_output {
    size_t buffer; /* index */
    uint64_t offset;
    uint64_t bytes; /* offset + bytes <= the buffer's bytes */
    bool is_whole;  /* the buffer from end to end: the result repeats datatype and shape */
    struct slice name;
};

/** The bytes of a scalar of this kind. */
static inline size_t arg_kind_bytes(enum arg_kind kind) {
    return kind == ARG_U32 || kind == ARG_I32 || kind == ARG_F32 ? 4 : 8;
}

/** The bits of a scalar for one instance. */
static inline uint64_t job_arg_bits(const struct job_arg *arg, uint32_t instance) {
    uint64_t bits = 0;
    size_t bytes = arg_kind_bytes(arg->kind);
    if (arg->each == NULL || arg->kind == ARG_WORDS) return arg->bits;
    memcpy(&bits, arg->each + bytes * instance, bytes); /* little-endian */
    return bits;
}

/** The bytes of a parameter block for one instance. */
static inline struct slice job_arg_words(const struct job_arg *arg, uint32_t instance) {
    size_t bytes = 4 * arg->word_count;
    return arg->each != NULL ? slice_of(arg->each + bytes * instance, bytes)
                             : slice_of(arg->words, bytes);
}

#endif
