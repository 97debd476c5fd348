/** Internal to decode/: the parts of a job, each read in its own file. All fill a job. */
#ifndef DECODE_PARTS_H
#define DECODE_PARTS_H

#include "decode/walk.h"

parse_function parse_buffers;  /* buffers.c */
parse_function parse_steps;    /* steps.c; needs the buffers */
parse_function parse_outputs;  /* outputs.c; needs the buffers */
parse_function parse_until;    /* long_job.c; needs the buffers */
parse_function parse_time;     /* long_job.c */
parse_function parse_progress; /* long_job.c; needs the buffers */

/** A list of outputs. */
MUST_CHECK enum err read_outputs(struct walk *walk, const struct wire_value *value,
    const struct job_output **ret, size_t *count);

/** The index of the buffer that the string `value` names. */
MUST_CHECK enum err find_buffer(struct walk *walk, const struct wire_value *value, size_t *ret);

#endif
