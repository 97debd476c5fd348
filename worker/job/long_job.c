#include "job/long_job.h"

const char *long_end_name(enum long_end end) {
    static const char *const names[] = {"none", "until", "repeat", "time", "stop"};
    return names[end];
}
