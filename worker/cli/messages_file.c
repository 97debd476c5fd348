#include "cli/messages_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/wire.h"
#include "broker/json_line.h"

enum { CHUNK_BYTES = 64 << 10 };
static const size_t message_bytes_max = (size_t)2 << 30;

struct messages_file {
    const char *path;
    FILE *in;
    bool is_at_end;
    uint8_t *bytes;
    size_t start, end, room; /* unread bytes, and the size of `bytes` */
    int64_t count;           /* messages that were read */
    struct delivery delivery;
    struct header headers[DELIVERY_HEADERS_MAX];
};

enum err messages_file_open(const char *path, struct messages_file **ret, struct error *err) {
    struct messages_file *file = calloc(1, sizeof *file);
    if (file == NULL) return error_no_memory(err, "no memory to read %s", path);
    file->path = path;
    file->in = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
    if (file->in != NULL) {
        *ret = file;
        return ERR_OK;
    }
    enum err code = error_set(
        err, ERR_IO, errno, "name a file that can be read", "%s: %s", path, strerror(errno));
    free(file);
    return code;
}

void messages_file_close(struct messages_file *file) {
    if (file == NULL) return;
    if (file->in != stdin) fclose(file->in);
    free(file->bytes);
    free(file);
}

static size_t unread(const struct messages_file *file) {
    return file->end - file->start;
}

/* As much as is there already, and again: a cut message is scanned again only then. */
static enum err read_more(struct messages_file *file, struct error *err) {
    size_t wanted = unread(file) < CHUNK_BYTES ? CHUNK_BYTES : unread(file);
    if (unread(file) > 0) memmove(file->bytes, file->bytes + file->start, unread(file));
    file->end -= file->start;
    file->start = 0;
    if (file->end + wanted > message_bytes_max)
        return error_set(err, ERR_TOO_LARGE, 0, "split the file",
            "%s: a message is larger than 1 GiB", file->path);
    if (file->room < file->end + wanted) {
        uint8_t *larger = realloc(file->bytes, file->end + wanted);
        if (larger == NULL) return error_no_memory(err, "no memory to read %s", file->path);
        file->bytes = larger;
        file->room = file->end + wanted;
    }
    file->end += fread(file->bytes + file->end, 1, wanted, file->in);
    file->is_at_end = feof(file->in) != 0;
    if (!ferror(file->in)) return ERR_OK;
    return error_set(err, ERR_IO, errno, "check the file and its disk", "reading %s: %s",
        file->path, strerror(errno));
}

/* Whether a map can begin with this byte, as every message does. */
static bool begins_map(uint8_t byte) {
    return (byte & 0xf0) == 0x80 || byte == 0xde || byte == 0xdf;
}

static enum err take_message(struct messages_file *file, bool *ret_is_whole, struct error *err) {
    size_t size;
    if (!begins_map(file->bytes[file->start]))
        return error_set(err, ERR_BAD_MESSAGE, 0, "give it messages, one after the other",
            "%s: what comes after %" PRId64 " messages is no map", file->path, file->count);
    enum wire_state state =
        wire_scan(slice_of(file->bytes + file->start, unread(file)), &size, err);
    *ret_is_whole = state == WIRE_COMPLETE;
    if (state == WIRE_BROKEN || (state == WIRE_CUT && file->is_at_end)) return ERR_BAD_MESSAGE;
    if (!*ret_is_whole) return ERR_OK;
    file->delivery = (struct delivery){.payload = slice_of(file->bytes + file->start, size)};
    file->start += size;
    return ERR_OK;
}

static enum err take_line(struct messages_file *file, bool *ret_is_whole, struct error *err) {
    uint8_t *line = file->bytes + file->start, *end = memchr(line, '\n', unread(file));
    *ret_is_whole = end != NULL || file->is_at_end;
    if (!*ret_is_whole) return ERR_OK;
    size_t size = end != NULL ? (size_t)(end - line) + 1 : unread(file);
    file->start += size;
    return json_line_read(line, size, file->headers, &file->delivery, err);
}

enum err messages_file_next(struct messages_file *file, const struct delivery **ret,
    bool *ret_is_letter, struct error *err) {
    bool is_whole = false;
    enum err code = ERR_OK;
    *ret = NULL;
    while (code == ERR_OK && !is_whole) {
        if (unread(file) > 0) {
            *ret_is_letter = file->bytes[file->start] == '{'; /* no message is this number */
            code = *ret_is_letter ? take_line(file, &is_whole, err)
                                  : take_message(file, &is_whole, err);
        } else if (file->is_at_end) {
            return ERR_OK;
        }
        if (code == ERR_OK && !is_whole) code = read_more(file, err);
    }
    if (code != ERR_OK) return code;
    file->delivery.position = (struct position){.topic = file->path, .offset = file->count++};
    *ret = &file->delivery;
    return ERR_OK;
}
