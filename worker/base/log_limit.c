#include "base/log_limit.h"

bool log_limit_take(struct log_limit *limit, uint64_t now_ns, uint64_t *left_out) {
    pthread_mutex_lock(&limit->lock);
    if (now_ns - limit->from_ns >= limit->per_ms * 1000000ull) {
        limit->from_ns = now_ns;
        limit->lines = 0;
    }
    bool may = limit->lines < limit->lines_max;
    if (left_out != NULL) *left_out = limit->left_out;
    if (may) limit->lines++;
    limit->left_out = may ? 0 : limit->left_out + 1;
    pthread_mutex_unlock(&limit->lock);
    return may;
}
