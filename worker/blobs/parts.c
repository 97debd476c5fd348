#include "blobs/parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/invariant.h"
#include "base/pulse.h"

enum { PART_BYTES = 256 << 10 };

struct blob_parts {
    int fd;
    uint64_t bytes;
    size_t count;
    struct blob_memory *memory;
    struct digest digests[];
};

static uint64_t part_bytes(const struct blob_parts *parts, uint64_t part) {
    uint64_t left = parts->bytes - part * PART_BYTES;
    return left < PART_BYTES ? left : PART_BYTES;
}

static uint64_t held_bytes(const struct blob_parts *parts) {
    return parts->count * sizeof parts->digests[0];
}

static enum err has_changed(struct error *err) {
    return error_set(err, ERR_DIGEST_MISMATCH, 0, "store the payload again",
        "the blob store has other bytes than the blob's name says");
}

static enum err no_memory(struct error *err) {
    return error_set(err, ERR_NO_MEMORY, 0,
        "give the process more memory, or let fewer jobs with blobs come at once",
        "no memory to read a blob in parts");
}

static enum err read_all(
    const struct blob_parts *parts, uint64_t part, uint8_t *to, struct error *err) {
    size_t bytes = part_bytes(parts, part), done;
    if (!file_read_at(parts->fd, part * PART_BYTES, to, bytes, &done))
        return error_set(err, ERR_IO, errno, "check the permissions and the state of the disk",
            "cannot read a blob: %s", strerror(errno));
    return done == bytes ? ERR_OK : has_changed(err);
}

static enum err read_part(
    const struct blob_parts *parts, uint64_t part, uint8_t *to, struct error *err) {
    pulse_outside();
    enum err code = read_all(parts, part, to, err);
    pulse_busy();
    return code;
}

static enum err hash_all(struct blob_parts *parts, uint8_t *room, struct digester *digester,
    const struct digest *digest, struct error *err) {
    for (uint64_t part = 0; part < parts->count; part++) {
        enum err code = read_part(parts, part, room, err);
        if (code != ERR_OK) return code;
        struct slice bytes = slice_of(room, part_bytes(parts, part));
        parts->digests[part] = digest_of(bytes);
        digester_add(digester, bytes);
    }
    struct digest found = digester_finish(digester);
    return digest_equal(&found, digest) ? ERR_OK : has_changed(err);
}

enum err parts_create(
    uint64_t bytes, struct blob_memory *memory, struct blob_parts **ret, struct error *err) {
    INVARIANT(bytes > 0, "a blob that is opened has bytes");
    struct blob_parts *parts = NULL;
    uint64_t count = (bytes - 1) / PART_BYTES + 1, held = count * sizeof parts->digests[0];
    if (!blob_memory_take_file(memory)) return no_memory(err);
    if (blob_memory_take(memory, held)) {
        parts = malloc(sizeof *parts + held);
        if (parts == NULL) blob_memory_give(memory, held);
    }
    if (parts == NULL) {
        blob_memory_give_file(memory);
        return no_memory(err);
    }
    *parts = (struct blob_parts){.fd = -1, .bytes = bytes, .count = count, .memory = memory};
    *ret = parts;
    return ERR_OK;
}

enum err parts_open(
    struct blob_parts *parts, int fd, const struct digest *digest, struct error *err) {
    uint8_t *room = malloc(PART_BYTES);
    struct digester *digester = digester_create();
    parts->fd = fd;
    enum err code = room != NULL && digester != NULL ? hash_all(parts, room, digester, digest, err)
                                                     : no_memory(err);
    if (code != ERR_OK) parts->fd = -1;
    digester_destroy(digester);
    free(room);
    return code;
}

/* A whole part goes to its place, and is checked there. */
static enum err read_and_check(
    const struct blob_parts *parts, uint64_t part, uint8_t *to, struct error *err) {
    enum err code = read_part(parts, part, to, err);
    if (code != ERR_OK) return code;
    struct digest found = digest_of(slice_of(to, part_bytes(parts, part)));
    return digest_equal(&found, &parts->digests[part]) ? ERR_OK : has_changed(err);
}

enum err parts_read(
    const struct blob_parts *parts, uint64_t offset, void *to, size_t bytes, struct error *err) {
    INVARIANT(offset <= parts->bytes && bytes <= parts->bytes - offset, "a part lies in its blob");
    uint8_t *next = to, *room = NULL;
    enum err code = ERR_OK;
    while (bytes > 0 && code == ERR_OK) {
        uint64_t part = offset / PART_BYTES, skip = offset % PART_BYTES;
        uint64_t size = part_bytes(parts, part), wanted = size - skip;
        bool is_whole = wanted == size && bytes >= size;
        if (wanted > bytes) wanted = bytes;
        if (!is_whole && room == NULL) room = malloc(PART_BYTES);
        if (!is_whole && room == NULL) return no_memory(err);
        code = read_and_check(parts, part, is_whole ? next : room, err);
        if (code == ERR_OK && !is_whole) memcpy(next, room + skip, wanted);
        next += wanted;
        offset += wanted;
        bytes -= wanted;
    }
    free(room);
    return blob_memory_note_disk(parts->memory, code, err);
}

void parts_close(struct blob_parts *parts) {
    if (parts == NULL) return;
    if (parts->fd >= 0) close(parts->fd);
    blob_memory_give(parts->memory, held_bytes(parts));
    blob_memory_give_file(parts->memory);
    free(parts);
}
