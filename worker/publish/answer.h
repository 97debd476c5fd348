/**
 * The ladder of answers: what can be said of a message, and what next where the brokers refuse that
 * for good. Each answer has less of the sender's than the one before, so that no message can be
 * such that nothing is said of it.
 *
 *     result        what the job gave, or its error: to its `reply_to`, with its key
 *     error         the error, to topics.results
 *     bare error    of the sender's only the job's id: no key, no trace
 *     letter        to topics.dead_letters: all of the message, and what was wrong with it
 *     short letter  what of payload, key and headers has more than 16 KiB is left out
 *     tiny letter   the same from 256 bytes on
 *     coordinates   nothing of the sender's but the job's id; the key is topic/partition/offset
 *
 * A job whose error finds no taker has a letter still. What lies below the coordinates is the
 * operator's to mend: a topic that takes no record of a kilobyte or two.
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
    ANSWER_COUNT /* nothing is left to say */
};

/** ANSWER_COUNT where there is none. */
enum answer answer_next(enum answer answer);

/** True for those that go to the topic of dead letters. */
bool answer_is_letter(enum answer answer);

/** Of a letter: how many bytes the payload, the key and all headers may have each. */
size_t answer_part_bytes_max(enum answer answer);

#endif
