#include "broker/delivery.h"

#include <stdlib.h>

#include "base/invariant.h"

enum { LARGE_BYTES = 1 << 20 };

/* The size of the struct and its header array. False on overflow. */
static bool count_own_bytes(const struct delivery *message, size_t *ret) {
    size_t total;
    if (__builtin_mul_overflow(message->header_count, sizeof(struct header), &total)) return false;
    return !__builtin_add_overflow(total, sizeof *message, ret);
}

/* The size of what can be lent. False on overflow. */
static bool count_bytes(const struct delivery *message, size_t *ret) {
    size_t total;
    if (__builtin_add_overflow(message->payload.size, message->key.size, &total)) return false;
    for (size_t i = 0; i < message->header_count; i++) {
        const struct header *header = &message->headers[i];
        if (__builtin_add_overflow(total, header->name.size, &total)) return false;
        if (__builtin_add_overflow(total, header->value.size, &total)) return false;
    }
    *ret = total;
    return true;
}

/* Adds what a dead letter of it would take. False on overflow. */
static bool count_held_bytes(const struct delivery *message, size_t own_bytes, size_t *ret) {
    size_t bytes, held = own_bytes;
    if (!count_bytes(message, &bytes) || __builtin_add_overflow(held, bytes, &held)) return false;
    for (size_t i = 0; i < message->header_count; i++) {
        const struct header *header = &message->headers[i];
        size_t more = DELIVERY_HEADER_BYTES;
        if (__builtin_add_overflow(more, header->name.size, &more)) return false;
        if (__builtin_add_overflow(more, header->value.size, &more)) return false;
        if (__builtin_add_overflow(held, more, &held)) return false;
    }
    *ret = held;
    return true;
}

static struct slice copy_to(uint8_t **to, struct slice from) {
    struct slice copy = slice_of(*to, from.size);
    if (from.size > 0) memcpy(*to, from.data, from.size);
    *to += from.size;
    return copy;
}

static struct header *headers_of(struct delivery *delivery) {
    return (struct header *)(delivery + 1);
}

struct delivery *delivery_lend(const struct delivery *message, struct loan loan) {
    size_t own_bytes, held_bytes;
    if (!count_own_bytes(message, &own_bytes)) return NULL;
    if (!count_held_bytes(message, own_bytes, &held_bytes)) return NULL;
    struct delivery *delivery = malloc(own_bytes);
    if (delivery == NULL) return NULL;
    *delivery = *message;
    delivery->held_bytes = held_bytes;
    delivery->headers = headers_of(delivery);
    for (size_t i = 0; i < message->header_count; i++)
        headers_of(delivery)[i] = message->headers[i];
    delivery->loan = loan;
    delivery->is_kept = delivery->is_moved = false;
    delivery->kept = NULL;
    return delivery;
}

static void end_loan(struct delivery *delivery) {
    if (delivery->loan.end != NULL) delivery->loan.end(delivery->loan.lender);
}

/* Copies what is lent to where there is room for it, and ends the loan. */
static void keep_at(struct delivery *delivery, uint8_t *to) {
    struct header *headers = headers_of(delivery);
    delivery->payload = copy_to(&to, delivery->payload);
    delivery->key = copy_to(&to, delivery->key);
    for (size_t i = 0; i < delivery->header_count; i++) {
        headers[i].name = copy_to(&to, headers[i].name);
        headers[i].value = copy_to(&to, headers[i].value);
    }
    end_loan(delivery);
    delivery->is_kept = true;
}

/* The bytes that are lent, which were counted before. */
static size_t lent_bytes(const struct delivery *delivery) {
    size_t bytes;
    if (delivery->is_kept) return 0;
    return count_bytes(delivery, &bytes) ? bytes : SIZE_MAX;
}

bool delivery_may_stay(const struct delivery *delivery) {
    size_t bytes = delivery->payload.size;
    return bytes >= LARGE_BYTES && delivery->loan.holds_bytes <= bytes + bytes / 4;
}

bool delivery_keep(struct delivery *delivery) {
    if (delivery->is_kept) return true;
    size_t bytes = lent_bytes(delivery);
    delivery->kept = malloc(bytes > 0 ? bytes : 1);
    if (delivery->kept == NULL) return false;
    keep_at(delivery, delivery->kept);
    return true;
}

size_t delivery_room(const struct delivery *delivery) {
    size_t own_bytes, room;
    if (!count_own_bytes(delivery, &own_bytes)) return SIZE_MAX;
    return __builtin_add_overflow(own_bytes, lent_bytes(delivery), &room) ? SIZE_MAX : room;
}

struct delivery *delivery_move(struct delivery *delivery, void *memory) {
    size_t own_bytes;
    bool is_counted = count_own_bytes(delivery, &own_bytes);
    INVARIANT(is_counted && !delivery->is_moved, "a delivery moves once");
    struct delivery *moved = memory;
    memcpy(moved, delivery, own_bytes);
    moved->headers = headers_of(moved);
    free(delivery);
    moved->is_moved = true;
    if (!moved->is_kept) keep_at(moved, (uint8_t *)memory + own_bytes);
    return moved;
}

struct delivery *delivery_create(const struct delivery *message) {
    struct delivery *delivery = delivery_lend(message, (struct loan){0});
    if (delivery == NULL || delivery_keep(delivery)) return delivery;
    delivery_destroy(delivery);
    return NULL;
}

void delivery_destroy(struct delivery *delivery) {
    if (delivery == NULL) return;
    if (!delivery->is_kept) end_loan(delivery);
    free(delivery->kept);
    if (!delivery->is_moved) free(delivery);
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
