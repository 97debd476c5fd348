#include "world/sticky.h"

#include <stdlib.h>

/* The number of the member with the fewest partitions, or the most; the first of several. */
static int find_extreme(const size_t *counts, size_t member_count, int sign) {
    size_t found = 0;
    for (size_t i = 1; i < member_count; i++)
        if (sign < 0 ? counts[i] < counts[found] : counts[i] > counts[found]) found = i;
    return (int)found;
}

static void move(
    struct sticky_partition *partitions, size_t count, size_t *counts, int from, int to) {
    for (size_t i = count; i-- > 0;) {
        if (partitions[i].taker != from) continue;
        partitions[i].taker = to;
        counts[from]--;
        counts[to]++;
        return;
    }
}

void sticky_share(struct sticky_partition *partitions, size_t count, size_t member_count) {
    size_t *counts = calloc(member_count, sizeof counts[0]);
    if (counts == NULL) abort();
    for (size_t i = 0; i < count; i++) {
        partitions[i].taker = partitions[i].owner;
        if (partitions[i].owner != NOBODY) counts[partitions[i].owner]++;
    }
    for (size_t i = 0; i < count; i++) {
        if (partitions[i].taker != NOBODY) continue;
        partitions[i].taker = find_extreme(counts, member_count, -1);
        counts[partitions[i].taker]++;
    }
    int least, most;
    while (least = find_extreme(counts, member_count, -1),
        most = find_extreme(counts, member_count, 1), counts[most] - counts[least] > 1)
        move(partitions, count, counts, most, least);
    for (size_t i = 0; i < count; i++)
        if (partitions[i].claimer != NOBODY && partitions[i].claimer != partitions[i].taker)
            partitions[i].taker = NOBODY;
    free(counts);
}
