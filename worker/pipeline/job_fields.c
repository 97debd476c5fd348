#include "pipeline/job_fields.h"

/* `traceparent` of W3C Trace Context: version, trace id, parent id and flags. */
enum { TRACE_ID_AT = 3, TRACE_ID_BYTES = 32, TRACEPARENT_BYTES = 55 };

static bool is_hex(struct slice text) {
    for (size_t i = 0; i < text.size; i++)
        if (memchr("0123456789abcdef", text.data[i], 16) == NULL) return false;
    return true;
}

static struct slice trace_id_of(const struct delivery *delivery) {
    for (size_t i = 0; i < delivery->header_count; i++) {
        struct slice value = delivery->headers[i].value;
        if (!slice_is_text(delivery->headers[i].name, "traceparent") ||
            value.size < TRACEPARENT_BYTES)
            continue;
        struct slice id = slice_of(value.data + TRACE_ID_AT, TRACE_ID_BYTES);
        if (is_hex(id)) return id;
    }
    return slice_of(NULL, 0);
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
