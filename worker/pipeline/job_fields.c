#include "pipeline/job_fields.h"

#include "trace/context.h"

static struct slice trace_id_of(const struct delivery *delivery) {
    struct trace_context context;
    return trace_context_read(delivery, &context) ? context.trace_id : slice_of(NULL, 0);
}

struct log_fields job_fields(const struct job *job, const char *event) {
    const struct position *position = &job->delivery->position;
    bool has_failed = job->outcome.code != ERR_OK;
    return (struct log_fields){.event = event,
        .code = has_failed ? err_code(job->outcome.code) : NULL,
        .topic = position->topic,
        .partition = position->partition,
        .offset = position->offset,
        .job = job->id,
        .program = job->step_count > 0 ? job->steps[0].program : slice_of(NULL, 0),
        .trace_id = trace_id_of(job->delivery)};
}
