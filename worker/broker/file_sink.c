#include "broker/file_sink.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "broker/json_line.h"

enum {
    BATCH_RECORDS = 256,
    BATCH_BYTES = 1 << 20 /* large enough that the cost of a system call does not matter */
};

/* Records that wait to be written. Their bytes are not copied. */
struct batch {
    size_t count;
    size_t bytes;
    struct record *records[BATCH_RECORDS];
    struct iovec pieces[BATCH_RECORDS]; /* one for each record */
};

struct output {
    char name[128]; /* for messages */
    int fd;
    uint64_t bytes;       /* written by this process and by those that it continues */
    bool is_pipe;         /* somebody may wait for what it gets */
    bool owns_pieces;     /* the pieces are lines made for the file, not payloads */
    struct error failure; /* the error of every later record; ERR_OK: none */
    struct batch batch;
};

struct file_sink {
    struct sink sink;
    struct output results;
    struct output dead_letters;
    struct file_progress *progress; /* NULL: none is kept */
    bool has_dead_letters;
};

static enum err output_open(struct output *output, const char *path, int mode, struct error *err) {
    bool is_stdout = strcmp(path, "-") == 0;
    snprintf(output->name, sizeof output->name, "%s", is_stdout ? "standard output" : path);
    output->fd =
        is_stdout ? STDOUT_FILENO : open(path, O_WRONLY | O_CREAT | O_CLOEXEC | mode, 0666);
    struct stat file;
    output->is_pipe = output->fd >= 0 && fstat(output->fd, &file) == 0 && S_ISFIFO(file.st_mode);
    if (output->fd >= 0) return ERR_OK;
    return error_set(err, ERR_IO, errno,
        "give a file that can be written, or - for standard output", "opening %s: %s", path,
        strerror(errno));
}

/* Keeps what an earlier process has written and recorded, and removes what it wrote after that. */
static enum err output_cut(struct output *output, uint64_t bytes, struct error *err) {
    off_t size = lseek(output->fd, 0, SEEK_END);
    output->bytes = bytes;
    if (size >= 0 && (uint64_t)size < bytes)
        return error_set(err, ERR_IO, 0, "do not change the file before the run has ended",
            "%s is shorter than the %llu bytes that were written to it", output->name,
            (unsigned long long)bytes);
    if (size >= 0 && ftruncate(output->fd, (off_t)bytes) == 0 &&
        lseek(output->fd, (off_t)bytes, SEEK_SET) == (off_t)bytes)
        return ERR_OK;
    return error_set(err, ERR_IO, errno, "check the disk that the file is on",
        "truncating %s to %llu bytes: %s", output->name, (unsigned long long)bytes,
        strerror(errno));
}

/* Removes what the file had; a pipe has nothing. */
static enum err output_empty(struct output *output, struct error *err) {
    if (output->fd == STDOUT_FILENO || ftruncate(output->fd, 0) == 0 || errno == EINVAL)
        return ERR_OK;
    return error_set(err, ERR_IO, errno, "check the disk that the file is on", "emptying %s: %s",
        output->name, strerror(errno));
}

static void output_close(struct output *output) {
    if (output->fd > STDERR_FILENO) close(output->fd);
}

/* Writes the batch, in as many calls as needed; returns how many bytes were written. */
static size_t write_batch(int fd, const struct batch *batch) {
    struct iovec left[BATCH_RECORDS], *next = left;
    size_t count = batch->count, total = 0;
    memcpy(left, batch->pieces, count * sizeof left[0]);
    while (total < batch->bytes) {
        ssize_t written = writev(fd, next, (int)count);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) break;
        total += (size_t)written;
        size_t rest = (size_t)written;
        for (; count > 0 && rest >= next->iov_len; count--, next++) rest -= next->iov_len;
        if (count > 0) {
            next->iov_base = (uint8_t *)next->iov_base + rest;
            next->iov_len -= rest;
        }
    }
    return total;
}

/*
 * Removes the last `bytes`, so that the file ends with a whole record. This does not work for
 * pipes.
 */
static void cut_back(int fd, size_t bytes) {
    off_t end = lseek(fd, 0, SEEK_CUR);
    if (end < (off_t)bytes || ftruncate(fd, end - (off_t)bytes) != 0) return;
    lseek(fd, -(off_t)bytes, SEEK_CUR);
}

/*
 * How many of the batch's records are whole within its first `bytes`, and how many bytes those
 * have.
 */
static size_t whole_records(const struct batch *batch, size_t bytes, size_t *whole_bytes) {
    size_t count = 0, total = 0;
    while (count < batch->count && bytes - total >= batch->pieces[count].iov_len)
        total += batch->pieces[count++].iov_len;
    *whole_bytes = total;
    return count;
}

static void settle(struct record *record, const struct error *failure) {
    record->on_settled(record, failure->code, failure->code == ERR_OK ? NULL : failure);
}

static void output_flush(struct output *output) {
    static const struct error none = {.code = ERR_OK};
    /* on_settled may send more records, so the batch must be empty by then */
    struct batch batch = output->batch;
    output->batch.count = 0;
    output->batch.bytes = 0;

    size_t written = write_batch(output->fd, &batch);
    size_t whole_bytes, whole_count = batch.count;
    if (written < batch.bytes) {
        error_set(&output->failure, ERR_IO, errno, "make room, or give another file",
            "writing %s: %s", output->name, strerror(errno));
        whole_count = whole_records(&batch, written, &whole_bytes);
        if (written > whole_bytes) cut_back(output->fd, written - whole_bytes);
    }
    output->bytes += written;
    for (size_t i = 0; i < batch.count; i++) {
        if (output->owns_pieces) free(batch.pieces[i].iov_base);
        settle(batch.records[i], i < whole_count ? &none : &output->failure);
    }
}

static void output_add(struct output *output, struct record *record, struct slice bytes) {
    struct batch *batch = &output->batch;
    batch->records[batch->count] = record;
    batch->pieces[batch->count] =
        (struct iovec){.iov_base = (void *)(uintptr_t)bytes.data, .iov_len = bytes.size};
    batch->count++;
    batch->bytes += bytes.size;
    if (batch->count == BATCH_RECORDS || batch->bytes >= BATCH_BYTES) output_flush(output);
}

static void send_message(struct file_sink *files, struct record *record) {
    if (files->results.failure.code != ERR_OK) settle(record, &files->results.failure);
    else output_add(&files->results, record, record->payload);
}

static void send_dead_letter(struct file_sink *files, struct record *record) {
    struct output *output = &files->dead_letters;
    if (!files->has_dead_letters) {
        record->on_settled(record, ERR_OK, NULL);
        return;
    }
    struct slice line = slice_of(NULL, 0);
    if (output->failure.code == ERR_OK) {
        line = json_line_of(record);
        if (line.data == NULL)
            error_set(&output->failure, ERR_IO, ENOMEM, "lower limits.bytes_in_flight",
                "no memory to write a dead letter of %zu bytes", record->payload.size);
    }
    if (line.data == NULL) settle(record, &output->failure);
    else output_add(output, record, line);
}

static void file_sink_send(struct sink *sink, struct record *record) {
    struct file_sink *files = (struct file_sink *)sink;
    if (record->route == ROUTE_DEAD_LETTER) send_dead_letter(files, record);
    else send_message(files, record);
}

/* A pipe that poll() calls writable has room for PIPE_BUF bytes. */
static bool file_sink_takes_at_once(struct sink *sink, const struct record *record) {
    const struct output *results = &((struct file_sink *)sink)->results;
    struct pollfd room = {.fd = results->fd, .events = POLLOUT};
    return results->is_pipe && record->route != ROUTE_DEAD_LETTER &&
           record->payload.size <= PIPE_BUF && poll(&room, 1, 0) == 1 && room.revents == POLLOUT;
}

/* Nothing is ever under way, so there is nothing to wait for. */
static void file_sink_serve(struct sink *sink, int timeout_ms) {
    struct file_sink *files = (struct file_sink *)sink;
    /* settling a record may send another */
    while (files->results.batch.count > 0 || files->dead_letters.batch.count > 0) {
        output_flush(&files->results);
        output_flush(&files->dead_letters);
    }
}

static enum err file_sink_flush(struct sink *sink, int timeout_ms, struct error *err) {
    file_sink_serve(sink, timeout_ms);
    return ERR_OK;
}

static void drop_batch(struct output *output) {
    error_set(
        &output->failure, ERR_BROKER, 0, "", "%s was closed before this was written", output->name);
    struct batch batch = output->batch;
    output->batch.count = 0;
    for (size_t i = 0; i < batch.count; i++) {
        if (output->owns_pieces) free(batch.pieces[i].iov_base);
        settle(batch.records[i], &output->failure);
    }
}

static void file_sink_destroy(struct sink *sink) {
    struct file_sink *files = (struct file_sink *)sink;
    drop_batch(&files->results);
    drop_batch(&files->dead_letters);
    output_close(&files->results);
    output_close(&files->dead_letters);
    free(files);
}

static void file_sink_settled(struct sink *sink) {
    struct file_sink *files = (struct file_sink *)sink;
    const struct file_lengths lengths = {
        .results = files->results.bytes, .dead_letters = files->dead_letters.bytes};
    if (files->progress != NULL) file_progress_keep(files->progress, &lengths);
}

/*
 * Opens both files, empty or as long as the recorded progress. Nothing is removed before both can
 * be written.
 */
static enum err open_outputs(struct file_sink *files, const char *results_path,
    const char *dead_letters_path, struct error *err) {
    struct file_lengths lengths;
    bool is_resumed =
        files->progress != NULL && file_progress_is_resumed(files->progress, &lengths);
    enum err code = output_open(&files->results, results_path, 0, err);
    if (code == ERR_OK && files->has_dead_letters)
        code = output_open(&files->dead_letters, dead_letters_path, 0, err);
    if (code != ERR_OK) return code;
    code = is_resumed ? output_cut(&files->results, lengths.results, err)
                      : output_empty(&files->results, err);
    if (code != ERR_OK || !files->has_dead_letters) return code;
    return is_resumed ? output_cut(&files->dead_letters, lengths.dead_letters, err)
                      : output_empty(&files->dead_letters, err);
}

static struct file_sink *files_create(const char *path, struct error *err) {
    static const struct sink_operations operations = {.send = file_sink_send,
        .takes_at_once = file_sink_takes_at_once,
        .serve = file_sink_serve,
        .flush = file_sink_flush,
        .settled = file_sink_settled,
        .destroy = file_sink_destroy};
    struct file_sink *files = calloc(1, sizeof *files);
    if (files == NULL) {
        error_no_memory(err, "no memory to open %s", path);
        return NULL;
    }
    files->sink.operations = &operations;
    files->dead_letters.owns_pieces = true;
    return files;
}

/* Returns the file sink or, on errors, destroys it. */
static enum err finish_create(struct file_sink *files, enum err code, struct sink **ret) {
    if (code == ERR_OK) *ret = &files->sink;
    else file_sink_destroy(&files->sink);
    return code;
}

enum err file_sink_create(const char *results_path, const char *dead_letters_path,
    struct file_progress *progress, struct sink **ret, struct error *err) {
    struct file_sink *files = files_create(results_path, err);
    if (files == NULL) return err->code;
    files->has_dead_letters = dead_letters_path != NULL;
    files->progress = progress;
    enum err code = open_outputs(files, results_path, dead_letters_path, err);
    if (code == ERR_OK)
        file_sink_settled(&files->sink); /* no later process starts the files anew */
    return finish_create(files, code, ret);
}

enum err file_sink_append(const char *path, struct sink **ret, struct error *err) {
    struct file_sink *files = files_create(path, err);
    if (files == NULL) return err->code;
    return finish_create(files, output_open(&files->results, path, O_APPEND, err), ret);
}
