/**
 * A secret in a file, which requests must carry as "Authorization: Bearer SECRET" (RFC 6750). The
 * file is read for every request, so it may change at any time. Threads: any.
 */
#ifndef HTTP_TOKEN_H
#define HTTP_TOKEN_H

#include <stdbool.h>

#include "base/digest.h"
#include "base/error.h"

/**
 * The digest of the secret in the file `path`: visible ASCII characters; blanks and line ends
 * around them are ignored. Errors: ERR_CONFIG, if the file cannot be read, has no secret, or is
 * larger than 4 KiB.
 */
MUST_CHECK enum err token_read(const char *path, struct digest *ret, struct error *err);

/**
 * Whether the header's value (NULL: no header) carries the secret. The time that it takes reveals
 * nothing.
 */
MUST_CHECK bool token_is_brought(const struct digest *token, const char *authorization);

#endif
