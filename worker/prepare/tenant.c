#include "prepare/tenant.h"

static enum err refuse(struct error *err) {
    return error_set(err, ERR_NO_MEMORY, 0, "split the job, or give the process more memory",
        "no memory for the name of the job's tenant");
}

/* A topic's name holds no zero byte. */
static enum err name_by_key(struct job *job, struct slice *ret, struct error *err) {
    const struct delivery *delivery = job->delivery;
    size_t topic_bytes = strlen(delivery->position.topic) + 1;
    uint8_t *name = arena_alloc(&job->arena, 1, topic_bytes + delivery->key.size);
    if (name == NULL) return refuse(err);
    memcpy(name, delivery->position.topic, topic_bytes);
    if (delivery->key.size > 0) memcpy(name + topic_bytes, delivery->key.data, delivery->key.size);
    *ret = slice_of(name, topic_bytes + delivery->key.size);
    return ERR_OK;
}

/* The programs in the order of its steps, several steps of one after the other named once. They
 * live as long as the worker, so that their addresses tell them apart. */
static enum err name_by_programs(
    struct job *job, const struct plan *plan, struct slice *ret, struct error *err) {
    const struct program **names = arena_alloc(&job->arena, plan->launch_count, sizeof *names);
    size_t count = 0;
    if (names == NULL) return refuse(err);
    for (size_t i = 0; i < plan->launch_count; i++)
        if (count == 0 || names[count - 1] != plan->launches[i].program)
            names[count++] = plan->launches[i].program;
    *ret = slice_of(names, count * sizeof *names);
    return ERR_OK;
}

enum err tenant_name(enum isolation isolation, struct job *job, const struct plan *plan,
    struct slice *ret, struct error *err) {
    *ret = (struct slice){0};
    switch (isolation) {
    case ISOLATION_NONE: break;
    case ISOLATION_PROGRAM: return name_by_programs(job, plan, ret, err);
    case ISOLATION_KEY: return name_by_key(job, ret, err);
    }
    return ERR_OK;
}
