/**
 * Errors: a kind, the native code behind it, a cause and a sentence that says how to fix it.
 *
 * Whoever can fail returns `enum err` and fills the caller's `struct error`; nobody logs on the way
 * up. The kind decides what happens next: ERR_LIST names for each its code on the wire (results,
 * dead letters, metrics) and who can make a retry succeed.
 *
 * Lifetime: plain values, copied freely. Threads: none of it is shared.
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <stdbool.h>
#include <stddef.h>

/** Who can make a failed job succeed: nobody, this fleet by trying again, or the sender. */
enum retry { RETRY_NEVER, RETRY_WORKER, RETRY_SENDER };

/* X(symbol, code on the wire, retry) */
#define ERR_LIST(X)                                                                                \
    X(OK, "ok", NEVER)                                                                             \
    /* the message */                                                                              \
    X(BAD_MESSAGE, "bad_message", NEVER)           /* undecodable: no id can be read from it */    \
    X(BAD_JOB, "bad_job", NEVER)                   /* has an id, but breaks the job format */      \
    X(TOO_LARGE, "too_large", NEVER)               /* over a limit of the configuration */         \
    X(RESULT_TOO_LARGE, "result_too_large", NEVER) /* outputs that no broker would carry back */   \
    X(REPLY_TO_FORBIDDEN, "reply_to_forbidden", NEVER)                                             \
    X(DEADLINE_EXCEEDED, "deadline_exceeded", NEVER)                                               \
    X(CANCELLED, "cancelled", NEVER)  /* its sender asked for that */                              \
    X(SUSPENDED, "suspended", SENDER) /* too many of its key's or program's were convicted */      \
    /* the plan */                                                                                 \
    X(UNKNOWN_PROGRAM, "unknown_program", WORKER) /* a rolling upgrade may bring it */             \
    X(UNKNOWN_ENTRY, "unknown_entry", NEVER)                                                       \
    X(BAD_ARGUMENT, "bad_argument", NEVER) /* arguments against the manifest */                    \
    X(BAD_LAUNCH, "bad_launch", NEVER)     /* grid, block or shared memory against the device */   \
    X(UNSUPPORTED, "unsupported", NEVER)   /* what this device or this version cannot do */        \
    /* inputs that are not in the message */                                                       \
    X(STATIC_MISSING, "static_missing", SENDER)                                                    \
    X(BLOB_MISSING, "blob_missing", SENDER)                                                        \
    X(RESIDENT_GONE, "resident_gone", SENDER)                                                      \
    X(RESIDENT_GENERATION, "resident_generation", SENDER)                                          \
    X(RESIDENTS_FULL, "residents_full", SENDER) /* as many as are kept */                          \
    X(RESIDENT_SIZE, "resident_size", NEVER)                                                       \
    X(DIGEST_MISMATCH, "digest_mismatch", NEVER)                                                   \
    /* resources */                                                                                \
    X(NO_MEMORY, "no_memory", WORKER)                                                              \
    X(DEVICE_MEMORY, "device_memory", WORKER)                                                      \
    /* the driver */                                                                               \
    X(NO_DEVICE, "no_device", WORKER) /* no usable driver or GPU */                                \
    X(DRIVER, "driver_error", WORKER)                                                              \
    X(MODULE_REJECTED, "module_rejected", NEVER)                                                   \
    X(GPU_STRAY_WRITE, "gpu_stray_write",                                                          \
        NEVER) /* outside of the job's buffers; seen when alone */                                 \
    X(GPU_ILLEGAL_ADDRESS, "gpu_illegal_address", NEVER)                                           \
    X(GPU_ASSERT, "gpu_assert", NEVER)                                                             \
    X(GPU_HANG, "gpu_hang", NEVER)                                                                 \
    X(GPU_FAULT, "gpu_fault", NEVER)       /* any other sticky error: the context is lost */       \
    X(WORKER_CRASH, "worker_crash", NEVER) /* a fatal signal while the job ran alone */            \
    /* the world */                                                                                \
    X(CONFIG, "config", NEVER)                                                                     \
    X(IO, "io", WORKER)                                                                            \
    X(BROKER, "broker", WORKER)                                                                    \
    X(PUBLISH_REFUSED, "publish_refused", NEVER) /* the broker refused a result for good */        \
    X(REVOKED, "revoked", WORKER)                /* the message is another worker's by now */      \
    X(TIMEOUT, "timeout", WORKER)                                                                  \
    /* ourselves */                                                                                \
    X(INTERNAL, "internal_error", WORKER) /* our books or handles do not agree: a bug */

enum err {
#define X(symbol, code, retry) ERR_##symbol,
    ERR_LIST(X)
#undef X
        ERR_COUNT
};

struct error {
    enum err code;
    int native; /* CUresult, rd_kafka_resp_err_t or errno; 0 if none */
    /* The worker's own trouble that this is, in a word for tools, such as "blob_store"; NULL: none.
     * Nobody's job fails of it: jobs wait, and senders see error_conceal(). Constant text. */
    const char *trouble;
    char message[320]; /* what happened, with the names and numbers involved */
    char fix[200];     /* one sentence that says how to fix it; may be empty */
};

#define MUST_CHECK __attribute__((warn_unused_result))

/** Fills `err` and returns `code`, so that a failure is one statement. `fix` is plain text. */
__attribute__((format(printf, 5, 6))) enum err error_set(
    struct error *err, enum err code, int native, const char *fix, const char *format, ...);

/** Where it is the worker's own trouble: leaves the code, and says no more than the word. */
void error_conceal(struct error *err);

/** The code as it stands on the wire, such as "bad_job". */
const char *err_code(enum err code);

enum retry err_retry(enum err code);

/** "worker", "sender" or "never", as results say it. */
const char *err_retry_name(enum err code);

/** True for a lack of memory that others may give back. */
bool err_is_shortage(enum err code);

/** True where the process has lost its GPU and only a new one can go on. */
bool err_is_sticky(enum err code);

#endif
