/* Preloaded, it makes reads of files whose path has STALL_PATH in it hang while the file that
 * STALL_WHILE names exists, as a file system does whose server is gone. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int hangs(int fd) {
    const char *mark = getenv("STALL_PATH"), *flag = getenv("STALL_WHILE");
    char link[64], path[4096];
    if (mark == NULL || flag == NULL || access(flag, F_OK) != 0) return 0;
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
