#include "base/crew.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/pulse.h"

enum { THREAD_NAME_SIZE = 16 }; /* what Linux keeps */

struct member {
    struct crew *crew;
    pthread_t thread;
};

enum verdict { VERDICT_NONE, VERDICT_RUN, VERDICT_LEAVE };

struct crew {
    struct crew_options options;
    uint32_t started;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t decided;
    enum verdict verdict;
    struct member members[];
};

static void decide(struct crew *crew, enum verdict verdict) {
    pthread_mutex_lock(&crew->lock);
    crew->verdict = verdict;
    pthread_cond_broadcast(&crew->decided);
    pthread_mutex_unlock(&crew->lock);
}

/* False: the crew could not be completed, and no thread calls the function. */
static bool await_others(struct crew *crew) {
    pthread_mutex_lock(&crew->lock);
    while (crew->verdict == VERDICT_NONE) pthread_cond_wait(&crew->decided, &crew->lock);
    bool runs = crew->verdict == VERDICT_RUN;
    pthread_mutex_unlock(&crew->lock);
    return runs;
}

static void name_thread(const struct crew_options *options, uint32_t index) {
    char name[THREAD_NAME_SIZE];
    if (options->count == 1) snprintf(name, sizeof name, "%s", options->name);
    else snprintf(name, sizeof name, "%s-%" PRIu32, options->name, index);
    pthread_setname_np(pthread_self(), name);
}

static void *member_thread(void *context) {
    struct member *member = context;
    const struct crew_options *options = &member->crew->options;
    uint32_t index = (uint32_t)(member - member->crew->members);
    if (!await_others(member->crew)) return NULL;
    name_thread(options, index);
    pulse_start(options->name);
    options->run(options->context, index);
    pulse_idle();
    return NULL;
}

enum err crew_start(const struct crew_options *options, struct crew **ret, struct error *err) {
    struct crew *crew = calloc(1, sizeof *crew + options->count * sizeof crew->members[0]);
    if (crew == NULL)
        return error_no_memory(err, "no memory for the threads named '%s'", options->name);
    int native = 0;
    crew->options = *options;
    pthread_mutex_init(&crew->lock, NULL);
    pthread_cond_init(&crew->decided, NULL);
    while (crew->started < options->count && native == 0) {
        struct member *member = &crew->members[crew->started];
        member->crew = crew;
        native = pthread_create(&member->thread, NULL, member_thread, member);
        if (native == 0) crew->started++;
    }
    decide(crew, native == 0 ? VERDICT_RUN : VERDICT_LEAVE);
    if (native == 0) {
        *ret = crew;
        return ERR_OK;
    }
    error_set(err, ERR_NO_MEMORY, native,
        "raise the limits on threads (ulimit -u, TasksMax of systemd, the container's limit on "
        "processes) and on memory",
        "only %" PRIu32 " of %" PRIu32 " threads named '%s' could be started: %s", crew->started,
        options->count, options->name, strerror(native));
    crew_join(&crew);
    return ERR_NO_MEMORY;
}

uint32_t crew_count(const struct crew *crew) {
    return crew == NULL ? 0 : crew->started;
}

void crew_join(struct crew **crew) {
    struct crew *joined = *crew;
    if (joined == NULL) return;
    for (uint32_t i = 0; i < joined->started; i++) pthread_join(joined->members[i].thread, NULL);
    pthread_cond_destroy(&joined->decided);
    pthread_mutex_destroy(&joined->lock);
    free(joined);
    *crew = NULL;
}
