#include "broker/file_readers.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/crew.h"
#include "base/file.h"
#include "base/pulse.h"

enum {
    HELPERS = 3, /* beside the caller; eight threads read a quarter faster than four */
    PART_BYTES = 1 << 20
};

struct file_readers {
    struct crew *crew;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t begun, ended;
    bool is_over;
    int fd;
    uint8_t *to;
    uint64_t offset;
    size_t next;    /* where the next part begins */
    size_t end;     /* no part begins there or behind it; from a part that came short on, its end */
    int native;     /* why it came short: errno, or 0 at the end of the file */
    size_t running; /* parts */
};

/* Reads parts until none is left. Called and left with the lock. */
static void read_parts(struct file_readers *readers) {
    while (readers->next < readers->end) {
        size_t at = readers->next, size = readers->end - at;
        if (size > PART_BYTES) size = PART_BYTES;
        readers->next += size;
        readers->running++;
        pthread_mutex_unlock(&readers->lock);
        size_t count;
        bool is_read =
            file_read_at(readers->fd, readers->offset + at, readers->to + at, size, &count);
        int native = is_read ? 0 : errno;
        pthread_mutex_lock(&readers->lock);
        if (count < size && at + count < readers->end) {
            readers->end = at + count;
            readers->native = native;
        }
        if (--readers->running == 0) pthread_cond_signal(&readers->ended);
    }
}

static void run_helper(void *context, uint32_t index) {
    struct file_readers *readers = context;
    pthread_mutex_lock(&readers->lock);
    while (!readers->is_over) {
        pulse_outside();
        read_parts(readers);
        pulse_idle();
        pthread_cond_wait(&readers->begun, &readers->lock);
    }
    pthread_mutex_unlock(&readers->lock);
}

enum err file_readers_create(struct file_readers **ret, struct error *err) {
    struct file_readers *readers = calloc(1, sizeof *readers);
    if (readers == NULL) return error_no_memory(err, "no memory for threads that read files");
    pthread_mutex_init(&readers->lock, NULL);
    pthread_cond_init(&readers->begun, NULL);
    pthread_cond_init(&readers->ended, NULL);
    const struct crew_options crew = {
        .name = "reader", .count = HELPERS, .run = run_helper, .context = readers};
    enum err code = crew_start(&crew, &readers->crew, err);
    if (code == ERR_OK) *ret = readers;
    else file_readers_destroy(readers);
    return code;
}

ssize_t file_readers_read(
    struct file_readers *readers, int fd, void *to, size_t size, uint64_t offset) {
    pthread_mutex_lock(&readers->lock);
    readers->fd = fd;
    readers->to = to;
    readers->offset = offset;
    readers->next = 0;
    readers->end = size;
    readers->native = 0;
    pthread_cond_broadcast(&readers->begun);
    read_parts(readers);
    while (readers->running > 0) pthread_cond_wait(&readers->ended, &readers->lock);
    ssize_t ret = (ssize_t)readers->end;
    int native = readers->native;
    pthread_mutex_unlock(&readers->lock);
    if (ret > 0 || native == 0) return ret;
    errno = native;
    return -1;
}

void file_readers_destroy(struct file_readers *readers) {
    if (readers == NULL) return;
    pthread_mutex_lock(&readers->lock);
    readers->is_over = true;
    pthread_cond_broadcast(&readers->begun);
    pthread_mutex_unlock(&readers->lock);
    crew_join(&readers->crew);
    pthread_cond_destroy(&readers->ended);
    pthread_cond_destroy(&readers->begun);
    pthread_mutex_destroy(&readers->lock);
    free(readers);
}
