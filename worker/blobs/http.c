#include "blobs/http.h"

enum { STATUS_NOT_FOUND = 404, STATUS_GONE = 410 };

/* Errors that a sender can correct do not name the store. */
enum err http_get_blob(struct http_client *client, const char *name, uint64_t bytes_max,
    http_take *take, void *context, struct error *err) {
    const struct http_request request = {
        .method = HTTP_GET, .path = name, .body_max = bytes_max, .take = take, .context = context};
    const char *digest = name + strlen("ab/");
    struct http_answer answer;
    enum err code = http_client_send(client, &request, &answer, err);
    if (code != ERR_OK && answer.is_too_long)
        return error_set(err, ERR_DIGEST_MISMATCH, 0, "give the buffer the size of the payload",
            "the blob sha256:%s is longer than the job says", digest);
    if (code != ERR_OK && (answer.status == STATUS_NOT_FOUND || answer.status == STATUS_GONE))
        return error_set(err, ERR_BLOB_MISSING, (int)answer.status,
            "put the payload into the blob store", "the blob store has no sha256:%s", digest);
    return code;
}

enum err http_put_blob(
    struct http_client *client, const char *name, struct slice payload, struct error *err) {
    const struct http_request request = {.method = HTTP_PUT, .path = name, .body = payload};
    struct http_answer answer;
    return http_client_send(client, &request, &answer, err);
}
