/* Feeds every file of each folder to a fuzz target: `replay FOLDER...`. */
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

static int replay_folder(const char *folder) {
    struct dirent **entries;
    int count = scandir(folder, &entries, is_visible, alphasort);
    if (count <= 0) {
        fprintf(stderr, "%s: no folder with at least one file\n", folder);
        return 1;
    }
    int failed = 0;
    for (int i = 0; i < count; i++) {
        failed += replay(folder, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return failed;
}

int main(int argc, char **argv) {
    int failed = 0;
    for (int i = 1; i < argc; i++) failed += replay_folder(argv[i]);
    if (argc < 2) fprintf(stderr, "usage: replay FOLDER...\n");
    return argc >= 2 && failed == 0 ? 0 : 1;
}
