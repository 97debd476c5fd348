#include "blobs/blobs.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/crew.h"
#include "base/invariant.h"
#include "base/queue.h"
#include "blobs/cache.h"
#include "blobs/folder.h"
#include "blobs/http.h"
#include "blobs/parts.h"

enum { SWEEP_INTERVAL_MS = 3600 * 1000, HOUR_S = 3600 };

struct blobs {
    uint64_t bytes_max;
    uint32_t max_age_hours;
    struct blob_memory memory;
    atomic_uint_fast64_t answers; /* relaxed: it publishes no other memory */
    /* either a folder ... */
    struct folder folder;
    struct queue *stop; /* always empty; closed to end the sweeper */
    struct crew *sweeper;
    /* ... or HTTP and a cache */
    struct http_client *http;
    struct cache *cache;
    void (*on_not_cached)(void *context, const struct error *err);
    void *context;
};

static enum err check_bytes(const struct blobs *blobs, uint64_t bytes, struct error *err) {
    if (bytes <= blobs->bytes_max) return ERR_OK;
    return error_set(err, ERR_TOO_LARGE, 0, "raise blobs.bytes_max",
        "a blob of %" PRIu64 " bytes is over blobs.bytes_max, %" PRIu64, bytes, blobs->bytes_max);
}

/* Notes an answer of the store itself, not of the cache. One that fails here, for want of memory,
 * has asked nothing. */
static enum err note_answer(struct blobs *blobs, enum err code, struct error *err) {
    atomic_bool *is_in_trouble = &blobs->memory.is_in_trouble;
    if (code == ERR_NO_MEMORY) return code;
    if (code != ERR_IO) {
        atomic_fetch_add_explicit(&blobs->answers, 1, memory_order_relaxed); /* see there */
        atomic_store_explicit(is_in_trouble, false, memory_order_relaxed);
    } else if (err->trouble == NULL && blobs->http != NULL) { /* `native` is a status */
        err->trouble = BLOBS_TROUBLE;
        atomic_store_explicit(is_in_trouble, true, memory_order_relaxed);
    } else if (err->trouble == NULL) {
        (void)blob_memory_note_disk(&blobs->memory, code, err);
    }
    return code;
}

uint64_t blobs_answers(const struct blobs *blobs) {
    return blobs != NULL ? atomic_load_explicit(&blobs->answers, memory_order_relaxed) : 0;
}

const char *blobs_trouble(const struct blobs *blobs) {
    return blobs != NULL ? blob_memory_trouble(&blobs->memory) : "";
}

bool blobs_are_held(const struct blobs *blobs) {
    return blobs != NULL && blob_memory_is_held(&blobs->memory);
}

/* ---- through HTTP ---- */

static enum err take_piece(void *context, struct slice piece, struct error *err) {
    struct copy *copy = context;
    struct slice part = {0};
    while (piece.size > 0) {
        size_t room;
        void *to = copy_room(copy, &room);
        if (!slice_take(&piece, piece.size < room ? piece.size : room, &part) || part.size == 0)
            return error_set(err, ERR_DIGEST_MISMATCH, 0, "give the buffer the size of the payload",
                "the blob is longer than the job says");
        memcpy(to, part.data, part.size);
        copy_filled(copy, part.size);
    }
    return ERR_OK;
}

static enum err download(struct blobs *blobs, const struct digest *digest, uint64_t bytes,
    struct blob *ret, struct error *err) {
    char name[BLOB_NAME_SIZE];
    struct copy copy = {0};
    enum err code = copy_begin(&blobs->memory, bytes, &copy, err);
    if (code == ERR_OK)
        code = note_answer(blobs,
            http_get_blob(blobs->http, blob_name(digest, name), bytes, take_piece, &copy, err),
            err);
    if (code == ERR_OK) code = copy_finish(&copy, digest, ret, err);
    copy_fini(&copy);
    return code;
}

/* A payload on its way to a file. */
struct download {
    struct blob_memory *memory;
    struct temp_file file;
    uint64_t bytes_left;
};

static enum err write_piece(void *context, struct slice piece, struct error *err) {
    struct download *download = context;
    download->bytes_left -= piece.size; /* the request takes no more than there are */
    enum err code = temp_file_write(&download->file, piece, err);
    return blob_memory_note_disk(download->memory, code, err);
}

static enum err download_file(struct blobs *blobs, const struct digest *digest, uint64_t bytes,
    struct download *ret, struct error *err) {
    char name[BLOB_NAME_SIZE];
    *ret = (struct download){.memory = &blobs->memory, .bytes_left = bytes};
    enum err code = temp_file_create(cache_folder(blobs->cache), digest, &ret->file, err);
    if (code != ERR_OK) return blob_memory_note_disk(ret->memory, code, err);
    code = http_get_blob(blobs->http, blob_name(digest, name), bytes, write_piece, ret, err);
    if (code == ERR_OK && ret->bytes_left > 0)
        code = error_set(err, ERR_DIGEST_MISMATCH, 0, "give the buffer the size of the payload",
            "the blob is %" PRIu64 " bytes shorter than the job says", ret->bytes_left);
    if (code == ERR_OK) blob_memory_note_written(ret->memory);
    else temp_file_discard(&ret->file);
    return code;
}

static void tell_not_cached(const struct blobs *blobs, const struct error *err) {
    if (blobs->on_not_cached != NULL) blobs->on_not_cached(blobs->context, err);
}

/* Whether the cache keeps the file or not, the blob has it open, and reads it. Room comes first:
 * who finds none tries again soon, and must not fetch all of it each time. */
static enum err fetch_parts(struct blobs *blobs, const struct digest *digest, uint64_t bytes,
    struct cache_entry *claimed, struct blob *ret, struct error *err) {
    struct download download;
    struct error not_kept;
    bool has_file = false, is_kept;
    enum err code = parts_create(bytes, &blobs->memory, &ret->parts, err);
    if (code == ERR_OK) {
        code = note_answer(blobs, download_file(blobs, digest, bytes, &download, err), err);
        has_file = code == ERR_OK;
    }
    if (has_file) {
        code = temp_file_open_parts(&download.file, ret->parts, err);
        (void)blob_memory_note_disk(&blobs->memory, code, err);
    }
    bool is_wanted = code == ERR_OK && cache_wants(blobs->cache, claimed);
    enum err settled =
        cache_settle(blobs->cache, claimed, is_wanted ? &download.file : NULL, &is_kept, &not_kept);
    if (has_file) (is_kept ? temp_file_close : temp_file_discard)(&download.file);
    if (settled != ERR_OK) tell_not_cached(blobs, &not_kept);
    if (code != ERR_OK) blob_fini(ret);
    return code;
}

static enum err write_cache_file(struct blobs *blobs, const struct digest *digest,
    struct slice bytes, struct temp_file *ret, struct error *err) {
    enum err code = temp_file_create(cache_folder(blobs->cache), digest, ret, err);
    if (code != ERR_OK) return code;
    code = temp_file_write(ret, bytes, err);
    if (code != ERR_OK) temp_file_discard(ret);
    return code;
}

/* Settles the claim of a blob that was fetched and checked, with a file if possible: a problem of
 * the disk must not fail the job. */
static void keep(struct blobs *blobs, const struct digest *digest, struct slice bytes,
    struct cache_entry *claimed) {
    struct temp_file file;
    struct error err;
    bool has_file = false, is_kept;
    enum err code = ERR_OK;
    if (cache_wants(blobs->cache, claimed)) {
        code = write_cache_file(blobs, digest, bytes, &file, &err);
        has_file = code == ERR_OK;
    }
    enum err settled = cache_settle(blobs->cache, claimed, has_file ? &file : NULL, &is_kept, &err);
    if (has_file) (is_kept ? temp_file_close : temp_file_discard)(&file);
    bool has_failed = code != ERR_OK || settled != ERR_OK;
    if (has_failed) tell_not_cached(blobs, &err);
}

static enum err fetch(struct blobs *blobs, const struct digest *digest, uint64_t bytes,
    struct cache_entry *claimed, struct blob *ret, struct error *err) {
    bool is_kept;
    enum err code = download(blobs, digest, bytes, ret, err);
    if (code == ERR_OK) keep(blobs, digest, ret->bytes, claimed);
    else (void)!cache_settle(blobs->cache, claimed, NULL, &is_kept, err);
    return code;
}

/* How a blob behind HTTP is read, and where its file in the cache is. */
struct way {
    enum err (*fetch)(struct blobs *blobs, const struct digest *digest, uint64_t bytes,
        struct cache_entry *claimed, struct blob *ret, struct error *err);
    enum err (*read)(const struct folder *folder, const struct digest *digest, uint64_t bytes,
        struct blob_memory *memory, struct blob *ret, struct error *err);
};

static const struct way in_memory = {fetch, folder_read};
static const struct way in_parts = {fetch_parts, folder_read_parts};

/* Uses the cached file if it is intact; otherwise, or if it was just removed, fetches the blob
 * again. */
static enum err open_through_cache(struct blobs *blobs, const struct way *way,
    const struct digest *digest, uint64_t bytes, struct blob *ret, struct error *err) {
    for (;;) {
        struct cache_entry *claimed;
        enum err code = cache_claim(blobs->cache, digest, bytes, &claimed, err);
        if (code != ERR_OK) return code;
        if (claimed != NULL) return way->fetch(blobs, digest, bytes, claimed, ret, err);
        code = way->read(cache_folder(blobs->cache), digest, bytes, &blobs->memory, ret, err);
        if (code == ERR_OK || code == ERR_NO_MEMORY) return code;
        cache_forget(blobs->cache, digest);
    }
}

/* ---- in a folder ---- */

static enum err write_file(
    struct blobs *blobs, const struct digest *digest, struct slice payload, struct error *err) {
    struct temp_file file;
    enum err code = temp_file_create(&blobs->folder, digest, &file, err);
    if (code != ERR_OK) return code;
    code = temp_file_write(&file, payload, err);
    if (code == ERR_OK) code = temp_file_commit_durably(&file, err);
    if (code == ERR_OK) blob_memory_note_written(&blobs->memory);
    (code == ERR_OK ? temp_file_close : temp_file_discard)(&file);
    return code;
}

struct sweep {
    const struct folder *folder;
    uint64_t blobs_before_ns, temps_before_ns;
};

static void sweep_file(void *context, const struct folder_file *file) {
    const struct sweep *sweep = context;
    folder_expire(
        sweep->folder, file, file->is_temp ? sweep->temps_before_ns : sweep->blobs_before_ns);
}

static uint64_t hours_before_ns(uint64_t now_unix_s, uint64_t hours) {
    uint64_t age_s = hours * HOUR_S;
    return now_unix_s > age_s ? (now_unix_s - age_s) * 1000000000u : 0;
}

void blobs_sweep(struct blobs *blobs, uint64_t now_unix_s) {
    if (blobs->http != NULL) return;
    struct sweep sweep = {.folder = &blobs->folder,
        .temps_before_ns = hours_before_ns(now_unix_s, 1),
        .blobs_before_ns =
            blobs->max_age_hours == 0 ? 0 : hours_before_ns(now_unix_s, blobs->max_age_hours)};
    folder_visit(&blobs->folder, sweep_file, &sweep);
}

static void run_sweeper(void *context, uint32_t index) {
    struct blobs *blobs = context;
    void *nothing;
    while (!queue_is_closed(blobs->stop)) {
        blobs_sweep(blobs, clock_unix_ms() / 1000);
        (void)queue_pop(blobs->stop, &nothing, 1, SWEEP_INTERVAL_MS);
    }
}

static enum err start_sweeper(struct blobs *blobs, struct error *err) {
    blobs->stop = queue_create(1);
    if (blobs->stop == NULL) return error_no_memory(err, "no memory to remove expired blobs");
    const struct crew_options crew = {
        .name = "sweeper", .count = 1, .run = run_sweeper, .context = blobs};
    return crew_start(&crew, &blobs->sweeper, err);
}

/* ---- both ---- */

enum err blobs_create(const struct blobs_options *options, struct blobs **ret, struct error *err) {
    struct blobs *blobs = calloc(1, sizeof *blobs);
    if (blobs == NULL) return error_no_memory(err, "no memory for the blob store");
    uint64_t held_bytes_max = options->held_bytes_max;
    if (held_bytes_max < options->bytes_max) held_bytes_max = options->bytes_max;
    *blobs = (struct blobs){.bytes_max = options->bytes_max,
        .max_age_hours = options->max_age_hours,
        .memory = {.bytes_max = held_bytes_max},
        .on_not_cached = options->on_not_cached,
        .context = options->context,
        .folder = {.fd = -1}};
    enum err code;
    if (options->url != NULL) {
        const struct http_client_options http = {
            .url = options->url, .setting = "blobs.url", .timeout_ms = options->timeout_ms};
        code = http_client_create(&http, &blobs->http, err);
        if (code == ERR_OK)
            code = cache_create(options->cache_dir, options->cache_bytes, &blobs->cache, err);
    } else {
        code = folder_open(&blobs->folder, "blobs.dir", options->dir, 0777, err);
        if (code == ERR_OK) code = start_sweeper(blobs, err);
    }
    if (code == ERR_OK) *ret = blobs;
    else blobs_destroy(blobs);
    return code;
}

void blobs_destroy(struct blobs *blobs) {
    if (blobs == NULL) return;
    if (blobs->stop != NULL) queue_close(blobs->stop);
    crew_join(&blobs->sweeper);
    queue_destroy(blobs->stop);
    folder_close(&blobs->folder);
    cache_destroy(blobs->cache);
    http_client_destroy(blobs->http);
    free(blobs);
}

static enum err has_no_store(const struct digest *digest, struct error *err) {
    char name[DIGEST_TEXT_SIZE];
    return error_set(err, ERR_BLOB_MISSING, 0,
        "set blobs.dir or blobs.url, or send the data in the message",
        "%s is not in the message, and no blob store is configured", digest_format(digest, name));
}

enum err blob_open(struct blobs *blobs, const struct digest *digest, uint64_t bytes,
    struct blob *ret, struct error *err) {
    INVARIANT(bytes > 0, "a blob that is opened has bytes");
    *ret = (struct blob){0};
    if (blobs == NULL) return has_no_store(digest, err);
    enum err code = check_bytes(blobs, bytes, err);
    if (code != ERR_OK) return code;
    if (blobs->http != NULL) return open_through_cache(blobs, &in_memory, digest, bytes, ret, err);
    code = folder_read(&blobs->folder, digest, bytes, &blobs->memory, ret, err);
    return note_answer(blobs, code, err);
}

enum err blob_open_parts(struct blobs *blobs, const struct digest *digest, uint64_t bytes,
    struct blob *ret, struct error *err) {
    INVARIANT(bytes > 0, "a blob that is opened has bytes");
    *ret = (struct blob){0};
    if (blobs == NULL) return has_no_store(digest, err);
    if (blobs->http != NULL) return open_through_cache(blobs, &in_parts, digest, bytes, ret, err);
    enum err code = folder_read_parts(&blobs->folder, digest, bytes, &blobs->memory, ret, err);
    return note_answer(blobs, code, err);
}

enum err blobs_create_spool(
    struct blobs *blobs, uint64_t bytes, struct spool **ret, struct error *err) {
    const struct folder *folder = blobs->http != NULL ? cache_folder(blobs->cache) : &blobs->folder;
    return spool_create(folder, &blobs->memory, bytes, ret, err);
}

enum err blobs_put_spool(
    struct blobs *blobs, struct spool *spool, struct digest *ret, struct error *err) {
    enum err code = blobs->http != NULL ? spool_send(spool, blobs->http, ret, err)
                                        : spool_store(spool, ret, err);
    if (code == ERR_OK) blob_memory_note_written(&blobs->memory);
    return note_answer(blobs, code, err);
}

enum err blobs_put(
    struct blobs *blobs, const struct digest *digest, struct slice payload, struct error *err) {
    char name[BLOB_NAME_SIZE];
    enum err code = check_bytes(blobs, payload.size, err);
    if (code != ERR_OK) return code;
    if (blobs->http != NULL)
        code = http_put_blob(blobs->http, blob_name(digest, name), payload, err);
    else if (!folder_touch(&blobs->folder, digest, payload.size))
        code = write_file(blobs, digest, payload, err);
    return note_answer(blobs, code, err);
}
