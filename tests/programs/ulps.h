/** How far a result of a kernel is from the exact one. Threads: pure. */
#ifndef PROGRAMS_ULPS_H
#define PROGRAMS_ULPS_H

#include <math.h>

/** Distance in units of the last place of `expected` as a float. */
static inline double ulps(float got, double expected) {
    if (isnan(expected)) return isnan(got) ? 0.0 : INFINITY;
    if (isinf((float)expected) || isinf(got)) return got == (float)expected ? 0.0 : INFINITY;
    int exponent;
    frexp(expected, &exponent);
    if (exponent < -125) exponent = -125; /* subnormals share a last place */
    return fabs(got - expected) / ldexp(1.0, exponent - 24);
}

#endif
