/**
 * Reads the messages of a file: msgpack messages one after the other, as run --jobs takes and
 * --results writes them; or dead letters, one line of JSON each, as --dead-letters writes them. The
 * first byte says which of both it is.
 *
 * Memory: the largest message, up to 2 GiB. Threads: one at a time.
 */
#ifndef CLI_MESSAGES_FILE_H
#define CLI_MESSAGES_FILE_H

#include "broker/delivery.h"

struct messages_file;

/** `path` "-" is standard input. Errors: ERR_IO, ERR_NO_MEMORY. */
MUST_CHECK enum err messages_file_open(
    const char *path, struct messages_file **ret, struct error *err);
void messages_file_close(struct messages_file *file); /* NULL is fine */

/**
 * *ret is valid until the next call; NULL: there are no more. `ret_is_letter`: it is a dead letter,
 * with key and headers. Its position is the path, and its number in the file. Errors:
 * ERR_BAD_MESSAGE, after which no more can be read; ERR_IO; ERR_NO_MEMORY; ERR_TOO_LARGE.
 */
MUST_CHECK enum err messages_file_next(struct messages_file *file, const struct delivery **ret,
    bool *ret_is_letter, struct error *err);

#endif
