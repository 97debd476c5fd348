/** What a message may hold: settings of the worker, in numbers and bytes. */
#ifndef DECODE_LIMITS_H
#define DECODE_LIMITS_H

#include <stddef.h>
#include <stdint.h>

struct decode_limits {
    size_t message_bytes_max;
    size_t arena_bytes_max; /* of a job's arena, and of the message's values while decoding */
    uint32_t buffers_max, steps_max, args_max, outputs_max, writes_max;
    uint64_t buffer_bytes_max;               /* of one buffer; of one instance */
    uint64_t array_bytes_max;                /* of one buffer with all instances */
    uint32_t launches_max;                   /* sum of repeat x iterations over the steps; of a
                                                long job without repeat */
    uint64_t long_ms_max;                    /* of a long job, whether it asks for less or not */
    uint32_t instances_max;                  /* of an array job */
    uint32_t timeout_ms_default;             /* of a job that gives none */
    uint32_t timeout_ms_min, timeout_ms_max; /* of a job that gives one */
};

#endif
