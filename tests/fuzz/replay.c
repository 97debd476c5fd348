/* Feeds every file of a folder to a fuzz target: `replay FOLDER`. */
#include <dirent.h>

#include "base/file.h"
#include "fuzz.h"

enum { INPUT_BYTES_MAX = 1 << 24 };

static int is_visible(const struct dirent *entry) {
    return entry->d_name[0] != '.';
}

static int replay(const char *folder, const char *name) {
    char path[4096], *data;
    size_t size;
    struct error err;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (file_read(path, INPUT_BYTES_MAX, &data, &size, &err) != ERR_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    printf("%s\n", path);
    LLVMFuzzerTestOneInput((const uint8_t *)data, size);
    free(data);
    return 0;
}

int main(int argc, char **argv) {
    struct dirent **entries;
    int count = argc == 2 ? scandir(argv[1], &entries, is_visible, alphasort) : -1;
    if (count <= 0) {
        fprintf(stderr, "usage: replay FOLDER (with at least one file)\n");
        return 1;
    }
    int failed = 0;
    for (int i = 0; i < count; i++) {
        failed += replay(argv[1], entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return failed == 0 ? 0 : 1;
}
