#include "executor/stages.h"

uint32_t stages_jobs_max(const struct stages *stages) {
    return stages->settings->limits.jobs_in_flight + ASIDE_MAX + 1;
}
