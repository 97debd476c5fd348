#include "blobs/http.h"

#include <curl/curl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    IDLE_MAX = 16, /* connections kept for the next request */
    REDIRECTS_MAX = 3,
    CONNECT_TIMEOUT_MS = 10000,
    /* A peer that is slower than this for that long counts as dead. */
    STALLED_BYTES_PER_S = 1024,
    STALLED_S = 20,
    STATUS_NOT_FOUND = 404,
    STATUS_GONE = 410
};

struct http {
    char *url;             /* without credentials and without a trailing slash */
    char *user, *password; /* NULL: there is none */
    uint32_t timeout_ms;
    pthread_mutex_t lock; /* guards what follows */
    size_t idle_count;
    CURL *idle[IDLE_MAX];
};

/* One request under way. */
struct transfer {
    http_take *take; /* NULL: a PUT */
    void *context;
    CURL *handle;
    uint64_t bytes_left; /* how many more bytes the body may have */
    bool is_too_long;
    struct slice upload; /* what is still to be sent of `payload` */
    struct slice payload;
    enum err code; /* of `take` */
    struct error *err;
};

static enum err out_of_memory(struct error *err) {
    return error_set(
        err, ERR_NO_MEMORY, 0, "give the process more memory", "no memory for an HTTP request");
}

/* ---- the URL ---- */

static void strip_slashes(char *url) {
    size_t size = strlen(url);
    while (size > 0 && url[size - 1] == '/') url[--size] = 0;
}

/* A part of a URL; NULL if there is none, or no memory. */
static char *part_of(CURLU *url, CURLUPart what, unsigned flags) {
    char *part = NULL, *ret = NULL;
    if (curl_url_get(url, what, &part, flags) == CURLUE_OK) ret = strdup(part);
    curl_free(part);
    return ret;
}

static bool is_of_http(const char *url) {
    return strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0;
}

/* Credentials are kept apart from the URL, so that no message and no redirect can contain them. */
static bool split_url(struct http *http, const char *url) {
    CURLU *parts = curl_url();
    bool is_url = parts != NULL && curl_url_set(parts, CURLUPART_URL, url, 0) == CURLUE_OK;
    if (is_url) {
        http->user = part_of(parts, CURLUPART_USER, CURLU_URLDECODE);
        http->password = part_of(parts, CURLUPART_PASSWORD, CURLU_URLDECODE);
        is_url = curl_url_set(parts, CURLUPART_USER, NULL, 0) == CURLUE_OK &&
                 curl_url_set(parts, CURLUPART_PASSWORD, NULL, 0) == CURLUE_OK;
    }
    if (is_url) http->url = part_of(parts, CURLUPART_URL, 0);
    curl_url_cleanup(parts);
    return http->url != NULL && is_of_http(http->url);
}

/* The origin of a URL: scheme, host and port. */
static char *origin_of(const char *url) {
    char *scheme = NULL, *host = NULL, *port = NULL, *ret = NULL;
    CURLU *parts = curl_url();
    if (parts != NULL && curl_url_set(parts, CURLUPART_URL, url, 0) == CURLUE_OK) {
        scheme = part_of(parts, CURLUPART_SCHEME, 0);
        host = part_of(parts, CURLUPART_HOST, 0);
        port = part_of(parts, CURLUPART_PORT, CURLU_DEFAULT_PORT);
        if (scheme != NULL && host != NULL && port != NULL &&
            asprintf(&ret, "%s://%s:%s", scheme, host, port) < 0)
            ret = NULL;
    }
    free(scheme);
    free(host);
    free(port);
    curl_url_cleanup(parts);
    return ret;
}

static bool is_same_origin(const char *a, const char *b) {
    char *first = origin_of(a), *second = origin_of(b);
    bool is_same = first != NULL && second != NULL && strcasecmp(first, second) == 0;
    free(first);
    free(second);
    return is_same;
}

enum err http_create(const char *url, uint32_t timeout_ms, struct http **ret, struct error *err) {
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) return out_of_memory(err);
    struct http *http = calloc(1, sizeof *http);
    if (http == NULL) {
        curl_global_cleanup();
        return out_of_memory(err);
    }
    pthread_mutex_init(&http->lock, NULL);
    http->timeout_ms = timeout_ms;
    if (!split_url(http, url)) {
        http_destroy(http);
        return error_set(err, ERR_CONFIG, 0, "write it as https://host/path",
            "blobs.url is not the URL of a store behind HTTP");
    }
    strip_slashes(http->url);
    *ret = http;
    return ERR_OK;
}

void http_destroy(struct http *http) {
    if (http == NULL) return;
    for (size_t i = 0; i < http->idle_count; i++) curl_easy_cleanup(http->idle[i]);
    pthread_mutex_destroy(&http->lock);
    free(http->password);
    free(http->user);
    free(http->url);
    free(http);
    curl_global_cleanup();
}

/* ---- a request ---- */

static long status_of(CURL *handle) {
    long status = 0;
    (void)curl_easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

static bool is_good(long status) {
    return status >= 200 && status < 300;
}

static size_t on_body(char *data, size_t size, size_t count, void *context) {
    struct transfer *transfer = context;
    struct slice piece = slice_of(data, size * count);
    if (!is_good(status_of(transfer->handle)))
        return piece.size; /* the body of a redirect is ignored */
    if (piece.size > transfer->bytes_left) {
        transfer->is_too_long = true;
        return 0;
    }
    transfer->bytes_left -= piece.size;
    if (transfer->take != NULL) /* the answer to an upload is not read */
        transfer->code = transfer->take(transfer->context, piece, transfer->err);
    return transfer->code == ERR_OK ? piece.size : 0;
}

static size_t on_upload(char *to, size_t size, size_t count, void *context) {
    struct transfer *transfer = context;
    struct slice piece;
    size_t room = size * count;
    size_t bytes = transfer->upload.size < room ? transfer->upload.size : room;
    if (bytes == 0 || !slice_take(&transfer->upload, bytes, &piece)) return 0;
    memcpy(to, piece.data, bytes);
    return bytes;
}

/* libcurl starts an upload again on a new connection if a kept one turns out to be closed. */
static int on_rewind(void *context, curl_off_t offset, int origin) {
    struct transfer *transfer = context;
    if (origin != SEEK_SET || offset != 0) return CURL_SEEKFUNC_CANTSEEK;
    transfer->upload = transfer->payload;
    return CURL_SEEKFUNC_OK;
}

static CURL *take_handle(struct http *http) {
    CURL *handle = NULL;
    pthread_mutex_lock(&http->lock);
    if (http->idle_count > 0) handle = http->idle[--http->idle_count];
    pthread_mutex_unlock(&http->lock);
    return handle != NULL ? handle : curl_easy_init();
}

static void give_handle(struct http *http, CURL *handle) {
    curl_easy_reset(handle); /* its connection stays open */
    pthread_mutex_lock(&http->lock);
    bool is_kept = http->idle_count < IDLE_MAX;
    if (is_kept) http->idle[http->idle_count++] = handle;
    pthread_mutex_unlock(&http->lock);
    if (!is_kept) curl_easy_cleanup(handle);
}

#define SET(option, value) (is_set = is_set && curl_easy_setopt(handle, option, value) == CURLE_OK)

/* Sets what both methods share. Certificates are verified, which is libcurl's default. */
static bool set_up(
    const struct http *http, CURL *handle, const char *url, struct transfer *transfer) {
    bool is_set = true;
    SET(CURLOPT_URL, url);
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    if (http->user != NULL) SET(CURLOPT_USERNAME, http->user);
    if (http->password != NULL) SET(CURLOPT_PASSWORD, http->password);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_FAILONERROR, 1L);
    SET(CURLOPT_TIMEOUT_MS, (long)http->timeout_ms);
    SET(CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
    SET(CURLOPT_LOW_SPEED_LIMIT, (long)STALLED_BYTES_PER_S);
    SET(CURLOPT_LOW_SPEED_TIME, (long)STALLED_S);
    SET(CURLOPT_USERAGENT, "gpu-worker/" GPU_WORKER_VERSION);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, transfer);
    return is_set;
}

static bool set_up_get(CURL *handle, const struct transfer *transfer) {
    bool is_set = true;
    SET(CURLOPT_HTTPGET, 1L);
    SET(CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)transfer->bytes_left);
    return is_set;
}

/* Redirects are not followed: some of them would turn the upload into a GET that seems to succeed.
 * */
static bool set_up_put(CURL *handle, struct transfer *transfer, const struct curl_slist *headers) {
    bool is_set = true;
    SET(CURLOPT_UPLOAD, 1L);
    SET(CURLOPT_HTTPHEADER, headers);
    SET(CURLOPT_INFILESIZE_LARGE, (curl_off_t)transfer->payload.size);
    SET(CURLOPT_READFUNCTION, on_upload);
    SET(CURLOPT_READDATA, transfer);
    SET(CURLOPT_SEEKFUNCTION, on_rewind);
    SET(CURLOPT_SEEKDATA, transfer);
    return is_set;
}

/* The result of a request. libcurl's detailed messages may quote the URL, so only its fixed ones
 * are used. Errors that a sender can correct do not name the store. */
static enum err judge(const struct http *http, const char *name, CURLcode result,
    const struct transfer *transfer, struct error *err) {
    bool is_put = transfer->take == NULL;
    long status = status_of(transfer->handle);
    if (result == CURLE_OK && is_good(status)) return ERR_OK;
    if (transfer->code != ERR_OK) return transfer->code;
    if (transfer->is_too_long || (result == CURLE_FILESIZE_EXCEEDED && is_good(status)))
        return error_set(err, ERR_DIGEST_MISMATCH, 0, "give the buffer the size of the payload",
            "the blob sha256:%s is longer than the job says", name + strlen("ab/"));
    if (!is_put && (status == STATUS_NOT_FOUND || status == STATUS_GONE))
        return error_set(err, ERR_BLOB_MISSING, (int)status, "put the payload into the blob store",
            "the blob store has no sha256:%s", name + strlen("ab/"));
    const char *reason = result == CURLE_OK || result == CURLE_HTTP_RETURNED_ERROR
                             ? "refused"
                             : curl_easy_strerror(result);
    return error_set(err, ERR_IO, status != 0 ? (int)status : (int)result,
        "check blobs.url and the store behind it", "%s %s/%s: %s, HTTP status %ld",
        is_put ? "PUT" : "GET", http->url, name, reason, status);
}

/* Whether a GET is redirected within the store's origin. libcurl itself would follow any redirect.
 * */
static bool is_sent_on(const struct http *http, const struct transfer *transfer, CURLcode result) {
    char *location = NULL;
    if (result != CURLE_OK || transfer->take == NULL || is_good(status_of(transfer->handle)))
        return false;
    (void)curl_easy_getinfo(transfer->handle, CURLINFO_REDIRECT_URL, &location);
    return location != NULL && is_of_http(location) && is_same_origin(http->url, location) &&
           curl_easy_setopt(transfer->handle, CURLOPT_URL, location) == CURLE_OK;
}

static CURLcode perform_all(const struct http *http, const struct transfer *transfer) {
    CURLcode result = curl_easy_perform(transfer->handle);
    for (int i = 0; i < REDIRECTS_MAX && is_sent_on(http, transfer, result); i++)
        result = curl_easy_perform(transfer->handle);
    return result;
}

static enum err perform(struct http *http, const char *name, const struct curl_slist *headers,
    struct transfer *transfer, struct error *err) {
    char *url;
    if (asprintf(&url, "%s/%s", http->url, name) < 0) return out_of_memory(err);
    CURL *handle = transfer->handle = take_handle(http);
    bool is_put = transfer->take == NULL;
    bool is_ready = handle != NULL && set_up(http, handle, url, transfer) &&
                    (is_put ? set_up_put(handle, transfer, headers) : set_up_get(handle, transfer));
    enum err code = is_ready ? judge(http, name, perform_all(http, transfer), transfer, err)
                             : out_of_memory(err);
    if (handle != NULL) give_handle(http, handle);
    free(url);
    return code;
}

enum err http_get(struct http *http, const char *name, uint64_t bytes_max, http_take *take,
    void *context, struct error *err) {
    struct transfer transfer = {
        .take = take, .context = context, .bytes_left = bytes_max, .err = err};
    return perform(http, name, NULL, &transfer, err);
}

enum err http_put(struct http *http, const char *name, struct slice payload, struct error *err) {
    /* "Expect: 100-continue" would cost a round trip, or a second if the server does not know it.
     * */
    struct curl_slist *headers = curl_slist_append(NULL, "Expect:");
    if (headers == NULL) return out_of_memory(err);
    struct transfer transfer = {
        .payload = payload, .upload = payload, .bytes_left = UINT64_MAX, .err = err};
    enum err code = perform(http, name, headers, &transfer, err);
    curl_slist_free_all(headers);
    return code;
}
