#include "cli/apart.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Opens nothing that exists: opening and closing a pipe would end its other side. */
static bool make(const char *path, struct stat *ret) {
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0666);
    if (fd < 0) return false;
    bool is_known = fstat(fd, ret) == 0;
    close(fd);
    return is_known;
}

static bool identify(const struct named_file *file, struct stat *ret) {
    if (file->path == NULL) return false;
    if (strcmp(file->path, "-") == 0)
        return fstat(file->is_output ? STDOUT_FILENO : STDIN_FILENO, ret) == 0;
    if (stat(file->path, ret) == 0) return true;
    return file->is_output && make(file->path, ret);
}

/* Two streams may share a device, such as /dev/null or a terminal. Reading and writing one pipe or
 * socket is fine too. */
static bool clash(const struct named_file *a, const struct named_file *b) {
    struct stat one, other;
    if (!a->is_output && !b->is_output) return false;
    if (!identify(a, &one) || !identify(b, &other)) return false;
    if (one.st_dev != other.st_dev || one.st_ino != other.st_ino) return false;
    bool are_outputs = a->is_output && b->is_output;
    return S_ISREG(one.st_mode) || (are_outputs && !S_ISCHR(one.st_mode));
}

bool files_are_apart(const struct named_file *files, size_t count, const struct named_file **first,
    const struct named_file **second) {
    for (size_t i = 0; i < count; i++) {
        for (size_t j = i + 1; j < count; j++) {
            *first = &files[i];
            *second = &files[j];
            if (clash(*first, *second)) return false;
        }
    }
    return true;
}
