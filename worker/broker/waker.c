#include "broker/waker.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/condition.h"
#include "base/crew.h"
#include "broker/version.h"

enum { LOOK_MS = 20, ASK_MS = 500 };

struct waker {
    rd_kafka_t *client;
    struct crew *crew;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    bool is_stopping;
};

/* False: the waker has to stop. */
static bool rest(struct waker *waker) {
    pthread_mutex_lock(&waker->lock);
    if (!waker->is_stopping) condition_wait_ms(&waker->changed, &waker->lock, LOOK_MS);
    bool is_stopping = waker->is_stopping;
    pthread_mutex_unlock(&waker->lock);
    return !is_stopping;
}

/* One more than all offsets that were read; 0: it is not known. */
static uint64_t read_up_to(rd_kafka_t *client, rd_kafka_topic_partition_list_t *partitions) {
    uint64_t sum = 1;
    if (rd_kafka_position(client, partitions) != RD_KAFKA_RESP_ERR_NO_ERROR) return 0;
    for (int i = 0; i < partitions->cnt; i++)
        if (partitions->elems[i].offset > 0) sum += (uint64_t)partitions->elems[i].offset;
    return sum;
}

/* One request to each broker that leads partitions of ours. The answers do not matter. */
static void ask(rd_kafka_t *client, rd_kafka_topic_partition_list_t *partitions) {
    for (int i = 0; i < partitions->cnt; i++) partitions->elems[i].offset = RD_KAFKA_OFFSET_END;
    (void)rd_kafka_offsets_for_times(client, partitions, ASK_MS);
}

static void run_waker(void *context, uint32_t index) {
    struct waker *waker = context;
    rd_kafka_topic_partition_list_t *partitions;
    uint64_t last = 0;
    while (rest(waker)) {
        if (rd_kafka_assignment(waker->client, &partitions) != RD_KAFKA_RESP_ERR_NO_ERROR) continue;
        uint64_t now = read_up_to(waker->client, partitions);
        if (now != last && partitions->cnt > 0) ask(waker->client, partitions);
        last = now;
        rd_kafka_topic_partition_list_destroy(partitions);
    }
}

static void destroy(struct waker *waker) {
    pthread_cond_destroy(&waker->changed);
    pthread_mutex_destroy(&waker->lock);
    free(waker);
}

enum err waker_start(rd_kafka_t *client, struct waker **ret, struct error *err) {
    *ret = NULL;
    if (rd_kafka_version() >= VERSION_FETCH_BACKOFF) return ERR_OK;
    struct waker *waker = calloc(1, sizeof *waker);
    if (waker == NULL) return error_no_memory(err, "no memory to wake a Kafka consumer");
    waker->client = client;
    pthread_mutex_init(&waker->lock, NULL);
    pthread_cond_init(&waker->changed, NULL);
    const struct crew_options crew = {
        .name = "waker", .count = 1, .run = run_waker, .context = waker};
    enum err code = crew_start(&crew, &waker->crew, err);
    if (code == ERR_OK) *ret = waker;
    else destroy(waker);
    return code;
}

void waker_stop(struct waker **ret) {
    struct waker *waker = *ret;
    *ret = NULL;
    if (waker == NULL) return;
    pthread_mutex_lock(&waker->lock);
    waker->is_stopping = true;
    pthread_cond_signal(&waker->changed);
    pthread_mutex_unlock(&waker->lock);
    crew_join(&waker->crew);
    destroy(waker);
}
