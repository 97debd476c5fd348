#include "cli/quiet.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/exit.h"
#include "base/file.h"
#include "process/child.h"

enum { FOLDERS_OPEN = 8, LOG_BYTES_MAX = 1 << 20 };

static enum err fail(struct error *err, const char *path) {
    return error_set(err, ERR_IO, errno, "set TMPDIR to a folder that can be written", "%s: %s",
        path, strerror(errno));
}

enum err quiet_write_file(const char *path, const void *bytes, size_t size, struct error *err) {
    FILE *out = fopen(path, "wxe");
    bool is_written = out != NULL && fwrite(bytes, 1, size, out) == size;
    if (out != NULL && fclose(out) != 0) is_written = false;
    return is_written ? ERR_OK : fail(err, path);
}

void quiet_print_log(const char *log) {
    char *text = NULL;
    size_t size = 0;
    struct error err;
    if (file_read(log, LOG_BYTES_MAX, &text, &size, &err) == ERR_OK) fwrite(text, 1, size, stderr);
    free(text);
}

static int remove_one(const char *path, const struct stat *file, int kind, struct FTW *at) {
    return remove(path);
}

void quiet_remove_folder(const char *folder) {
    nftw(folder, remove_one, FOLDERS_OPEN, FTW_DEPTH | FTW_PHYS);
}

/* The child gets our standard error, so that ours is the file for a moment. */
enum err quiet_start(const char *const *arguments, const char *log, pid_t *ret, struct error *err) {
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    int kept = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    enum err code = ERR_OK;
    if (fd < 0 || kept < 0 || dup2(fd, STDERR_FILENO) < 0) code = fail(err, log);
    if (code == ERR_OK) code = child_start(arguments, -1, NULL, ret, err);
    if (kept >= 0) dup2(kept, STDERR_FILENO);
    if (kept >= 0) close(kept);
    if (fd >= 0) close(fd);
    return code;
}

int quiet_wait(pid_t pid) {
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
    return WIFEXITED(status) ? WEXITSTATUS(status) : CLI_FAILED;
}
