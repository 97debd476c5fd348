/**
 * Errors: a kind, the native code behind it, a cause and a sentence that says how to fix it.
 *
 * A function that can fail returns `enum err` and fills the caller's `struct error`. Nothing is
 * logged on the way up. The code decides what happens next. ERR_LIST says for each code its name in
 * results, dead letters and metrics, who can make a retry succeed, and how a command ends.
 *
 * Lifetime: plain values, copied freely. Threads: plain values.
 */
#ifndef BASE_ERROR_H
#define BASE_ERROR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/exit.h"

/** Who can make a failed job succeed: no one, this fleet by trying again, or the sender. */
enum retry { RETRY_NEVER, RETRY_WORKER, RETRY_SENDER };

/*
 * What else a failure means. SHORTAGE: memory is short, and other jobs may give some back. STICKY:
 * the process has lost its GPU, and only a new process can go on.
 */
enum err_kind { ERR_KIND_PLAIN, ERR_KIND_SHORTAGE, ERR_KIND_STICKY };

/* X(symbol, code on the wire, retry, kind, exit of a command that ends with it) */
#define ERR_LIST(X)                                                                                \
    X(OK, "ok", NEVER, PLAIN, OK)                                                                  \
    /* --- the message --- */                                                                      \
    /* undecodable: no id can be read from it */                                                   \
    X(BAD_MESSAGE, "bad_message", NEVER, PLAIN, FAILED)                                            \
    /* has an id, but breaks the job format */                                                     \
    X(BAD_JOB, "bad_job", NEVER, PLAIN, FAILED)                                                    \
    /* over a limit of the configuration */                                                        \
    X(TOO_LARGE, "too_large", NEVER, PLAIN, FAILED)                                                \
    /* outputs that no broker would carry back */                                                  \
    X(RESULT_TOO_LARGE, "result_too_large", NEVER, PLAIN, FAILED)                                  \
    X(REPLY_TO_FORBIDDEN, "reply_to_forbidden", NEVER, PLAIN, FAILED)                              \
    X(DEADLINE_EXCEEDED, "deadline_exceeded", NEVER, PLAIN, FAILED)                                \
    X(CANCELLED, "cancelled", NEVER, PLAIN, FAILED) /* its sender cancelled it */                  \
    /* too many of its key's or program's were convicted */                                        \
    X(SUSPENDED, "suspended", SENDER, PLAIN, FAILED)                                               \
    /* --- the plan --- */                                                                         \
    /* a rolling upgrade may bring it */                                                           \
    X(UNKNOWN_PROGRAM, "unknown_program", WORKER, PLAIN, FAILED)                                   \
    X(UNKNOWN_ENTRY, "unknown_entry", NEVER, PLAIN, FAILED)                                        \
    /* arguments against the manifest */                                                           \
    X(BAD_ARGUMENT, "bad_argument", NEVER, PLAIN, FAILED)                                          \
    /* grid, block or shared memory against the device */                                          \
    X(BAD_LAUNCH, "bad_launch", NEVER, PLAIN, FAILED)                                              \
    /* what this device or this version cannot do */                                               \
    X(UNSUPPORTED, "unsupported", NEVER, PLAIN, FAILED)                                            \
    /* --- inputs that are not in the message --- */                                               \
    X(STATIC_MISSING, "static_missing", SENDER, PLAIN, FAILED)                                     \
    X(BLOB_MISSING, "blob_missing", SENDER, PLAIN, FAILED)                                         \
    X(RESIDENT_GONE, "resident_gone", SENDER, PLAIN, FAILED)                                       \
    X(RESIDENT_GENERATION, "resident_generation", SENDER, PLAIN, FAILED)                           \
    /* as many as are kept */                                                                      \
    X(RESIDENTS_FULL, "residents_full", SENDER, PLAIN, FAILED)                                     \
    X(RESIDENT_SIZE, "resident_size", NEVER, PLAIN, FAILED)                                        \
    X(DIGEST_MISMATCH, "digest_mismatch", NEVER, PLAIN, FAILED)                                    \
    /* --- resources --- */                                                                        \
    X(NO_MEMORY, "no_memory", WORKER, SHORTAGE, FAILED)                                            \
    X(DEVICE_MEMORY, "device_memory", WORKER, SHORTAGE, FAILED)                                    \
    /* --- the driver --- */                                                                       \
    X(NO_DEVICE, "no_device", WORKER, PLAIN, DEVICE) /* no usable driver or GPU */                 \
    X(DRIVER, "driver_error", WORKER, PLAIN, DEVICE)                                               \
    X(MODULE_REJECTED, "module_rejected", NEVER, PLAIN, FAILED)                                    \
    /* outside of the job's buffers; seen when alone */                                            \
    X(GPU_STRAY_WRITE, "gpu_stray_write", NEVER, PLAIN, FAILED)                                    \
    X(GPU_ILLEGAL_ADDRESS, "gpu_illegal_address", NEVER, STICKY, DEVICE)                           \
    X(GPU_ASSERT, "gpu_assert", NEVER, STICKY, DEVICE)                                             \
    X(GPU_HANG, "gpu_hang", NEVER, STICKY, DEVICE)                                                 \
    /* any other sticky error: the context is lost */                                              \
    X(GPU_FAULT, "gpu_fault", NEVER, STICKY, DEVICE)                                               \
    /* a fatal signal while the job ran alone */                                                   \
    X(WORKER_CRASH, "worker_crash", NEVER, PLAIN, FAILED)                                          \
    /* of an array, by themselves; the outputs of all others are there */                          \
    X(INSTANCES_FAILED, "instances_failed", NEVER, PLAIN, FAILED)                                  \
    /* --- the world --- */                                                                        \
    X(CONFIG, "config", NEVER, PLAIN, CONFIG)                                                      \
    X(IO, "io", WORKER, PLAIN, FAILED)                                                             \
    X(BROKER, "broker", WORKER, PLAIN, BROKER)                                                     \
    /* the broker refused a result for good */                                                     \
    X(PUBLISH_REFUSED, "publish_refused", NEVER, PLAIN, BROKER)                                    \
    /* the message belongs to another worker now */                                                \
    X(REVOKED, "revoked", WORKER, PLAIN, FAILED)                                                   \
    X(TIMEOUT, "timeout", WORKER, PLAIN, DRAIN)                                                    \
    /* --- ourselves --- */                                                                        \
    /* our books or handles do not agree: a bug */                                                 \
    X(INTERNAL, "internal_error", WORKER, PLAIN, FAILED)

enum err {
#define X(symbol, code, retry, kind, exit) ERR_##symbol,
    ERR_LIST(X)
#undef X
        ERR_COUNT
};

struct error {
    enum err code;
    int native; /* CUresult, rd_kafka_resp_err_t or errno; 0 if none */
    /*
     * If the worker itself is the cause: one word for tools, such as "blob_store"; otherwise NULL.
     * No job fails because of it: jobs wait, and senders see only what error_conceal() leaves.
     * Constant text.
     */
    const char *trouble;
    char message[320]; /* what happened, with the names and numbers involved */
    char fix[200];     /* one sentence that says how to fix it; may be empty */
};

#define MUST_CHECK __attribute__((warn_unused_result))

/** Fills `err` and returns `code`, so that a failure is one statement. `fix` is plain text. */
__attribute__((format(printf, 5, 6))) enum err error_set(
    struct error *err, enum err code, int native, const char *fix, const char *format, ...);

/** ERR_NO_MEMORY where nothing but more memory helps, with the fix that says so. */
__attribute__((format(printf, 2, 3))) enum err error_no_memory(
    struct error *err, const char *format, ...);

/**
 * If the worker itself is the cause: replaces the message by one that says no more than the word.
 * The code stays.
 */
void error_conceal(struct error *err);

/** The code as it stands on the wire, such as "bad_job". */
const char *err_code(enum err code);

enum retry err_retry(enum err code);

/** "worker", "sender" or "never", as results say it. */
const char *err_retry_name(enum err code);

/** True if memory is short, and other jobs may give some back. */
bool err_is_shortage(enum err code);

/**
 * True if the process has lost its GPU and only a new process can go on. False for a value that is
 * not a code, as a damaged file may hold.
 */
bool err_is_sticky(enum err code);

/** The exit code of a gpu-worker command that fails with this code. */
enum cli_exit err_exit(enum err code);

#endif
