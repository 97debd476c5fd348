#include "broker/file_source.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/invariant.h"
#include "base/wire.h"
#include "broker/file_readers.h"

enum {
    READ_BYTES = 1 << 20,
    SHARED_BYTES = 2 << 20,    /* several threads read so much */
    ROOM_BYTES_MIN = 64 << 10, /* a read that brings less costs more than it is worth */
    MORE_BYTES_MS = 10         /* what a writer in full flow gets to finish its message */
};

/* Bytes that were read. Messages in it are lent, so that it lives until the last of them is kept.
 */
struct chunk {
    /* How many messages are lent, once the source has left the chunk; until then only those that
     * were given back count, below zero. So a loan costs one change of it, not two. */
    atomic_int_fast64_t lent;
    uint8_t bytes[];
};

struct file_source {
    struct source source;
    char *topic;
    struct file_progress *progress; /* NULL: none is kept */
    int fd;
    bool is_paused;
    bool is_at_end; /* read() has said so; there may be unread bytes */
    int64_t next_offset;
    uint64_t start_byte;  /* of the stream, where the first unread byte stands */
    struct error failure; /* why the end came early; ERR_OK: it did not */
    size_t start, end;    /* unread bytes of the chunk */
    size_t cut_bytes;     /* unread bytes that were scanned and found to be a cut message */
    size_t least_bytes;   /* what that message has, as far as they say */
    size_t message_bytes_max, capacity;
    struct chunk *chunk;
    int_fast64_t lent;            /* messages of the chunk, so far */
    struct file_readers *readers; /* NULL: not needed yet */
};

static struct chunk *chunk_create(size_t capacity) {
    struct chunk *chunk = malloc(sizeof *chunk + capacity);
    if (chunk != NULL) atomic_init(&chunk->lent, 0);
    return chunk;
}

static void give_back(void *lender) {
    struct chunk *chunk = lender;
    /* acq_rel: pairs with itself and leave_chunk(); who frees or moves the bytes comes after all
     * who read them */
    if (atomic_fetch_sub_explicit(&chunk->lent, 1, memory_order_acq_rel) == 1) free(chunk);
}

/* The last loan ends it, if there are any. */
static void leave_chunk(struct file_source *file) {
    /* acq_rel: pairs with give_back(), as there */
    if (atomic_fetch_add_explicit(&file->chunk->lent, file->lent, memory_order_acq_rel) ==
        -file->lent)
        free(file->chunk);
    file->lent = 0;
}

static bool is_lent(struct file_source *file) {
    /* acquire: pairs with give_back(), as there */
    return atomic_load_explicit(&file->chunk->lent, memory_order_acquire) != -file->lent;
}

static size_t unread_bytes(const struct file_source *file) {
    return file->end - file->start;
}

static const uint8_t *unread(const struct file_source *file) {
    return file->chunk->bytes + file->start;
}

/* Moves the unread bytes to the beginning of a chunk once much before them was read, or little room
 * is behind them: of another chunk, while this one is lent. Failures go to `failure`. */
static bool make_room(struct file_source *file) {
    if (file->start < READ_BYTES && file->capacity - file->end >= ROOM_BYTES_MIN) return true;
    struct chunk *chunk = file->chunk;
    if (is_lent(file)) chunk = chunk_create(file->capacity);
    if (chunk == NULL) {
        error_set(&file->failure, ERR_NO_MEMORY, 0, "lower limits.bytes_in_flight",
            "no memory to read %s", file->topic);
        return false;
    }
    memmove(chunk->bytes, unread(file), unread_bytes(file));
    if (chunk != file->chunk) leave_chunk(file);
    file->chunk = chunk;
    file->end -= file->start;
    file->start = 0;
    return true;
}

/* As pread(), at the offset of the file, which it moves. Failures to begin go to `failure`. */
static ssize_t read_together(struct file_source *file, uint8_t *to, size_t size, off_t offset) {
    if (file->readers == NULL && file_readers_create(&file->readers, &file->failure) != ERR_OK)
        return 0;
    ssize_t count = file_readers_read(file->readers, file->fd, to, size, (uint64_t)offset);
    return count > 0 && lseek(file->fd, offset + count, SEEK_SET) < 0 ? -1 : count;
}

/* As read(), with several threads where much is missing of a message in a file. */
static ssize_t read_bytes(struct file_source *file, uint8_t *to, size_t room) {
    size_t unread = unread_bytes(file);
    size_t missing = file->least_bytes > unread ? file->least_bytes - unread : 0;
    size_t size = missing > READ_BYTES ? missing : READ_BYTES;
    if (size > room) size = room;
    off_t offset = size >= SHARED_BYTES ? lseek(file->fd, 0, SEEK_CUR) : -1;
    return offset < 0 ? read(file->fd, to, size) : read_together(file, to, size, offset);
}

/* Waits for bytes and reads once; true where that changed something. Failures go to `failure`. */
static bool read_once(struct file_source *file, int timeout_ms) {
    struct pollfd waiting = {.fd = file->fd, .events = POLLIN};
    if (poll(&waiting, 1, timeout_ms) <= 0 || !make_room(file)) return false;

    ssize_t count = read_bytes(file, file->chunk->bytes + file->end, file->capacity - file->end);
    if (file->failure.code != ERR_OK) return false;
    if (count < 0) {
        if (errno != EINTR && errno != EAGAIN)
            error_set(&file->failure, ERR_IO, errno, "check the file and the disk it is on",
                "reading %s at byte %llu: %s", file->topic,
                (unsigned long long)(file->start_byte + file->end), strerror(errno));
        return false;
    }
    file->is_at_end = count == 0;
    file->end += (size_t)count;
    return true;
}

/*
 * Scanning a cut message again after every small read would make its cost quadratic. So its bytes
 * must have grown by an eighth first, and to what it has at least, unless no more of them come.
 * With more than that, much could be read that is behind a large message, and stays in memory with
 * it.
 */
static bool is_worth_scanning(const struct file_source *file) {
    size_t bytes = unread_bytes(file), enough = file->cut_bytes + file->cut_bytes / 8;
    if (enough < file->least_bytes) enough = file->least_bytes;
    return bytes >= enough || bytes >= file->message_bytes_max || file->is_at_end;
}

/* Reads until a scan is worth it, waiting `timeout_ms` for the first bytes and a moment for more.
 */
static void fill(struct file_source *file, int timeout_ms) {
    while (read_once(file, timeout_ms) && !is_worth_scanning(file)) timeout_ms = MORE_BYTES_MS;
}

static bool is_answered(const struct file_source *file) {
    return file->progress != NULL && file_progress_is_answered(file->progress, file->next_offset);
}

/* False where it would be too far ahead of an unfinished one. */
static bool may_begin(const struct file_source *file) {
    return file->progress == NULL || file_progress_may_begin(file->progress, file->next_offset);
}

static void pass(struct file_source *file, size_t size) {
    file->next_offset++;
    file->start += size;
    file->start_byte += size;
    file->cut_bytes = file->least_bytes = 0;
}

/* *ret stays NULL where an earlier process has answered the message. */
static enum err take(
    struct file_source *file, size_t size, struct delivery **ret, struct error *err) {
    struct delivery message = {
        .position = {.topic = file->topic, .partition = 0, .offset = file->next_offset},
        .received_ns = clock_ns(),
        .payload = slice_of(unread(file), size)};
    if (!is_answered(file)) {
        /* nothing more is read into a chunk behind a message that is as large as a read */
        const struct loan loan = {.end = give_back,
            .lender = file->chunk,
            .holds_bytes = size >= READ_BYTES ? file->end : SIZE_MAX};
        *ret = delivery_lend(&message, loan);
        if (*ret == NULL)
            return error_set(err, ERR_NO_MEMORY, 0, "lower limits.bytes_in_flight",
                "no memory for a message of %zu bytes", size);
        file->lent++;
    }
    pass(file, size);
    return ERR_OK;
}

/* Boundaries are lost: hands out what is unread, as far as a message may reach, and ends there. */
static enum err take_rest(
    struct file_source *file, const char *reason, struct delivery **ret, struct error *err) {
    long long index = (long long)file->next_offset;
    unsigned long long byte = (unsigned long long)file->start_byte;
    size_t bytes = unread_bytes(file);
    if (bytes > file->message_bytes_max) bytes = file->message_bytes_max;
    enum err code = take(file, bytes, ret, err);
    if (code != ERR_OK) return code;
    error_set(&file->failure, ERR_BAD_MESSAGE, 0,
        "write whole msgpack messages one after the other, none larger than limits.message_bytes",
        "%s: message %lld, which begins at byte %llu, %s; what follows it cannot be read",
        file->topic, index, byte, reason);
    return ERR_OK;
}

/* Takes the message that the unread bytes begin with, if it is whole or never will be. */
static enum err take_first(struct file_source *file, struct delivery **ret, struct error *err) {
    size_t bytes = unread_bytes(file);
    if (bytes == 0 || (bytes == file->cut_bytes && !file->is_at_end)) return ERR_OK;

    size_t size;
    struct error why;
    switch (wire_scan(slice_of(unread(file), bytes), &size, &why)) {
    case WIRE_COMPLETE:
        if (size > file->message_bytes_max) return take_rest(file, "is too large", ret, err);
        return take(file, size, ret, err);
    case WIRE_BROKEN: return take_rest(file, why.message, ret, err);
    case WIRE_CUT: break;
    }
    file->cut_bytes = bytes;
    file->least_bytes = size;
    if (file->is_at_end) return take_rest(file, "ends early", ret, err);
    if (bytes >= file->message_bytes_max) return take_rest(file, "is too large", ret, err);
    return ERR_OK;
}

/* The first unread message without an answer. */
static enum err take_unread(struct file_source *file, struct delivery **ret, struct error *err) {
    int64_t before;
    enum err code;
    do {
        before = file->next_offset;
        code = take_first(file, ret, err);
    } while (code == ERR_OK && *ret == NULL && file->next_offset != before &&
             file->failure.code == ERR_OK);
    return code;
}

static enum err file_source_poll(
    struct source *source, int timeout_ms, struct delivery **ret, bool *at_end, struct error *err) {
    struct file_source *file = (struct file_source *)source;
    *ret = NULL;
    *at_end = false;
    if (file->is_paused || !may_begin(file)) {
        poll(NULL, 0, timeout_ms);
        return ERR_OK;
    }
    if (file->failure.code == ERR_OK) {
        enum err code = take_unread(file, ret, err);
        if (code != ERR_OK || *ret != NULL) return code;
        if (!file->is_at_end) {
            fill(file, timeout_ms);
            code = take_unread(file, ret, err);
            if (code != ERR_OK || *ret != NULL) return code;
        }
    }
    *at_end = file->is_at_end || file->failure.code != ERR_OK;
    return ERR_OK;
}

static void file_source_pause(struct source *source, bool paused) {
    ((struct file_source *)source)->is_paused = paused;
}

static void file_source_finish(struct source *source, const struct position *position) {
    struct file_source *file = (struct file_source *)source;
    if (file->progress != NULL) file_progress_finish(file->progress, position->offset);
}

/* Only now is it told why the end came early: until then, what came before it was answered. */
static enum err file_source_close(struct source *source, int timeout_ms, struct error *err) {
    const struct file_source *file = (const struct file_source *)source;
    if (file->failure.code != ERR_OK) *err = file->failure;
    return file->failure.code;
}

static void file_source_destroy(struct source *source) {
    struct file_source *file = (struct file_source *)source;
    file_readers_destroy(file->readers);
    if (file->fd > STDIN_FILENO) close(file->fd);
    if (file->chunk != NULL) leave_chunk(file);
    free(file->topic);
    free(file);
}

enum err file_source_create(const char *path, size_t message_bytes_max,
    struct file_progress *progress, struct source **ret, struct error *err) {
    static const struct source_operations operations = {.poll = file_source_poll,
        .pause = file_source_pause,
        .finish = file_source_finish,
        .close = file_source_close,
        .destroy = file_source_destroy};
    INVARIANT(message_bytes_max > 0, "a message may have bytes");
    bool is_stdin = strcmp(path, "-") == 0;
    struct file_source *file = calloc(1, sizeof *file);
    if (file == NULL) goto no_memory;
    file->source.operations = &operations;
    file->message_bytes_max = message_bytes_max;
    file->capacity = message_bytes_max + READ_BYTES;
    file->chunk = chunk_create(file->capacity);
    if (file->chunk == NULL) goto no_memory;
    file->progress = progress;
    file->fd = STDIN_FILENO;
    file->topic = strdup(is_stdin ? "stdin" : path);
    if (file->topic == NULL) goto no_memory;

    if (!is_stdin) file->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (file->fd < 0) {
        error_set(err, ERR_IO, errno, "give a file that can be read, or - for standard input",
            "opening %s: %s", path, strerror(errno));
        file_source_destroy(&file->source);
        return ERR_IO;
    }
    *ret = &file->source;
    return ERR_OK;

no_memory:
    if (file != NULL) file_source_destroy(&file->source);
    return error_set(err, ERR_NO_MEMORY, 0, "lower limits.message_bytes",
        "no memory to read messages of up to %zu bytes", message_bytes_max);
}
