/* Preloaded, it makes calls hang while the file that STALL_WHILE names exists: reads and writes of
 * files whose path has STALL_PATH in it, as a file system does whose server is gone, or, where that
 * is "control", what reads the control topic, as a client library with a mistake in it does. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static const char *stalled_path(void) {
    const char *mark = getenv("STALL_PATH"), *flag = getenv("STALL_WHILE");
    return flag != NULL && access(flag, F_OK) == 0 ? mark : NULL;
}

static int hangs(int fd) {
    const char *mark = stalled_path();
    char link[64], path[4096];
    if (mark == NULL) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0) return 0;
    path[size] = 0;
    return strstr(path, mark) != NULL;
}

ssize_t read(int fd, void *bytes, size_t size) {
    static ssize_t (*next)(int, void *, size_t);
    if (next == NULL) *(void **)&next = dlsym(RTLD_NEXT, "read");
    while (hangs(fd)) sleep(1000);
    return next(fd, bytes, size);
}

ssize_t pread(int fd, void *bytes, size_t size, off_t offset) {
    static ssize_t (*next)(int, void *, size_t, off_t);
    if (next == NULL) *(void **)&next = dlsym(RTLD_NEXT, "pread");
    while (hangs(fd)) sleep(1000);
    return next(fd, bytes, size, offset);
}

ssize_t writev(int fd, const struct iovec *pieces, int count) {
    static ssize_t (*next)(int, const struct iovec *, int);
    if (next == NULL) *(void **)&next = dlsym(RTLD_NEXT, "writev");
    while (hangs(fd)) sleep(1000);
    return next(fd, pieces, count);
}

void *rd_kafka_consumer_poll(void *client, int timeout_ms);

void *rd_kafka_consumer_poll(void *client, int timeout_ms) {
    static void *(*next)(void *, int);
    if (next == NULL) *(void **)&next = dlsym(RTLD_NEXT, "rd_kafka_consumer_poll");
    for (;;) {
        const char *mark = stalled_path();
        if (mark == NULL || strcmp(mark, "control") != 0 || gettid() == getpid())
            return next(client, timeout_ms); /* jobs are read by the first thread */
        sleep(1000);
    }
}
