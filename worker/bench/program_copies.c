#include "bench/program_copies.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = TEMPORARY_PATH_SIZE + 64 };

void program_copy_name(size_t number, char ret[static PROGRAM_COPY_NAME_SIZE]) {
    snprintf(ret, PROGRAM_COPY_NAME_SIZE, "bench-%05zu", number);
}

static const char *image_of(const struct settings *settings) {
    return settings->driver == DRIVER_CPU ? "bench.so" : "bench.ptx";
}

static bool write_manifest(const char *path, const char *name, const struct settings *settings) {
    FILE *file = fopen(path, "w");
    if (file == NULL) return false;
    fprintf(file,
        "name: %s\n"
        "entries:\n"
        "  - name: add\n"
        "    args:\n"
        "      - {name: x, buffer: in, type: FP32}\n"
        "      - {name: y, buffer: in, type: FP32}\n"
        "      - {name: z, buffer: out, type: FP32}\n"
        "      - {name: n, value: u32, at_most: [x, y, z]}\n"
        "    block: [256]\n"
        "images:\n"
        "  - {kind: %s, file: image}\n",
        name, settings->driver == DRIVER_CPU ? "cpu" : "ptx");
    return fclose(file) == 0;
}

/* `image` is the path of the original's. */
static bool make_copy(
    const char *dir, size_t number, const char *image, const struct settings *settings) {
    char name[PROGRAM_COPY_NAME_SIZE], folder[PATH_SIZE], path[PATH_SIZE + 16];
    program_copy_name(number, name);
    snprintf(folder, sizeof folder, "%s/%s", dir, name);
    if (mkdir(folder, 0700) != 0) return false;
    snprintf(path, sizeof path, "%s/image", folder);
    if (symlink(image, path) != 0) return false;
    snprintf(path, sizeof path, "%s/program.yaml", folder);
    return write_manifest(path, name, settings);
}

enum err program_copies_make(
    const struct settings *settings, size_t count, struct program_copies *ret, struct error *err) {
    *ret = (struct program_copies){0};
    enum err code = temporary_folder_make("gpu-worker-bench", ret->dir, err);
    if (code != ERR_OK) {
        ret->dir[0] = 0;
        return code;
    }
    char *image = NULL, *programs = settings_programs_dir(settings);
    if (programs == NULL || asprintf(&image, "%s/bench/%s", programs, image_of(settings)) < 0)
        code = error_no_memory(err, "no memory for a path");
    while (code == ERR_OK && ret->count < count)
        if (!make_copy(ret->dir, ret->count++, image, settings))
            code = error_set(err, ERR_IO, errno, "make room there, or set TMPDIR",
                "copying a program into %s: %s", ret->dir, strerror(errno));
    free(image);
    free(programs);
    return code;
}

void program_copies_remove(struct program_copies *copies) {
    if (copies->dir[0] == 0) return;
    for (size_t i = 0; i < copies->count; i++) {
        char name[PROGRAM_COPY_NAME_SIZE], folder[PATH_SIZE], path[PATH_SIZE + 16];
        program_copy_name(i, name);
        snprintf(folder, sizeof folder, "%s/%s", copies->dir, name);
        snprintf(path, sizeof path, "%s/image", folder);
        unlink(path);
        snprintf(path, sizeof path, "%s/program.yaml", folder);
        unlink(path);
        rmdir(folder);
    }
    rmdir(copies->dir);
}
