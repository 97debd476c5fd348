#include "publish/storer.h"

#include <stdlib.h>

#include "base/crew.h"
#include "base/queue.h"

enum { THREADS = 4 }; /* a sync takes its time; several at once take little more */

/* A job whose outputs are on their way. Not in the job's arena: that is bounded by what a message
 * may make of us, and full arenas must not end here. */
struct storing {
    struct job *job;
    struct outcome outcome;
    uint8_t *bytes; /* of all outputs */
    struct slice *outputs;
    struct digest *digests;
    const struct digest **blobs;
};

struct storer {
    struct storer_options options;
    struct queue *queue;
    struct crew *crew;
};

static void storing_destroy(struct storing *storing) {
    if (storing == NULL) return;
    free(storing->blobs);
    free(storing->digests);
    free(storing->outputs);
    free(storing->bytes);
    free(storing);
}

static bool is_stored(const struct storer *storer, struct slice output) {
    return output.size > storer->options.inline_bytes_max;
}

bool storer_wants(
    const struct storer *storer, const struct job *job, const struct outcome *outcome) {
    if (storer == NULL || outcome->code != ERR_OK) return false;
    for (size_t i = 0; i < job->output_count; i++)
        if (is_stored(storer, outcome->outputs[i])) return true;
    return false;
}

static void store_outputs(struct storer *storer, struct storing *storing) {
    struct outcome *outcome = &storing->outcome;
    for (size_t i = 0; i < storing->job->output_count && outcome->code == ERR_OK; i++) {
        if (!is_stored(storer, storing->outputs[i])) continue;
        storing->digests[i] = digest_of(storing->outputs[i]);
        storing->blobs[i] = &storing->digests[i];
        outcome->code = blobs_put(
            storer->options.blobs, &storing->digests[i], storing->outputs[i], &outcome->err);
    }
}

static void run_storer(void *context, uint32_t index) {
    struct storer *storer = context;
    void *item;
    while (queue_pop(storer->queue, &item, 1, -1) == 1) {
        struct storing *storing = item;
        store_outputs(storer, storing);
        storer->options.on_stored(
            storer->options.context, storing->job, &storing->outcome, storing->blobs);
        storing_destroy(storing);
    }
}

enum err storer_start(
    const struct storer_options *options, struct storer **ret, struct error *err) {
    struct storer *storer = calloc(1, sizeof *storer);
    if (storer != NULL) storer->queue = queue_create(options->queue_length);
    if (storer == NULL || storer->queue == NULL) {
        free(storer);
        return error_set(err, ERR_NO_MEMORY, 0, "give the process more memory",
            "no memory for the outputs that go to the blob store");
    }
    storer->options = *options;
    const struct crew_options crew = {
        .name = "store", .count = THREADS, .run = run_storer, .context = storer};
    enum err code = crew_start(&crew, &storer->crew, err);
    if (code == ERR_OK) *ret = storer;
    else storer_stop(storer);
    return code;
}

void storer_stop(struct storer *storer) {
    if (storer == NULL) return;
    queue_close(storer->queue);
    crew_join(&storer->crew);
    queue_destroy(storer->queue);
    free(storer);
}

static bool storing_alloc(struct storing *storing, size_t bytes, size_t count) {
    storing->bytes = malloc(bytes);
    storing->outputs = calloc(count, sizeof storing->outputs[0]);
    storing->digests = calloc(count, sizeof storing->digests[0]);
    storing->blobs = calloc(count, sizeof storing->blobs[0]);
    return storing->bytes != NULL && storing->outputs != NULL && storing->digests != NULL &&
           storing->blobs != NULL;
}

static struct storing *storing_create(struct job *job, const struct outcome *outcome) {
    size_t count = job->output_count, size = 0; /* planned: the sum does not overflow */
    for (size_t i = 0; i < count; i++) size += outcome->outputs[i].size;
    struct storing *storing = calloc(1, sizeof *storing);
    if (storing == NULL || !storing_alloc(storing, size, count)) {
        storing_destroy(storing);
        return NULL;
    }
    storing->job = job;
    storing->outcome = *outcome;
    storing->outcome.outputs = storing->outputs;
    uint8_t *next = storing->bytes;
    for (size_t i = 0; i < count; i++) {
        struct slice output = outcome->outputs[i];
        if (output.size > 0) memcpy(next, output.data, output.size);
        storing->outputs[i] = slice_of(next, output.size);
        next += output.size;
    }
    return storing;
}

enum err storer_push(
    struct storer *storer, struct job *job, const struct outcome *outcome, struct error *err) {
    struct storing *storing = storing_create(job, outcome);
    if (storing == NULL)
        return error_set(err, ERR_NO_MEMORY, 0,
            "give the process more memory, or lower limits.bytes_in_flight",
            "no memory for outputs that go to the blob store");
    queue_must_push(storer->queue, storing);
    return ERR_OK;
}
