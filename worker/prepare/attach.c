#include "prepare/attach.h"

#include "base/clock.h"

static struct resident_use use_of(const struct job *job, size_t index) {
    const struct delivery *delivery = job->delivery;
    const struct job_buffer *buffer = &job->buffers[index];
    return (struct resident_use){.topic = delivery->position.topic,
        .partition = delivery->position.partition,
        .key = delivery->key,
        .name = buffer->resident,
        .bytes = job_buffer_bytes(job, buffer),
        .is_each = buffer->is_each,
        .can_create = buffer->init != RESIDENT_MUST_EXIST,
        .has_expect = buffer->has_expect,
        .expect = buffer->expect,
        .is_update = job->plan->buffers[index].is_update,
        .offset = delivery->position.offset,
        .received_ns = delivery->received_ns};
}

static enum err refuse_again(const struct job_buffer *buffer, const char *why, struct error *err) {
    return error_set(err, ERR_RESIDENT_GENERATION, 0,
        "read the residents with another job: this one is not applied again",
        "the job was delivered again after it was applied, and %s '%.*s'", why,
        SLICE_TEXT(buffer->name));
}

/*
 * What the job left can be read, what it computed on the way cannot: all that it updates must be as
 * it left it, and its outputs must lie in what lives on.
 */
static enum err check_applied(const struct job *job, struct error *err) {
    for (size_t i = 0; i < job->buffer_count; i++) {
        const struct resident *resident = job->residents[i];
        bool is_other = resident != NULL && !resident_has_applied(resident);
        if (is_other && (job->plan->buffers[i].is_update || resident_is_fresh(resident)))
            return refuse_again(&job->buffers[i], "nothing of it is left in the resident of", err);
    }
    for (size_t i = 0; i < job->output_count; i++) {
        const struct job_buffer *buffer = &job->buffers[job->outputs[i].buffer];
        bool lives_on = buffer->source == BUFFER_RESIDENT || buffer->source == BUFFER_STATIC;
        if (!lives_on && job->outputs[i].bytes > 0)
            return refuse_again(buffer, "cannot compute again", err);
    }
    return ERR_OK;
}

static enum err attach(struct residents *residents, struct job *job, size_t index, uint64_t now_ns,
    struct error *err) {
    const struct job_buffer *buffer = &job->buffers[index];
    const struct resident_use use = use_of(job, index);
    struct resident *resident;
    enum err code = residents_attach(residents, &use, now_ns, &resident, err);
    if (code != ERR_OK) return code;
    job->residents[index] = resident;
    job->generations[index] = resident_generation_after(resident);
    if (resident_has_applied(resident)) job->is_applied = true;
    if (resident_is_fresh(resident) && buffer->init == RESIDENT_INIT_DATA)
        job->init_bytes_uploaded += job_buffer_bytes(job, buffer);
    return ERR_OK;
}

enum err attach_residents(struct residents *residents, struct job *job, struct error *err) {
    if (job->plan->resident_count == 0) return ERR_OK;
    enum err code = ERR_OK;
    uint64_t now_ns = clock_ns();
    job->run = RUN_NONE;
    job->is_applied = false;
    job->init_bytes_uploaded = 0;
    for (size_t i = 0; i < job->buffer_count && code == ERR_OK; i++)
        if (job->buffers[i].source == BUFFER_RESIDENT)
            code = attach(residents, job, i, now_ns, err);
    if (code == ERR_OK && job->is_applied) code = check_applied(job, err);
    if (code != ERR_OK) detach_residents(residents, job);
    return code;
}

void detach_residents(struct residents *residents, struct job *job) {
    static const enum resident_verdict verdicts[] = {[RUN_NONE] = RESIDENT_UNTOUCHED,
        [RUN_STARTED] = RESIDENT_SPOILT,
        [RUN_DONE] = RESIDENT_APPLIED};
    if (job->plan->resident_count == 0) return;
    bool is_idle = job->is_applied; /* launched nothing, whatever became of it */
    enum resident_verdict verdict = is_idle ? RESIDENT_UNTOUCHED : verdicts[job->run];
    uint64_t now_ns = clock_ns();
    for (size_t i = 0; i < job->buffer_count; i++) {
        if (job->residents[i] == NULL) continue;
        residents_detach(residents, job->residents[i], verdict, now_ns);
        job->residents[i] = NULL;
    }
}
