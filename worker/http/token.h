/**
 * A secret in a file, which whoever asks must bring as "Authorization: Bearer SECRET" (RFC 6750).
 * Threads: any; nothing is kept: the file is read anew for each question, so it may be changed at
 * any time.
 */
#ifndef HTTP_TOKEN_H
#define HTTP_TOKEN_H

#include <stdbool.h>

#include "base/digest.h"
#include "base/error.h"

/**
 * The digest of the secret that stands in `path`: visible characters of ASCII; blanks and ends of
 * lines around them do not count. ERR_CONFIG: the file cannot be read, holds none or more than 4
 * KiB.
 */
MUST_CHECK enum err token_read(const char *path, struct digest *ret, struct error *err);

/** Whether the header's value (NULL: there is none) brings it. Takes as long where it does not. */
MUST_CHECK bool token_is_brought(const struct digest *token, const char *authorization);

#endif
