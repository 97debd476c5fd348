/** What log lines say of a job, besides their message. Private to pipeline/. Threads: pure. */
#ifndef PIPELINE_JOB_FIELDS_H
#define PIPELINE_JOB_FIELDS_H

#include "base/log_line.h"
#include "job/job.h"

/** The job's id, place, first program, outcome and trace; valid as long as job and delivery. */
struct log_fields job_fields(const struct job *job, const char *event);

#endif
