#include "broker/commit_metadata.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base64.h"
#include "base/invariant.h"
#include "base/number.h"

#define VERSION "gpu-worker/1"

enum { BITMAP_BYTES = COMMIT_METADATA_WINDOW / 8, NUMBER_DIGITS_MAX = 19, OWNER_DIGITS = 16 };

/* the longest possible text fits */
_Static_assert(sizeof VERSION
                       " offset=9223372036854775807 "
                       "topic=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde"
                       " mark=clean owner=0123456789abcdef takeovers=4294967295"
                       " window=16384 finished=" +
                       BASE64_SIZE(BITMAP_BYTES) <=
                   COMMIT_METADATA_TEXT_SIZE,
    "more room");

/* Writes bytes in an order that does not depend on the machine. */
static size_t write_bitmap(const uint64_t *words, uint8_t bytes[static BITMAP_BYTES]) {
    size_t size = 0;
    for (size_t i = 0; i < BITMAP_BYTES; i++) {
        bytes[i] = (uint8_t)(words[i / 8] >> i % 8 * 8);
        if (bytes[i] != 0) size = i + 1;
    }
    return size;
}

size_t commit_metadata_encode(const struct commit_metadata *metadata, int64_t offset,
    char text[static COMMIT_METADATA_TEXT_SIZE]) {
    uint8_t bytes[BITMAP_BYTES];
    size_t size = write_bitmap(metadata->finished, bytes);
    int used = snprintf(text, COMMIT_METADATA_TEXT_SIZE,
        VERSION " offset=%" PRId64 "%s%s mark=%s owner=%016" PRIx64 " takeovers=%" PRIu32
                " window=%" PRIu32 " finished=",
        offset, metadata->topic_id[0] != 0 ? " topic=" : "", metadata->topic_id,
        metadata->is_open ? "open" : "clean", metadata->owner, metadata->takeovers,
        metadata->window);
    size_t length = (size_t)used + base64_encode(slice_of(bytes, size), text + used);
    INVARIANT(length < COMMIT_METADATA_TEXT_SIZE, "commit metadata fits its text");
    text[length] = 0;
    return length;
}

static bool read_mark(struct slice value, struct commit_metadata *ret) {
    ret->is_open = slice_is_text(value, "open");
    return ret->is_open || slice_is_text(value, "clean");
}

static bool read_owner(struct slice value, struct commit_metadata *ret) {
    char text[OWNER_DIGITS + 1] = {0};
    if (value.size != OWNER_DIGITS) return false;
    memcpy(text, value.data, value.size);
    if (strspn(text, "0123456789abcdef") != OWNER_DIGITS) return false;
    ret->owner = strtoull(text, NULL, 16);
    return true;
}

static bool read_number(struct slice value, uint64_t max, uint64_t *ret) {
    char text[NUMBER_DIGITS_MAX + 1] = {0};
    if (value.size == 0 || value.size > NUMBER_DIGITS_MAX) return false;
    memcpy(text, value.data, value.size);
    return number_read(text, ret) == value.size && *ret <= max;
}

static bool read_offset(struct slice value, struct commit_metadata *ret) {
    ret->names_offset = true;
    return read_number(value, INT64_MAX, &ret->offset);
}

static bool read_topic(struct slice value, struct commit_metadata *ret) {
    if (value.size == 0 || value.size >= TOPIC_ID_SIZE) return false;
    memcpy(ret->topic_id, value.data, value.size);
    for (size_t i = 0; i < value.size; i++)
        if (!isgraph((unsigned char)ret->topic_id[i])) return false;
    return true;
}

static bool read_takeovers(struct slice value, struct commit_metadata *ret) {
    uint64_t number = 0;
    bool is_number = read_number(value, UINT32_MAX, &number);
    ret->takeovers = (uint32_t)number;
    return is_number;
}

static bool read_window(struct slice value, struct commit_metadata *ret) {
    uint64_t number = 0;
    bool is_number = read_number(value, COMMIT_METADATA_WINDOW, &number);
    ret->window = (uint32_t)number;
    return is_number;
}

static bool read_finished(struct slice value, struct commit_metadata *ret) {
    uint8_t bytes[BITMAP_BYTES];
    size_t size;
    if (!base64_decode(value, bytes, sizeof bytes, &size)) return false;
    for (size_t i = 0; i < size; i++) ret->finished[i / 8] |= (uint64_t)bytes[i] << i % 8 * 8;
    return true;
}

static const struct field {
    const char *name;
    bool (*read)(struct slice value, struct commit_metadata *ret);
} fields[] = {
    {"offset", read_offset},
    {"topic", read_topic},
    {"mark", read_mark},
    {"owner", read_owner},
    {"takeovers", read_takeovers},
    {"window", read_window},
    {"finished", read_finished},
};
enum { FIELD_COUNT = sizeof fields / sizeof fields[0] };

/* Takes the text up to `end`, and `end` itself; without an `end`, all of it. */
static struct slice take_until(struct slice *from, char end) {
    const uint8_t *found = from->size > 0 ? memchr(from->data, end, from->size) : NULL;
    size_t size = found != NULL ? (size_t)(found - from->data) : from->size;
    struct slice taken = slice_of(from->data, size), ended;
    (void)slice_take(from, found != NULL ? size + 1 : size, &ended);
    return taken;
}

/* `seen` has a bit for each field that was read. */
static bool read_field(struct slice text, unsigned *seen, struct commit_metadata *ret) {
    struct slice name = take_until(&text, '=');
    for (unsigned i = 0; i < FIELD_COUNT; i++) {
        if (!slice_is_text(name, fields[i].name)) continue;
        if ((*seen >> i & 1) != 0) return false;
        *seen |= 1u << i;
        return fields[i].read(text, ret);
    }
    return true;
}

bool commit_metadata_decode(struct slice text, int64_t offset, struct commit_metadata *ret) {
    *ret = (struct commit_metadata){0};
    if (text.size == 0) return true;
    bool is_ours = slice_is_text(take_until(&text, ' '), VERSION);
    unsigned seen = 0;
    while (is_ours && text.size > 0) is_ours = read_field(take_until(&text, ' '), &seen, ret);
    bool is_here = is_ours && (!ret->names_offset || ret->offset == (uint64_t)offset);
    if (!is_here) *ret = (struct commit_metadata){0};
    return is_here;
}

size_t commit_metadata_span(const struct commit_metadata *metadata) {
    size_t span = COMMIT_METADATA_WINDOW;
    while (span > 0 && !commit_metadata_has_finished(metadata, span - 1)) span--;
    return span;
}

void commit_metadata_claim(struct commit_metadata *metadata, uint64_t owner) {
    bool is_takeover = metadata->is_open && (owner == 0 || metadata->owner != owner);
    if (metadata->window == 0) metadata->takeovers = 0;
    if (is_takeover && metadata->window == 0) metadata->window = COMMIT_METADATA_WINDOW;
    if (is_takeover && metadata->takeovers < UINT32_MAX) metadata->takeovers++;
    metadata->is_open = true;
    metadata->owner = owner;
}
