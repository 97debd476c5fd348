#include "http/token.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"

enum { TOKEN_BYTES_MAX = 4096 };

static enum err refuse(struct error *err, const char *path, int native, const char *why) {
    return error_set(err, ERR_CONFIG, native,
        "give http.token_file a file with one secret of visible ASCII that the worker can read",
        "%s: %s", path, why);
}

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static struct slice trim(const char *text, size_t size) {
    while (size > 0 && is_blank(text[0])) text++, size--;
    while (size > 0 && is_blank(text[size - 1])) size--;
    return slice_of(text, size);
}

static bool is_visible(struct slice text) {
    for (size_t i = 0; i < text.size; i++)
        if (text.data[i] <= ' ' || text.data[i] >= 0x7f) return false;
    return text.size > 0;
}

enum err token_read(const char *path, struct digest *ret, struct error *err) {
    struct error why;
    char *text = NULL;
    size_t size = 0;
    if (strcmp(path, "-") == 0) return refuse(err, path, 0, "it is not a plain file");
    enum err code = file_read(path, TOKEN_BYTES_MAX, &text, &size, &why);
    if (code == ERR_TOO_LARGE) return refuse(err, path, 0, "it is larger than any secret");
    if (code != ERR_OK)
        return refuse(err, path, why.native,
            why.native != 0 ? strerror(why.native) : "it is not a plain file");
    struct slice token = trim(text, size);
    bool is_good = is_visible(token);
    if (is_good) *ret = digest_of(token);
    explicit_bzero(text, size);
    free(text);
    return is_good ? ERR_OK : refuse(err, path, 0, "it does not hold exactly one secret");
}

/* Compares digests, so that the time it takes reveals nothing of the secret. */
static bool is_same(const struct digest *a, const struct digest *b) {
    unsigned difference = 0;
    for (size_t i = 0; i < sizeof a->bytes; i++) difference |= a->bytes[i] ^ b->bytes[i];
    return difference == 0;
}

bool token_is_brought(const struct digest *token, const char *authorization) {
    static const char scheme[] = "Bearer ";
    if (authorization == NULL || strncasecmp(authorization, scheme, sizeof scheme - 1) != 0)
        return false;
    const char *secret = authorization + sizeof scheme - 1;
    struct slice brought = trim(secret, strlen(secret));
    struct digest digest = digest_of(brought);
    return is_same(token, &digest);
}
