#include "batch/offers.h"

size_t offers_claim(struct offers *offers, size_t most, uint64_t bytes_most) {
    if (offers->count == 0) return 0;
    uint64_t each = offers->bytes / offers->count;
    size_t count = offers->count < most ? offers->count : most;
    if (count * each > bytes_most) count = bytes_most / each;
    if (count == 0) count = 1;
    offers->count -= count;
    offers->bytes -= count * each;
    return count;
}
