#include "broker/delivery.h"

#include <stdlib.h>

/* Memory of one delivery: the struct, its header array, then all bytes. False where it overflows.
 */
static bool needed_bytes(const struct delivery *message, size_t *ret) {
    size_t total;
    if (__builtin_mul_overflow(message->header_count, sizeof(struct header), &total)) return false;
    if (__builtin_add_overflow(total, sizeof *message, &total)) return false;
    if (__builtin_add_overflow(total, message->payload.size, &total)) return false;
    if (__builtin_add_overflow(total, message->key.size, &total)) return false;
    for (size_t i = 0; i < message->header_count; i++) {
        const struct header *header = &message->headers[i];
        if (__builtin_add_overflow(total, header->name.size, &total)) return false;
        if (__builtin_add_overflow(total, header->value.size, &total)) return false;
    }
    *ret = total;
    return true;
}

static struct slice copy_to(uint8_t **to, struct slice from) {
    struct slice copy = slice_of(*to, from.size);
    if (from.size > 0) memcpy(*to, from.data, from.size);
    *to += from.size;
    return copy;
}

struct delivery *delivery_create(const struct delivery *message) {
    size_t held_bytes;
    if (!needed_bytes(message, &held_bytes)) return NULL;
    struct delivery *copy = malloc(held_bytes);
    if (copy == NULL) return NULL;

    struct header *headers = (struct header *)(copy + 1);
    uint8_t *bytes = (uint8_t *)(headers + message->header_count);
    *copy = *message;
    copy->held_bytes = held_bytes;
    copy->payload = copy_to(&bytes, message->payload);
    copy->key = copy_to(&bytes, message->key);
    copy->headers = headers;
    for (size_t i = 0; i < message->header_count; i++) {
        headers[i].name = copy_to(&bytes, message->headers[i].name);
        headers[i].value = copy_to(&bytes, message->headers[i].value);
    }
    return copy;
}

void delivery_destroy(struct delivery *delivery) {
    free(delivery);
}

bool delivery_header(const struct delivery *delivery, const char *name, struct slice *ret) {
    for (size_t i = delivery->header_count; i > 0; i--) {
        const struct header *header = &delivery->headers[i - 1];
        if (slice_is_text(header->name, name)) {
            *ret = header->value;
            return true;
        }
    }
    return false;
}
