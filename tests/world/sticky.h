/**
 * How a cooperative group shares partitions: members keep what they have as far as all have equally
 * many, and a partition that changes hands is nobody's until its owner has given it back.
 */
#ifndef TESTS_WORLD_STICKY_H
#define TESTS_WORLD_STICKY_H

#include <stddef.h>

enum { NOBODY = -1 };

struct sticky_partition {
    int owner;   /* the number of the member that has it, as far as the latest claim is right */
    int claimer; /* of the last member that says it has it; another one, if two do */
    int taker;   /* ret: who gets it now; NOBODY: it is given back first */
};

/** Among so many members, of whom there is one at least. */
void sticky_share(struct sticky_partition *partitions, size_t count, size_t member_count);

#endif
