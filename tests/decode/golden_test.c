/*
 * golden_test jobs|control FOLDER...
 *
 * Decodes every golden vector of the folders and prints "<code> <file>: <message>" for each; the
 * code must be the one in the vector's sidecar. tests/schemas/golden_test.py reads these lines and
 * asks the Python implementation the same.
 */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "decode/control_message.h"
#include "decoding.h"

enum { PATH_SIZE = 4096, FILE_BYTES_MAX = 1 << 20 };

static bool read_whole(
    const char *folder, const char *name, const char *suffix, char **ret, size_t *size) {
    char path[PATH_SIZE];
    struct error err;
    snprintf(path, sizeof path, "%s/%s%s", folder, name, suffix);
    if (file_read(path, FILE_BYTES_MAX, ret, size, &err) == ERR_OK) return true;
    printf("FAIL %s: %s\n", path, err.message);
    return false;
}

/* What a job that was refused must still be: something that a result can be sent for. */
static bool job_is_answerable(const struct job *job, enum err code) {
    return code == ERR_BAD_MESSAGE ? job == NULL : job != NULL && job->id.size > 0;
}

static enum err decode_answerable(struct slice payload, struct error *err) {
    struct job *job = NULL;
    enum err code = decode_bytes(payload, &golden_limits, &job, err);
    bool is_right = job_is_answerable(job, code);
    job_destroy(job);
    return is_right ? code : ERR_INTERNAL;
}

static enum err decode_control(struct slice payload, struct error *err) {
    struct control_message message = {.action = CONTROL_NONE};
    enum err code = control_message_decode(payload, &message, err);
    bool is_whole = message.id.size > 0 && message.action != CONTROL_NONE;
    return code != ERR_OK || is_whole ? code : ERR_INTERNAL;
}

typedef enum err decode_function(struct slice payload, struct error *err);

static bool check_vector(decode_function *decode, const char *folder, const char *name) {
    char *payload = NULL, *sidecar = NULL, expected[64];
    size_t payload_size, sidecar_size;
    struct error err = {0};
    bool is_right = read_whole(folder, name, ".msgpack", &payload, &payload_size) &&
                    read_whole(folder, name, ".json", &sidecar, &sidecar_size);
    if (is_right) {
        enum err code = decode(slice_of(payload, payload_size), &err);
        printf("%s %s: %s; %s\n", err_code(code), name, err.message, err.fix);
        snprintf(expected, sizeof expected, "\"code\": \"%s\"", err_code(code));
        bool has_sentence = code == ERR_OK || (err.message[0] != 0 && err.fix[0] != 0);
        is_right = strstr(sidecar, expected) != NULL && has_sentence && err.code == code;
        if (!is_right) printf("FAIL %s: expected %s", name, sidecar);
    }
    free(payload);
    free(sidecar);
    return is_right;
}

static int is_vector(const struct dirent *entry) {
    const char *suffix = strrchr(entry->d_name, '.');
    return suffix != NULL && strcmp(suffix, ".msgpack") == 0;
}

int main(int argc, char **argv) {
    int failures = 0, vectors = 0;
    bool is_control = argc > 1 && strcmp(argv[1], "control") == 0;
    decode_function *decode = is_control ? decode_control : decode_answerable;
    for (int i = 2; i < argc; i++) {
        struct dirent **entries = NULL;
        int count = scandir(argv[i], &entries, is_vector, alphasort);
        for (int k = 0; k < count; k++) {
            *strrchr(entries[k]->d_name, '.') = 0;
            if (!check_vector(decode, argv[i], entries[k]->d_name)) failures++;
            vectors++;
            free(entries[k]);
        }
        free(entries);
    }
    printf("%d vectors, %d failures\n", vectors, failures);
    return failures == 0 && vectors > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
