#include "metrics/ledger.h"

#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/text.h"

/* For writers in this process: a lock in shared memory could outlive its owner. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Relaxed unless a comment says otherwise: a count publishes no other memory. */
static void add_one(_Atomic uint64_t *count) {
    atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
}

/* Without the process's key, because the next life of the executor finds the same hashes; no sender
 * chooses these names. */
static uint64_t hash_of(const char *name) {
    static const uint64_t key[2];
    return hash_with_key(key, slice_of(name, strnlen(name, LEDGER_NAME_BYTES - 1)));
}

/* Call with the lock held. The first place is for messages without a program. */
static uint32_t find_program(struct ledger *ledger, const char *name) {
    uint32_t count = atomic_load_explicit(&ledger->program_count, memory_order_relaxed);
    if (name[0] == '\0') return 0;
    if (count == 0) count = 1;
    /* The life before this one may have damaged it. */
    if (count > LEDGER_PROGRAMS_MAX) count = LEDGER_PROGRAMS_MAX;
    uint64_t hash = hash_of(name);
    for (uint32_t i = 1; i < count; i++)
        if (ledger->name_hashes[i] == hash) return i;
    if (count == LEDGER_PROGRAMS_MAX) return count - 1;
    if (count == LEDGER_PROGRAMS_MAX - 1) name = LEDGER_OTHER;
    ledger->name_hashes[count] = hash_of(name);
    text_format(ledger->programs[count].name, LEDGER_NAME_BYTES, "%s", name);
    /* release: pairs with the acquire in ledger_read_program() */
    atomic_store_explicit(&ledger->program_count, count + 1, memory_order_release);
    return count;
}

/* Call with the lock held. */
static void note_failure(struct ledger *ledger, const char *program, const struct job *job) {
    const struct position *position = &job->delivery->position;
    uint64_t number = atomic_load_explicit(&ledger->failure_count, memory_order_relaxed) +
                      1; /* only we write it */
    struct ledger_failure *ret = &ledger->failures[number % LEDGER_FAILURES].failure;
    _Atomic uint64_t *shown = &ledger->failures[number % LEDGER_FAILURES].number;
    /* acquire: the texts are not written before this; pairs with the exchange in
     * ledger_read_failure() */
    atomic_exchange_explicit(shown, 0, memory_order_acq_rel);
    ret->unix_ms = clock_unix_ms();
    ret->code = job->outcome.code;
    ret->is_dead_letter = job->has_letter;
    ret->partition = position->partition;
    ret->offset = position->offset;
    text_format(ret->topic, sizeof ret->topic, "%s", position->topic);
    text_format(ret->id, sizeof ret->id, "%.*s", SLICE_TEXT(job->id));
    text_format(ret->program, sizeof ret->program, "%s", program);
    text_format(ret->message, sizeof ret->message, "%s", job->outcome.err.message);
    text_format(ret->fix, sizeof ret->fix, "%s", job->outcome.err.fix);
    /* release: pairs with the acquires in ledger_read_failure() */
    atomic_store_explicit(shown, number, memory_order_release);
    atomic_store_explicit(&ledger->failure_count, number, memory_order_release);
}

void ledger_note_answer(struct ledger *ledger, const char *program, const struct job *job) {
    enum err code = job->outcome.code;
    if (job->has_letter) add_one(&ledger->dead_letters[code]);
    pthread_mutex_lock(&lock);
    if (code != ERR_OK) note_failure(ledger, program, job);
    /* Last: who has seen the count also finds the dead letter and the failure. */
    add_one(&ledger->programs[find_program(ledger, program)].outcomes[code]);
    pthread_mutex_unlock(&lock);
}

void ledger_note_retry(struct ledger *ledger, enum err code) {
    add_one(&ledger->retries[code]);
}

void ledger_note_conviction(struct ledger *ledger, enum err code) {
    add_one(&ledger->convictions[code]);
}

bool ledger_read_program(const struct ledger *ledger, uint32_t index,
    char name[static LEDGER_NAME_BYTES], uint64_t outcomes[static ERR_COUNT]) {
    /* acquire: pairs with the release in find_program() */
    uint32_t count = atomic_load_explicit(&ledger->program_count, memory_order_acquire);
    if (index >= LEDGER_PROGRAMS_MAX || (index > 0 && index >= count)) return false;
    memcpy(name, ledger->programs[index].name, LEDGER_NAME_BYTES);
    text_mend_within(name, LEDGER_NAME_BYTES);
    for (int code = 0; code < ERR_COUNT; code++)
        outcomes[code] = atomic_load_explicit(&ledger->programs[index].outcomes[code],
            memory_order_relaxed); /* relaxed: a single count */
    return true;
}

bool ledger_read_failure(struct ledger *ledger, uint64_t number, struct ledger_failure *ret) {
    _Atomic uint64_t *shown = &ledger->failures[number % LEDGER_FAILURES].number;
    /* acquire: pairs with the release in note_failure() */
    if (atomic_load_explicit(shown, memory_order_acquire) != number) return false;
    *ret = ledger->failures[number % LEDGER_FAILURES].failure;
    /* release: all reads happen before this; pairs with the exchange in note_failure() */
    if (atomic_fetch_add_explicit(shown, 0, memory_order_acq_rel) != number) return false;
    text_mend_within(ret->topic, sizeof ret->topic);
    text_mend_within(ret->id, sizeof ret->id);
    text_mend_within(ret->program, sizeof ret->program);
    text_mend_within(ret->message, sizeof ret->message);
    text_mend_within(ret->fix, sizeof ret->fix);
    return true;
}
