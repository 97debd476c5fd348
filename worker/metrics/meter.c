#include "metrics/meter.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/condition.h"
#include "base/crew.h"
#include "gpu/device.h"
#include "state/crash.h"

#define STALE_NS 10000000000ull

enum { LOOK_MS = 1000, STOP_MS = 2000 };

struct meter {
    char uuid[GPU_UUID_SIZE]; /* ours, because the thread may outlive the device */
    struct crew *crew;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    bool is_stopping, has_ended;
    struct usage_reading reading;
    uint64_t read_ns;
};

/* False: the meter has to stop. */
static bool show(struct meter *meter, const struct usage_reading *reading) {
    pthread_mutex_lock(&meter->lock);
    meter->reading = *reading;
    meter->read_ns = clock_ns();
    uint64_t until_ns = clock_ns_in(LOOK_MS);
    while (!meter->is_stopping && condition_wait_until(&meter->changed, &meter->lock, until_ns)) {
    }
    bool is_stopping = meter->is_stopping;
    pthread_mutex_unlock(&meter->lock);
    return !is_stopping;
}

static void end(struct meter *meter) {
    pthread_mutex_lock(&meter->lock);
    meter->has_ended = true;
    pthread_cond_signal(&meter->changed);
    pthread_mutex_unlock(&meter->lock);
}

static void run_meter(void *context, uint32_t index) {
    crash_is_no_evidence();
    struct meter *meter = context;
    struct usage_reading reading;
    struct usage *usage = usage_open(meter->uuid);
    do usage_read(usage, &reading);
    while (show(meter, &reading));
    usage_close(usage);
    end(meter);
}

static void destroy(struct meter *meter) {
    pthread_cond_destroy(&meter->changed);
    pthread_mutex_destroy(&meter->lock);
    free(meter);
}

enum err meter_start(const char *uuid, struct meter **ret, struct error *err) {
    struct meter *meter = calloc(1, sizeof *meter);
    if (meter == NULL) return error_no_memory(err, "no memory for how the device is used");
    snprintf(meter->uuid, sizeof meter->uuid, "%s", uuid);
    pthread_mutex_init(&meter->lock, NULL);
    pthread_cond_init(&meter->changed, NULL);
    const struct crew_options crew = {
        .name = "meter", .count = 1, .run = run_meter, .context = meter};
    enum err code = crew_start(&crew, &meter->crew, err);
    if (code == ERR_OK) *ret = meter;
    else destroy(meter);
    return code;
}

void meter_read(struct meter *meter, uint64_t now_ns, struct usage_reading *ret) {
    *ret = (struct usage_reading){0};
    if (meter == NULL) return;
    pthread_mutex_lock(&meter->lock);
    if (now_ns < meter->read_ns + STALE_NS) *ret = meter->reading;
    pthread_mutex_unlock(&meter->lock);
}

bool meter_stop(struct meter *meter) {
    if (meter == NULL) return true;
    uint64_t until_ns = clock_ns_in(STOP_MS);
    pthread_mutex_lock(&meter->lock);
    meter->is_stopping = true;
    pthread_cond_signal(&meter->changed);
    while (!meter->has_ended && condition_wait_until(&meter->changed, &meter->lock, until_ns)) {
    }
    bool has_ended = meter->has_ended;
    pthread_mutex_unlock(&meter->lock);
    if (!has_ended) return false; /* the thread still uses the meter */
    crew_join(&meter->crew);
    destroy(meter);
    return true;
}
