#include "http/client.h"

#include <curl/curl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"

enum {
    IDLE_MAX = 16, /* connections kept for the next request */
    REDIRECTS_MAX = 3,
    CONNECT_TIMEOUT_MS = 10000,
    /* A peer that is slower than this for that long counts as dead. */
    STALLED_BYTES_PER_S = 1024,
    STALLED_S = 20
};

struct http_client {
    char *url;             /* without credentials and without a trailing slash */
    char *user, *password; /* NULL: there is none */
    const char *setting;
    uint32_t timeout_ms;
    pthread_mutex_t lock; /* guards what follows */
    size_t idle_count;
    CURL *idle[IDLE_MAX];
};

/* One request under way. */
struct transfer {
    const struct http_request *request;
    CURL *handle;
    uint64_t bytes_left; /* how many more bytes the body may have */
    bool is_too_long;
    struct slice upload; /* what is still to be sent of the body */
    enum err code;       /* of `take` */
    struct error *err;
};

static enum err out_of_memory(struct error *err) {
    return error_no_memory(err, "no memory for an HTTP request");
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
static bool split_url(struct http_client *client, const char *url) {
    CURLU *parts = curl_url();
    bool is_url = parts != NULL && curl_url_set(parts, CURLUPART_URL, url, 0) == CURLUE_OK;
    if (is_url) {
        client->user = part_of(parts, CURLUPART_USER, CURLU_URLDECODE);
        client->password = part_of(parts, CURLUPART_PASSWORD, CURLU_URLDECODE);
        is_url = curl_url_set(parts, CURLUPART_USER, NULL, 0) == CURLUE_OK &&
                 curl_url_set(parts, CURLUPART_PASSWORD, NULL, 0) == CURLUE_OK;
    }
    if (is_url) client->url = part_of(parts, CURLUPART_URL, 0);
    curl_url_cleanup(parts);
    return client->url != NULL && is_of_http(client->url);
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

enum err http_client_create(
    const struct http_client_options *options, struct http_client **ret, struct error *err) {
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) return out_of_memory(err);
    struct http_client *client = calloc(1, sizeof *client);
    if (client == NULL) {
        curl_global_cleanup();
        return out_of_memory(err);
    }
    pthread_mutex_init(&client->lock, NULL);
    client->timeout_ms = options->timeout_ms;
    client->setting = options->setting;
    if (!split_url(client, options->url)) {
        http_client_destroy(client);
        return error_set(err, ERR_CONFIG, 0, "write it as https://host/path",
            "%s is not a URL of http or https", options->setting);
    }
    strip_slashes(client->url);
    *ret = client;
    return ERR_OK;
}

void http_client_destroy(struct http_client *client) {
    if (client == NULL) return;
    for (size_t i = 0; i < client->idle_count; i++) curl_easy_cleanup(client->idle[i]);
    pthread_mutex_destroy(&client->lock);
    free(client->password);
    free(client->user);
    free(client->url);
    free(client);
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
    const struct http_request *request = transfer->request;
    if (request->take != NULL)
        transfer->code = request->take(request->context, piece, transfer->err);
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
    transfer->upload = transfer->request->body;
    return CURL_SEEKFUNC_OK;
}

static CURL *take_handle(struct http_client *client) {
    CURL *handle = NULL;
    pthread_mutex_lock(&client->lock);
    if (client->idle_count > 0) handle = client->idle[--client->idle_count];
    pthread_mutex_unlock(&client->lock);
    return handle != NULL ? handle : curl_easy_init();
}

static void give_handle(struct http_client *client, CURL *handle) {
    curl_easy_reset(handle); /* its connection stays open */
    pthread_mutex_lock(&client->lock);
    bool is_kept = client->idle_count < IDLE_MAX;
    if (is_kept) client->idle[client->idle_count++] = handle;
    pthread_mutex_unlock(&client->lock);
    if (!is_kept) curl_easy_cleanup(handle);
}

#define SET(option, value) (is_set = is_set && curl_easy_setopt(handle, option, value) == CURLE_OK)

/* Sets what both methods share. Certificates are verified, which is libcurl's default. */
static bool set_up(
    const struct http_client *client, CURL *handle, const char *url, struct transfer *transfer) {
    bool is_set = true;
    SET(CURLOPT_URL, url);
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    if (client->user != NULL) SET(CURLOPT_USERNAME, client->user);
    if (client->password != NULL) SET(CURLOPT_PASSWORD, client->password);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_FAILONERROR, 1L);
    SET(CURLOPT_TIMEOUT_MS, (long)client->timeout_ms);
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
static bool set_up_upload(
    CURL *handle, struct transfer *transfer, const struct curl_slist *headers) {
    bool is_set = true, is_put = transfer->request->method == HTTP_PUT;
    curl_off_t bytes = (curl_off_t)transfer->request->body.size;
    SET(is_put ? CURLOPT_UPLOAD : CURLOPT_POST, 1L);
    SET(CURLOPT_HTTPHEADER, headers);
    SET(is_put ? CURLOPT_INFILESIZE_LARGE : CURLOPT_POSTFIELDSIZE_LARGE, bytes);
    SET(CURLOPT_READFUNCTION, on_upload);
    SET(CURLOPT_READDATA, transfer);
    SET(CURLOPT_SEEKFUNCTION, on_rewind);
    SET(CURLOPT_SEEKDATA, transfer);
    return is_set;
}

static bool set_up_method(
    CURL *handle, struct transfer *transfer, const struct curl_slist *headers) {
    return transfer->request->method == HTTP_GET ? set_up_get(handle, transfer)
                                                 : set_up_upload(handle, transfer, headers);
}

/* The result of a request. libcurl's detailed messages may quote the URL, so only its fixed ones
 * are used. */
static enum err judge(const struct http_client *client, CURLcode result,
    const struct transfer *transfer, struct error *err) {
    static const char *const methods[] = {"GET", "PUT", "POST"};
    const struct http_request *request = transfer->request;
    long status = status_of(transfer->handle);
    if (result == CURLE_OK && is_good(status)) return ERR_OK;
    if (transfer->code != ERR_OK) return transfer->code;
    bool is_refused = result == CURLE_OK || result == CURLE_HTTP_RETURNED_ERROR;
    const char *reason = transfer->is_too_long ? "the answer is too long"
                         : is_refused          ? "refused"
                                               : curl_easy_strerror(result);
    char fix[sizeof err->fix];
    text_format(fix, sizeof fix, "check %s and the service behind it", client->setting);
    return error_set(err, ERR_IO, status != 0 ? (int)status : (int)result, fix,
        "%s %s%s%s: %s, HTTP status %ld", methods[request->method], client->url,
        request->path[0] != 0 ? "/" : "", request->path, reason, status);
}

/* Whether a GET is redirected within the store's origin. libcurl itself would follow any redirect.
 * */
static bool is_sent_on(
    const struct http_client *client, const struct transfer *transfer, CURLcode result) {
    char *location = NULL;
    if (result != CURLE_OK || transfer->request->method != HTTP_GET ||
        is_good(status_of(transfer->handle)))
        return false;
    (void)curl_easy_getinfo(transfer->handle, CURLINFO_REDIRECT_URL, &location);
    return location != NULL && is_of_http(location) && is_same_origin(client->url, location) &&
           curl_easy_setopt(transfer->handle, CURLOPT_URL, location) == CURLE_OK;
}

static CURLcode perform_all(const struct http_client *client, const struct transfer *transfer) {
    CURLcode result = curl_easy_perform(transfer->handle);
    for (int i = 0; i < REDIRECTS_MAX && is_sent_on(client, transfer, result); i++)
        result = curl_easy_perform(transfer->handle);
    return result;
}

static void note_answer(const struct transfer *transfer, CURLcode result, struct http_answer *ret) {
    ret->status = status_of(transfer->handle);
    ret->is_too_long =
        transfer->is_too_long || (result == CURLE_FILESIZE_EXCEEDED && is_good(ret->status));
}

static enum err perform(struct http_client *client, const struct curl_slist *headers,
    struct transfer *transfer, struct http_answer *ret, struct error *err) {
    const char *path = transfer->request->path;
    char *url;
    if (asprintf(&url, "%s%s%s", client->url, path[0] != 0 ? "/" : "", path) < 0)
        return out_of_memory(err);
    CURL *handle = transfer->handle = take_handle(client);
    bool is_ready = handle != NULL && set_up(client, handle, url, transfer) &&
                    set_up_method(handle, transfer, headers);
    enum err code;
    if (is_ready) {
        CURLcode result = perform_all(client, transfer);
        note_answer(transfer, result, ret);
        code = judge(client, result, transfer, err);
    } else {
        code = out_of_memory(err);
    }
    if (handle != NULL) give_handle(client, handle);
    free(url);
    return code;
}

/* "Expect: 100-continue" would cost a round trip, or a second if the server does not know it. */
static bool list_headers(const struct http_request *request, struct curl_slist **ret) {
    *ret = curl_slist_append(NULL, "Expect:");
    if (*ret == NULL || request->type == NULL) return *ret != NULL;
    struct curl_slist *both = curl_slist_append(*ret, request->type);
    if (both == NULL) curl_slist_free_all(*ret);
    *ret = both;
    return both != NULL;
}

enum err http_client_send(struct http_client *client, const struct http_request *request,
    struct http_answer *ret, struct error *err) {
    struct transfer transfer = {.request = request,
        .upload = request->body,
        .bytes_left = request->take != NULL ? request->body_max : UINT64_MAX,
        .err = err};
    struct curl_slist *headers;
    *ret = (struct http_answer){0};
    if (!list_headers(request, &headers)) return out_of_memory(err);
    enum err code = perform(client, headers, &transfer, ret, err);
    curl_slist_free_all(headers);
    return code;
}
