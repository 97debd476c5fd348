/**
 * What the topics know of the jobs with one id, or of one name (cli/ids.h): their messages, their
 * answers, and cancels.
 *
 * Of each kind the newest FINDINGS_MAX are kept, and all are counted. Texts that are too long are
 * cut; they come from senders and are escaped before they are shown. Threads: one.
 */
#ifndef CLI_FINDINGS_H
#define CLI_FINDINGS_H

#include "broker/committed.h"
#include "settings/settings.h"

enum {
    FINDINGS_MAX = 8,
    FINDINGS_TEXT_BYTES = 330,
    FINDINGS_TOPIC_BYTES = 256,
    FINDINGS_ID_BYTES = 257
};

/* Of a message. */
struct place {
    char id[FINDINGS_ID_BYTES]; /* of the job that it is about */
    char topic[FINDINGS_TOPIC_BYTES];
    int32_t partition;
    int64_t offset;
    uint64_t unix_ms; /* when it was published; 0: not known */
};

struct found_job {
    struct place place;
    char program[FINDINGS_TOPIC_BYTES]; /* of its first step; "": it cannot be read */
    char reply_to[FINDINGS_TOPIC_BYTES];
    bool is_group_known; /* else `group` says nothing */
    struct committed group;
};

struct found_answer {
    struct place place;
    bool is_dead_letter, is_ok;
    char source[FINDINGS_TEXT_BYTES]; /* topic/partition/offset of its job */
    char code[64], message[FINDINGS_TEXT_BYTES], fix[FINDINGS_TEXT_BYTES], retry[16];
};

struct findings {
    const char *asked; /* an id, or a name */
    uint64_t since_ms;
    size_t job_count, answer_count, cancel_count; /* all that there are */
    struct found_job jobs[FINDINGS_MAX];
    struct found_answer answers[FINDINGS_MAX];
    struct place cancels[FINDINGS_MAX];
};

/**
 * Reads the topics of the configuration, and those that the jobs found name in `reply_to`, from
 * `since_ms` on to the ends that they have now. Errors: ERR_BROKER, ERR_NO_MEMORY.
 */
MUST_CHECK enum err findings_read(const struct settings *settings, const char *asked,
    uint64_t since_ms, struct findings *ret, struct error *err);

/** The answer that ended the job at this place; NULL: none is among those that are kept. */
const struct found_answer *findings_answer_of(
    const struct findings *findings, const struct place *place);

#endif
