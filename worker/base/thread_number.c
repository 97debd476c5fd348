#include "base/thread_number.h"

#include <stdatomic.h>

unsigned thread_number(void) {
    static atomic_uint next = 1;
    static _Thread_local unsigned number; /* 0: none yet */
    /* relaxed: only that numbers differ matters */
    if (number == 0) number = atomic_fetch_add_explicit(&next, 1, memory_order_relaxed);
    return number - 1;
}
