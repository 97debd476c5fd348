/**
 * A job: one message, decoded and checked against the job format (schemas/job.schema.json), not yet
 * against any program or device. Every name is resolved to an index, every length is known to lie
 * inside the message.
 *
 * Units: bytes, unless a name says otherwise. Numbers in data are little-endian, arrays row-major.
 * Lifetime: slices point into the delivery's payload, everything else lives in the job's arena;
 * both end with job_destroy(). Threads: one stage owns a job at a time.
 */
#ifndef DECODE_JOB_H
#define DECODE_JOB_H

#include "base/arena.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/shared.h"
#include "broker/delivery.h"

/** Tensor element types, named as in the Open Inference Protocol. X(symbol, bytes) */
#define DATATYPE_LIST(X)                                                                           \
    X(BOOL, 1)                                                                                     \
    X(UINT8, 1)                                                                                    \
    X(UINT16, 2)                                                                                   \
    X(UINT32, 4)                                                                                   \
    X(UINT64, 8)                                                                                   \
    X(INT8, 1)                                                                                     \
    X(INT16, 2)                                                                                    \
    X(INT32, 4)                                                                                    \
    X(INT64, 8)                                                                                    \
    X(FP16, 2)                                                                                     \
    X(BF16, 2)                                                                                     \
    X(FP32, 4)                                                                                     \
    X(FP64, 8)

enum datatype {
    DATATYPE_NONE, /* not given */
#define X(symbol, bytes) DATATYPE_##symbol,
    DATATYPE_LIST(X)
#undef X
};

/** DATATYPE_NONE if there is none of that name. */
enum datatype datatype_find(struct slice name);
const char *datatype_name(enum datatype type);
size_t datatype_bytes(enum datatype type);

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
    uint64_t offset;
    struct slice data; /* offset + data.size <= the buffer's bytes */
};

struct job_buffer {
    struct slice name;
    uint64_t bytes;
    enum buffer_source source;
    uint8_t fill;         /* FILL, RESIDENT_INIT_FILL */
    bool has_data;        /* STATIC: the payload is in the message */
    struct slice data;    /* DATA, STATIC with has_data, RESIDENT_INIT_DATA: exactly `bytes` */
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
    size_t word_count;     /* WORDS */
    const uint32_t *words; /* WORDS: in the host's order */
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

struct carried;
struct key_queue;
struct prepared;
struct publication;

struct job {
    struct delivery *delivery; /* owned */
    struct shared *edition;    /* held: what it goes by (pipeline/edition.h); NULL: nothing */
    struct arena arena;
    struct slice id;
    size_t buffer_count;
    const struct job_buffer *buffers;
    size_t step_count;
    const struct job_step *steps;
    uint32_t repeat; /* >= 1 */
    size_t output_count;
    const struct job_output *outputs;
    bool timing;
    uint64_t deadline_unix_ms; /* 0: none */
    uint32_t timeout_ms;       /* that it may be on the device */
    struct slice reply_to;     /* empty: the configured result topic */
    uint64_t decode_ns;        /* time that decoding took */
    uint32_t retry_count;      /* tries that failed before this one */
    /* Tries that met trouble of the worker's own; how often what it needs had worked for others
     * since the try before; and the count of its answers at the last of them. */
    uint32_t trouble_count, trouble_alone_count;
    uint64_t trouble_answers;

    /* key order's own (key_order/key_queues.h) */
    struct key_queue *key_queue; /* NULL: the job stands in none */
    struct job *next_in_key_queue;

    struct carried *carried;   /* preparation's own (prepare/carriers.h); by buffer, or NULL */
    struct prepared *prepared; /* preparation's own (prepare/prepare.h); NULL: not planned */
    struct publication *publication; /* the publisher's own (publish/publisher.h) */
};

void job_destroy(struct job *job); /* NULL is fine */

#endif
