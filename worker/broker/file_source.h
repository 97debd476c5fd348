/**
 * A source that reads a stream of msgpack messages, one after the other, from a file or from
 * standard input. Positions: topic is the path ("stdin" for "-"), partition 0, offset the index of
 * the message.
 *
 * Reading is bounded: a buffer for `message_bytes_max`, and those in which messages are still lent.
 * A stream has no frame around a message, so one that is larger than the buffer, that is not
 * msgpack, or that ends early loses all boundaries after it: its bytes (as far as the buffer goes)
 * come as one last message, which no decoder accepts. The source is then at its end, as it is where
 * reading fails, so that everything before is answered in peace; and closing it fails.
 *
 * Errors of closing, with the byte: ERR_BAD_MESSAGE where boundaries were lost, ERR_IO and
 * ERR_NO_MEMORY where reading failed.
 */
#ifndef BROKER_FILE_SOURCE_H
#define BROKER_FILE_SOURCE_H

#include "broker/file_progress.h"
#include "broker/source.h"

/**
 * `path` "-" is standard input. ERR_IO where it cannot be opened; `message_bytes_max` is not 0.
 * What `progress` (NULL: none is kept) knows as answered is passed over, and what is finished is
 * told to it.
 */
MUST_CHECK enum err file_source_create(const char *path, size_t message_bytes_max,
    struct file_progress *progress, struct source **ret, struct error *err);

#endif
