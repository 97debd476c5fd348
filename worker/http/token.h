/**
 * A secret in a file, which requests must carry as "Authorization: Bearer SECRET" (RFC 6750).
 * The file is read anew for each request, so it may change at any time. Threads: any.
 */
#ifndef HTTP_TOKEN_H
#define HTTP_TOKEN_H

#include <stdbool.h>

#include "base/digest.h"
#include "base/error.h"

/**
 * The digest of the secret that stands in `path`: visible characters of ASCII; blanks and ends of
 * lines around them do not count. ERR_CONFIG: the file cannot be read, has no secret, or has more
 * than 4 KiB.
 */
MUST_CHECK enum err token_read(const char *path, struct digest *ret, struct error *err);

/** Whether the header's value (NULL: no header) is the secret. The time it takes does not tell. */
MUST_CHECK bool token_is_brought(const struct digest *token, const char *authorization);

#endif
