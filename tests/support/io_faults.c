#include "support/io_faults.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { FD_PATH_SIZE = 32 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool is_armed;   /* ever */
static struct io_faults armed; /* under the lock */
static const char *while_file; /* NULL: always */
static atomic_uint_fast64_t seen;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ---- what is armed ---- */

void io_faults_arm(const struct io_faults *faults) {
    /* relaxed: alone. The lock would order the calls of threads, and hide races from a sanitizer in
     * tests that arm nothing. */
    atomic_store_explicit(&is_armed, true, memory_order_relaxed);
    pthread_mutex_lock(&lock);
    armed = faults != NULL ? *faults : (struct io_faults){0};
    pthread_mutex_unlock(&lock);
    atomic_store(&seen, 0);
}

uint64_t io_faults_seen(void) {
    return atomic_load(&seen);
}

static int error_of(const char *name) {
    static const struct {
        const char *name;
        int error;
    } errors[] = {{"ENOSPC", ENOSPC}, {"EIO", EIO}, {"EACCES", EACCES}, {"CUT", IO_FAULT_CUT},
        {"SHORT", IO_FAULT_SHORT}};
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (name != NULL && strcmp(errors[i].name, name) == 0) return errors[i].error;
    fprintf(stderr, "io_faults: IO_FAULTS_ERROR is not ENOSPC, EIO, EACCES, CUT or SHORT\n");
    abort();
}

static unsigned calls_of(const char *list) {
    static const char *const names[] = {
#define X(name) #name,
        IO_FAULTS_NAMES(X)
#undef X
    };
    unsigned calls = 0;
    if (list == NULL) return IO_CALLS_ALL;
    for (unsigned i = 0; i < IO_CALL_COUNT; i++)
        if (strcasestr(list, names[i]) != NULL) calls |= 1u << i;
    return calls;
}

static void read_environment(void) {
    const char *folder = getenv("IO_FAULTS_FOLDER"), *nth = getenv("IO_FAULTS_NTH");
    if (folder == NULL) return;
    const struct io_faults told = {.folder = folder,
        .calls = calls_of(getenv("IO_FAULTS_CALLS")),
        .nth = nth != NULL ? strtoull(nth, NULL, 10) : 1,
        .is_once = getenv("IO_FAULTS_ONCE") != NULL,
        .error = error_of(getenv("IO_FAULTS_ERROR"))};
    while_file = getenv("IO_FAULTS_WHILE");
    pthread_mutex_lock(&lock);
    if (armed.folder == NULL) armed = told;
    pthread_mutex_unlock(&lock);
    atomic_store_explicit(&is_armed, true, memory_order_relaxed); /* as in io_faults_arm() */
}

static struct io_faults current(void) {
    pthread_once(&once, read_environment);
    if (!atomic_load_explicit(&is_armed, memory_order_relaxed)) return (struct io_faults){0};
    pthread_mutex_lock(&lock);
    struct io_faults ret = armed;
    pthread_mutex_unlock(&lock);
    return ret;
}

/* ---- whether a call fails ---- */

static bool is_below(const char *folder, const char *path) {
    size_t size = strlen(folder);
    return strncmp(path, folder, size) == 0 && (path[size] == '/' || path[size] == 0);
}

static bool path_of(int fd, char path[static PATH_MAX]) {
    char link[FD_PATH_SIZE];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, PATH_MAX - 1);
    path[size > 0 ? size : 0] = 0;
    return size > 0;
}

static bool is_file_below(const char *folder, int fd) {
    char path[PATH_MAX];
    return path_of(fd, path) && is_below(folder, path);
}

static bool is_name_below(const char *folder, int start, const char *name) {
    if (name[0] == '/' || start == AT_FDCWD) return is_below(folder, name);
    return is_file_below(folder, start);
}

/* The fault of this call, with errno; 0: none. */
static int fault_of(const struct io_faults *faults, enum io_call call, bool is_ours) {
    if (!is_ours || (faults->calls & 1u << call) == 0) return 0;
    bool can_cut = call == IO_CALL_READ || call == IO_CALL_WRITE;
    if (faults->error < 0 && !can_cut) return 0;
    if (while_file != NULL && access(while_file, F_OK) != 0) return 0;
    uint64_t number = atomic_fetch_add(&seen, 1) + 1;
    if (number < faults->nth || (faults->is_once && number > faults->nth)) return 0;
    if (faults->error > 0) errno = faults->error;
    return faults->error;
}

static int fault_of_file(enum io_call call, int fd) {
    const struct io_faults faults = current();
    if (faults.folder == NULL) return 0;
    int before = errno;
    bool is_ours = is_file_below(faults.folder, fd);
    errno = before;
    return fault_of(&faults, call, is_ours);
}

static int fault_of_name(enum io_call call, int folder, const char *name) {
    const struct io_faults faults = current();
    if (faults.folder == NULL) return 0;
    int before = errno;
    bool is_ours = is_name_below(faults.folder, folder, name);
    errno = before;
    return fault_of(&faults, call, is_ours);
}

/* ---- the calls ---- */

/* The C library's own function of the name. */
#define REAL(function) ((__typeof__(&function))dlsym(RTLD_NEXT, #function))

static mode_t mode_of(int flags, va_list args) {
    return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(args, mode_t) : 0;
}

#define OPEN(function)                                                                             \
    int function(const char *name, int flags, ...) {                                               \
        va_list args;                                                                              \
        va_start(args, flags);                                                                     \
        mode_t mode = mode_of(flags, args);                                                        \
        va_end(args);                                                                              \
        if (fault_of_name(IO_CALL_OPEN, AT_FDCWD, name) != 0) return -1;                           \
        return REAL(function)(name, flags, mode);                                                  \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(function)                                                                           \
    int function(int folder, const char *name, int flags, ...) {                                   \
        va_list args;                                                                              \
        va_start(args, flags);                                                                     \
        mode_t mode = mode_of(flags, args);                                                        \
        va_end(args);                                                                              \
        if (fault_of_name(IO_CALL_OPEN, folder, name) != 0) return -1;                             \
        return REAL(function)(folder, name, flags, mode);                                          \
    }
OPENAT(openat)
OPENAT(openat64)

/* What is left of the bytes with such a fault. */
static size_t half(int fault, size_t size) {
    return fault < 0 && size > 1 ? size / 2 : size;
}

ssize_t read(int fd, void *to, size_t size) {
    int fault = fault_of_file(IO_CALL_READ, fd);
    if (fault == IO_FAULT_CUT || fault > 0) return fault > 0 ? -1 : 0;
    return REAL(read)(fd, to, half(fault, size));
}

#define PREAD(function)                                                                            \
    ssize_t function(int fd, void *to, size_t size, off_t offset) {                                \
        int fault = fault_of_file(IO_CALL_READ, fd);                                               \
        if (fault == IO_FAULT_CUT || fault > 0) return fault > 0 ? -1 : 0;                         \
        return REAL(function)(fd, to, half(fault, size), offset);                                  \
    }
PREAD(pread)
PREAD(pread64)

ssize_t write(int fd, const void *from, size_t size) {
    int fault = fault_of_file(IO_CALL_WRITE, fd);
    if (fault > 0) return -1;
    return REAL(write)(fd, from, half(fault, size));
}

ssize_t writev(int fd, const struct iovec *pieces, int count) {
    int fault = fault_of_file(IO_CALL_WRITE, fd);
    if (fault > 0) return -1;
    if (fault < 0 && count > 0)
        return REAL(write)(fd, pieces[0].iov_base, half(fault, pieces[0].iov_len));
    return REAL(writev)(fd, pieces, count);
}

#define PWRITE(function)                                                                           \
    ssize_t function(int fd, const void *from, size_t size, off_t offset) {                        \
        int fault = fault_of_file(IO_CALL_WRITE, fd);                                              \
        if (fault > 0) return -1;                                                                  \
        return REAL(function)(fd, from, half(fault, size), offset);                                \
    }
PWRITE(pwrite)
PWRITE(pwrite64)

#define SYNC(function)                                                                             \
    int function(int fd) {                                                                         \
        return fault_of_file(IO_CALL_SYNC, fd) != 0 ? -1 : REAL(function)(fd);                     \
    }
SYNC(fsync)
SYNC(fdatasync)

int rename(const char *from, const char *to) {
    return fault_of_name(IO_CALL_RENAME, AT_FDCWD, to) != 0 ? -1 : REAL(rename)(from, to);
}

int renameat(int from_folder, const char *from, int to_folder, const char *to) {
    if (fault_of_name(IO_CALL_RENAME, to_folder, to) != 0) return -1;
    return REAL(renameat)(from_folder, from, to_folder, to);
}

#define TRUNCATE(function)                                                                         \
    int function(int fd, off_t bytes) {                                                            \
        return fault_of_file(IO_CALL_ALLOCATE, fd) != 0 ? -1 : REAL(function)(fd, bytes);          \
    }
TRUNCATE(ftruncate)
TRUNCATE(ftruncate64)

/* Unlike others, this function returns its error and leaves errno alone. */
#define ALLOCATE(function)                                                                         \
    int function(int fd, off_t offset, off_t bytes) {                                              \
        int fault = fault_of_file(IO_CALL_ALLOCATE, fd);                                           \
        return fault != 0 ? fault : REAL(function)(fd, offset, bytes);                             \
    }
ALLOCATE(posix_fallocate)
ALLOCATE(posix_fallocate64)

#define FALLOCATE(function)                                                                        \
    int function(int fd, int mode, off_t offset, off_t bytes) {                                    \
        if (fault_of_file(IO_CALL_ALLOCATE, fd) != 0) return -1;                                   \
        return REAL(function)(fd, mode, offset, bytes);                                            \
    }
FALLOCATE(fallocate)
FALLOCATE(fallocate64)

int mkdir(const char *name, mode_t mode) {
    return fault_of_name(IO_CALL_MKDIR, AT_FDCWD, name) != 0 ? -1 : REAL(mkdir)(name, mode);
}

int mkdirat(int folder, const char *name, mode_t mode) {
    if (fault_of_name(IO_CALL_MKDIR, folder, name) != 0) return -1;
    return REAL(mkdirat)(folder, name, mode);
}
