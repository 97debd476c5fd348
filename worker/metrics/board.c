#include "metrics/board.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static enum err map(int fd, int flags, struct board **ret, struct error *err) {
    void *memory = mmap(NULL, sizeof **ret, PROT_READ | PROT_WRITE, flags, fd, 0);
    if (memory == MAP_FAILED)
        return error_set(err, ERR_NO_MEMORY, errno, "give the process more memory",
            "no memory to count: %s", strerror(errno));
    *ret = memory;
    return ERR_OK;
}

static enum err make_shared(int *ret, struct error *err) {
    int fd = memfd_create("gpu-worker-board", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd >= 0 && ftruncate(fd, sizeof(struct board)) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) {
        *ret = fd;
        return ERR_OK;
    }
    int native = errno;
    if (fd >= 0) close(fd);
    return error_set(err, ERR_IO, native,
        "raise the limits on open files and on the size of files (ulimit -n, ulimit -f)",
        "cannot make memory for counts: %s", strerror(native));
}

enum err board_create(struct board **ret, int *fd, struct error *err) {
    if (fd != NULL) *fd = -1;
    if (fd == NULL) return map(-1, MAP_PRIVATE | MAP_ANONYMOUS, ret, err);
    enum err code = make_shared(fd, err);
    if (code != ERR_OK) return code;
    return map(*fd, MAP_SHARED, ret, err);
}

enum err board_map(int fd, struct board **ret, struct error *err) {
    struct stat memory;
    if (fstat(fd, &memory) != 0 || memory.st_size != sizeof(struct board))
        return error_set(err, ERR_CONFIG, 0, "leave --board to the supervisor",
            "descriptor %d is no memory for counts of this version", fd);
    return map(fd, MAP_SHARED, ret, err);
}

void board_destroy(struct board *board) {
    if (board != NULL) munmap(board, sizeof *board);
}
