#include "broker/dead_letter.h"

#include <stdlib.h>

enum { ORIGIN_SIZE = 320 }; /* a topic's name has 249 characters at most, a number 20 */

static struct slice value_of(const struct delivery *delivery, const char *name) {
    struct slice value = {0};
    (void)delivery_header(delivery, name, &value);
    return value;
}

bool dead_letter_read(const struct delivery *delivery, struct dead_letter *ret) {
    *ret = (struct dead_letter){.code = value_of(delivery, DEAD_LETTER_CODE),
        .id = value_of(delivery, "gpu-worker-job-id"),
        .topic = value_of(delivery, DEAD_LETTER_TOPIC),
        .is_truncated = value_of(delivery, DEAD_LETTER_TRUNCATED).size > 0};
    return ret->code.size > 0 && ret->topic.size > 0;
}

static bool starts_with(struct slice text, const char *start) {
    size_t size = strlen(start);
    return text.size >= size && memcmp(text.data, start, size) == 0;
}

/* The worker's own headers come last, so of two content types the first is the sender's. */
static size_t find_own_content_type(const struct delivery *delivery) {
    size_t found = delivery->header_count;
    for (size_t i = 0; i < delivery->header_count; i++)
        if (slice_is_text(delivery->headers[i].name, "content-type")) found = i;
    return found;
}

bool dead_letter_owns(struct slice name) {
    static const char *const names[] = {
        "gpu-worker-job-id", "gpu-worker-status", "gpu-worker-source"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (slice_is_text(name, names[i])) return true;
    return starts_with(name, "dlq.");
}

/* `headers` has room for one header more than the letter has. */
static size_t restore_headers(const struct delivery *letter, struct header *headers) {
    size_t count = 0, own_content_type = find_own_content_type(letter);
    for (size_t i = 0; i < letter->header_count; i++)
        if (i != own_content_type && !dead_letter_owns(letter->headers[i].name))
            headers[count++] = letter->headers[i];
    return count;
}

static struct slice write_origin(const struct delivery *letter, char text[static ORIGIN_SIZE]) {
    static const char *const parts[] = {
        DEAD_LETTER_TOPIC, DEAD_LETTER_PARTITION, DEAD_LETTER_OFFSET};
    size_t used = 0;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        struct slice part = value_of(letter, parts[i]);
        if (i > 0 && used < ORIGIN_SIZE) text[used++] = '/';
        size_t size = part.size < ORIGIN_SIZE - used ? part.size : ORIGIN_SIZE - used;
        if (size > 0) memcpy(text + used, part.data, size);
        used += size;
    }
    return slice_of(text, used);
}

struct delivery *dead_letter_create_job(const struct delivery *letter) {
    struct header *headers = calloc(letter->header_count + 1, sizeof *headers);
    if (headers == NULL) return NULL;
    char origin[ORIGIN_SIZE];
    struct slice first;
    struct delivery job = {.payload = letter->payload,
        .has_key = letter->has_key,
        .key = letter->key,
        .header_count = restore_headers(letter, headers),
        .headers = headers};
    if (!delivery_header(letter, REPLAYED_FROM, &first))
        headers[job.header_count++] = (struct header){
            .name = slice_of_text(REPLAYED_FROM), .value = write_origin(letter, origin)};
    struct delivery *copy = delivery_create(&job);
    free(headers);
    return copy;
}
