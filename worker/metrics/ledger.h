/**
 * What became of messages, by program and code, and the last of those that failed. It lies in
 * memory that processes may share (board.h): what one life of an executor has written, the next
 * goes on with.
 *
 * Program names are those of loaded programs: a sender cannot add one. Of more than
 * LEDGER_PROGRAMS_MAX, those that come late share the last place. Failures are told by a sender,
 * with texts of its own: whoever shows them escapes them.
 *
 * Lifetime: of the memory, which begins zeroed. Threads: ledger_note_*() any of one process;
 * ledger_read_*() and the counts any, also of another process.
 */
#ifndef METRICS_LEDGER_H
#define METRICS_LEDGER_H

#include <stdatomic.h>
#include <stdint.h>

#include "job/job.h"

enum {
    LEDGER_PROGRAMS_MAX = 64, /* with the first, which is of messages without a program */
    LEDGER_NAME_BYTES = 64,   /* longer names are shown cut */
    LEDGER_FAILURES = 16,
    LEDGER_ID_BYTES = 64,
    LEDGER_TOPIC_BYTES = 256
};

#define LEDGER_OTHER "(other)"

/** A failure, for people. Texts that are too long are cut. */
struct ledger_failure {
    uint64_t unix_ms;
    uint32_t code; /* an enum err, or foreign */
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
    _Atomic uint32_t program_count; /* with a name that can be read */
    struct {
        char name[LEDGER_NAME_BYTES];
        _Atomic uint64_t outcomes[ERR_COUNT];
    } programs[LEDGER_PROGRAMS_MAX];
    _Atomic uint64_t dead_letters[ERR_COUNT], retries[ERR_COUNT], convictions[ERR_COUNT];
    _Atomic uint64_t failure_count; /* all of them; the last LEDGER_FAILURES are kept */
    struct {
        _Atomic uint64_t number; /* from 1; 0: it is being written */
        struct ledger_failure failure;
    } failures[LEDGER_FAILURES];
};

/** A message is answered for good. `program` as a registry has it; "": none is known. */
void ledger_note_answer(struct ledger *ledger, const char *program, const struct job *job);

/** A job that failed with `code` is tried again here. */
void ledger_note_retry(struct ledger *ledger, enum err code);

/** A message is convicted, for the first time. */
void ledger_note_conviction(struct ledger *ledger, enum err code);

/** The name of the program at `index`, and its messages by code. False: there are no more. */
MUST_CHECK bool ledger_read_program(const struct ledger *ledger, uint32_t index,
    char name[static LEDGER_NAME_BYTES], uint64_t outcomes[static ERR_COUNT]);

/** The failure of that number. False: it is gone, or is being written. */
MUST_CHECK bool ledger_read_failure(
    struct ledger *ledger, uint64_t number, struct ledger_failure *ret);

#endif
