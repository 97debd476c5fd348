/**
 * Counts the outcomes of messages by program and code, and keeps the last failures. It is in memory
 * that processes may share (board.h): the next life of an executor continues with the counts of the
 * previous one.
 *
 * Program names are those of loaded programs, so a sender cannot add one. If there are more than
 * LEDGER_PROGRAMS_MAX, the later ones share the last place. Failures contain texts from senders,
 * which must be escaped before they are shown.
 *
 * Lifetime: that of the memory, which must be zeroed at first. Threads: ledger_note_*() any of one
 * process; ledger_read_*() and the counts any, also of another process.
 */
#ifndef METRICS_LEDGER_H
#define METRICS_LEDGER_H

#include <stdatomic.h>
#include <stdint.h>

#include "job/job.h"

enum {
    LEDGER_PROGRAMS_MAX = 64, /* including the first, for messages without a program */
    LEDGER_NAME_BYTES = 64,   /* longer names are cut */
    LEDGER_FAILURES = 16,
    LEDGER_ID_BYTES = 64,
    LEDGER_TOPIC_BYTES = 256
};

#define LEDGER_OTHER "(other)"

/** A failure, for people. Texts that are too long are cut. */
struct ledger_failure {
    uint64_t unix_ms;
    uint32_t code; /* an enum err, unless it is damaged */
    uint32_t is_dead_letter;
    int32_t partition;
    int64_t offset;
    char topic[LEDGER_TOPIC_BYTES];
    char id[LEDGER_ID_BYTES]; /* "": the message cannot be decoded */
    char program[LEDGER_NAME_BYTES];
    char message[sizeof(((struct error *)NULL)->message)];
    char fix[sizeof(((struct error *)NULL)->fix)];
};

/** Only ledger.c writes it. */
struct ledger {
    _Atomic uint32_t program_count; /* whose names can be read */
    /* Of the names, side by side, because each answer looks for one of them. */
    uint64_t name_hashes[LEDGER_PROGRAMS_MAX];
    struct {
        char name[LEDGER_NAME_BYTES];
        _Atomic uint64_t outcomes[ERR_COUNT];
    } programs[LEDGER_PROGRAMS_MAX];
    _Atomic uint64_t dead_letters[ERR_COUNT], retries[ERR_COUNT], convictions[ERR_COUNT];
    _Atomic uint64_t failure_count; /* of all failures; the last LEDGER_FAILURES are kept */
    struct {
        _Atomic uint64_t number; /* from 1; 0: it is being written */
        struct ledger_failure failure;
    } failures[LEDGER_FAILURES];
};

/** A message is answered for good. `program` is a name from a registry; "": unknown. */
void ledger_note_answer(struct ledger *ledger, const char *program, const struct job *job);

/** A job that failed with `code` will be tried again here. */
void ledger_note_retry(struct ledger *ledger, enum err code);

/** A message is convicted for the first time. */
void ledger_note_conviction(struct ledger *ledger, enum err code);

/** Reads the name of the program at `index`, and its messages by code. False: there are no more. */
MUST_CHECK bool ledger_read_program(const struct ledger *ledger, uint32_t index,
    char name[static LEDGER_NAME_BYTES], uint64_t outcomes[static ERR_COUNT]);

/** Reads the failure with that number. False: it was replaced, or is being written. */
MUST_CHECK bool ledger_read_failure(
    struct ledger *ledger, uint64_t number, struct ledger_failure *ret);

#endif
