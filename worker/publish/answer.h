/**
 * The ladder of answers: what to send for a message, and what to send next if the brokers refuse
 * that for good. Each answer has less of the sender's data than the one before, so that no message
 * can prevent its own answer.
 *
 *     result        the job's outputs or its error: to its `reply_to`, with its key
 *     error         the error, to topics.results
 *     bare error    the error with only the job's id: no key, no trace
 *     letter        to topics.dead_letters: the whole message, and what was wrong with it
 *     short letter  without those of payload, key and headers that have more than 16 KiB
 *     tiny letter   without those that have more than 256 bytes
 *     coordinates   only the job's id; the key is topic/partition/offset
 *
 * A job whose error is refused everywhere still gets a letter. If even the coordinates are refused,
 * the topic takes no record of a kilobyte or two, and the operator must correct that.
 *
 * Threads: pure.
 */
#ifndef PUBLISH_ANSWER_H
#define PUBLISH_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

enum answer {
    ANSWER_RESULT,
    ANSWER_ERROR,
    ANSWER_BARE_ERROR,
    ANSWER_LETTER,
    ANSWER_SHORT_LETTER,
    ANSWER_TINY_LETTER,
    ANSWER_COORDINATES,
    ANSWER_COUNT /* there is no lesser answer */
};

/** The next lesser answer; ANSWER_COUNT if there is none. */
enum answer answer_next(enum answer answer);

/** True for answers that go to the topic of dead letters. */
bool answer_is_letter(enum answer answer);

/** Of a letter: how many bytes the payload, the key and all headers may have each. */
size_t answer_part_bytes_max(enum answer answer);

#endif
