#include "suspects_rig.h"

#include <stdlib.h>

#include "base/log.h"
#include "testing.h"

static bool keep(void *context, struct delivery *delivery) {
    struct suspects_rig *rig = context;
    if (!rig->has_no_memory) return delivery_keep(delivery);
    delivery_destroy(delivery);
    return false;
}

static void drop(void *context, struct delivery *delivery) {
    struct suspects_rig *rig = context;
    assert_int_equal(pthread_mutex_trylock(&rig->lock), 0); /* it is not held */
    rig->in_flight--;
    pthread_mutex_unlock(&rig->lock);
    rig->dropped_offsets[rig->dropped++] = delivery->position.offset;
    delivery_destroy(delivery);
}

static uint64_t park(void *context, bool are_parked) {
    return 0; /* there are no long jobs */
}

void suspects_rig_start(struct suspects_rig *rig) {
    struct error err;
    const struct suspects_options options = {.state = rig->file->state,
        .park = park,
        .shape = {.lanes = 1, .depth = 1, .batch_jobs = 4},
        .uuid = "",
        .rules = rig->rules,
        .keeps_key_order = rig->keeps_key_order,
        .lock = &rig->lock,
        .changed = &rig->changed,
        .in_flight = &rig->in_flight,
        .keep = keep,
        .drop = drop,
        .context = rig};
    assert_int_equal(suspects_start(&options, &rig->suspects, &err), ERR_OK);
}

int suspects_rig_set_up(void **state) {
    struct suspects_rig *rig = calloc(1, sizeof *rig);
    assert_non_null(rig);
    log_init(LOG_OFF, LOG_TEXT);
    (void)state_rig_set_up((void **)&rig->file);
    pthread_mutex_init(&rig->lock, NULL);
    pthread_cond_init(&rig->changed, NULL);
    suspects_rig_start(rig);
    *state = rig;
    return 0;
}

int suspects_rig_tear_down(void **state) {
    struct suspects_rig *rig = *state;
    suspects_stop(rig->suspects, false);
    (void)state_rig_tear_down((void **)&rig->file);
    pthread_mutex_destroy(&rig->lock);
    pthread_cond_destroy(&rig->changed);
    free(rig);
    return 0;
}
