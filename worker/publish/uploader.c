#include "publish/uploader.h"

#include <stdlib.h>

#include "base/crew.h"
#include "base/queue.h"

enum { THREADS = 4 }; /* a sync takes its time; several at once take little more */

/* Not in the job's arena: that is bounded by what a message may make of us, and full arenas must
 * not end here. By index as the outputs. */
struct output_upload {
    uint8_t *bytes; /* of all outputs, unless they have a room */
    struct slice *outputs;
    struct digest *digests;
    bool *is_uploaded;
};

struct uploader {
    struct uploader_options options;
    struct queue *queue;
    struct crew *crew;
};

/* ---- one upload ---- */

static void upload_destroy(struct output_upload *upload) {
    if (upload == NULL) return;
    free(upload->is_uploaded);
    free(upload->digests);
    free(upload->outputs);
    free(upload->bytes);
    free(upload);
}

static bool upload_alloc(struct output_upload *upload, size_t bytes, size_t count) {
    upload->bytes = malloc(bytes);
    upload->outputs = calloc(count, sizeof upload->outputs[0]);
    upload->digests = calloc(count, sizeof upload->digests[0]);
    upload->is_uploaded = calloc(count, sizeof upload->is_uploaded[0]);
    return upload->bytes != NULL && upload->outputs != NULL && upload->digests != NULL &&
           upload->is_uploaded != NULL;
}

/* NULL when memory is short. */
static struct output_upload *upload_create(const struct job *job) {
    bool stay = job->room.data != NULL;         /* the outputs, until the job is over */
    size_t count = job->output_count, size = 0; /* planned: the sum does not overflow */
    for (size_t i = 0; i < count && !stay; i++) size += job->outcome.outputs[i].size;
    struct output_upload *upload = calloc(1, sizeof *upload);
    if (upload == NULL || !upload_alloc(upload, size, count)) {
        upload_destroy(upload);
        return NULL;
    }
    uint8_t *next = upload->bytes;
    for (size_t i = 0; i < count; i++) {
        struct slice output = job->outcome.outputs[i];
        upload->outputs[i] = output;
        if (stay || output.size == 0) continue;
        memcpy(next, output.data, output.size);
        upload->outputs[i] = slice_of(next, output.size);
        next += output.size;
    }
    return upload;
}

const struct digest *upload_digest(const struct job *job, size_t output) {
    const struct output_upload *upload = job->upload;
    return upload != NULL && upload->is_uploaded[output] ? &upload->digests[output] : NULL;
}

void upload_end(struct job *job) {
    spools_end(job->spools, job->output_count);
    if (job->upload == NULL) return;
    upload_destroy(job->upload);
    job->upload = NULL;
    job->outcome.outputs = NULL;
}

/* ---- all of them ---- */

static bool is_too_large(const struct uploader *uploader, struct slice output) {
    return output.size > uploader->options.inline_bytes_max;
}

bool uploader_wants(const struct uploader *uploader, const struct job *job) {
    if (uploader == NULL || !outcome_has_outputs(&job->outcome)) return false;
    for (size_t i = 0; i < job->output_count; i++)
        if (is_too_large(uploader, job->outcome.outputs[i])) return true;
    return false;
}

static enum err upload_output(
    struct uploader *uploader, struct job *job, size_t index, struct error *err) {
    struct output_upload *upload = job->upload;
    struct blobs *blobs = uploader->options.blobs;
    struct spool *spool = job->spools != NULL ? job->spools[index] : NULL;
    if (spool != NULL) return blobs_put_spool(blobs, spool, &upload->digests[index], err);
    upload->digests[index] = digest_of(upload->outputs[index]);
    return blobs_put(blobs, &upload->digests[index], upload->outputs[index], err);
}

static void upload_outputs(struct uploader *uploader, struct job *job) {
    struct output_upload *upload = job->upload;
    struct error err;
    for (size_t i = 0; i < job->output_count; i++) {
        if (!is_too_large(uploader, upload->outputs[i])) continue;
        enum err code = upload_output(uploader, job, i, &err);
        upload->is_uploaded[i] = code == ERR_OK;
        if (code == ERR_OK) continue;
        job->outcome.code = code;
        job->outcome.err = err;
        return;
    }
}

static void run_uploader(void *context, uint32_t index) {
    struct uploader *uploader = context;
    void *job;
    while (queue_pop(uploader->queue, &job, 1, -1) == 1) {
        upload_outputs(uploader, job);
        uploader->options.on_uploaded(uploader->options.context, job);
    }
}

enum err uploader_start(
    const struct uploader_options *options, struct uploader **ret, struct error *err) {
    struct uploader *uploader = calloc(1, sizeof *uploader);
    if (uploader != NULL) uploader->queue = queue_create(options->queue_length);
    if (uploader == NULL || uploader->queue == NULL) {
        free(uploader);
        return error_no_memory(err, "no memory for the outputs that go to the blob store");
    }
    uploader->options = *options;
    const struct crew_options crew = {
        .name = "upload", .count = THREADS, .run = run_uploader, .context = uploader};
    enum err code = crew_start(&crew, &uploader->crew, err);
    if (code == ERR_OK) *ret = uploader;
    else uploader_stop(uploader);
    return code;
}

void uploader_stop(struct uploader *uploader) {
    if (uploader == NULL) return;
    queue_close(uploader->queue);
    crew_join(&uploader->crew);
    queue_destroy(uploader->queue);
    free(uploader);
}

enum err uploader_push(struct uploader *uploader, struct job *job, struct error *err) {
    struct output_upload *upload = upload_create(job);
    if (upload == NULL)
        return error_set(err, ERR_NO_MEMORY, 0,
            "give the process more memory, or lower limits.bytes_in_flight",
            "no memory for outputs that go to the blob store");
    job->upload = upload;
    job->outcome.outputs = upload->outputs;
    job_move(job, JOB_UPLOADING);
    queue_must_push(uploader->queue, job);
    return ERR_OK;
}
