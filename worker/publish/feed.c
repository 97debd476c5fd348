#include "publish/feed.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/crew.h"
#include "base/pulse.h"
#include "publish/message.h"
#include "state/crash.h"

enum { SERVE_MS = 20, FLUSH_MS = 1000 };

struct shown {
    struct record record; /* first, so that on_settled finds it */
    struct feed *feed;
    struct shown *next; /* that waits */
    struct position position;
    uint8_t bytes[]; /* the job's key, then the message */
};

struct feed {
    struct sink *sink; /* the thread's */
    void (*on_failed)(const struct error *err);
    size_t sent; /* the thread's: on their way */
    struct crew *crew;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t has_some;
    bool is_stopping;
    struct shown *waiting; /* in no order */
    size_t waiting_count;
};

/* --- what jobs show --- */

static bool is_of(const struct shown *shown, const struct position *position) {
    return shown->position.topic == position->topic &&
           shown->position.partition == position->partition &&
           shown->position.offset == position->offset;
}

/* With the lock. Returns what is not shown any more: the job's older message, or the new one where
 * there is no room. */
static struct shown *put(struct feed *feed, struct shown *shown) {
    struct shown **at = &feed->waiting;
    while (*at != NULL && !is_of(*at, &shown->position)) at = &(*at)->next;
    struct shown *older = *at;
    if (older == NULL && feed->waiting_count == FEED_MESSAGES_MAX) return shown;
    shown->next = older != NULL ? older->next : NULL;
    if (older == NULL) feed->waiting_count++;
    *at = shown;
    return older;
}

static void on_settled(struct record *record, enum err code, const struct error *err);

static struct shown *encode(struct feed *feed, const struct job *job) {
    static const struct header content_type = {.name = {(const uint8_t *)"content-type", 12},
        .value = {(const uint8_t *)"application/msgpack", 19}};
    const struct delivery *delivery = job->delivery;
    size_t key_size = delivery->has_key ? delivery->key.size : 0;
    size_t size_max = message_progress_size(job);
    struct shown *shown = malloc(sizeof *shown + key_size + size_max);
    if (shown == NULL) return NULL;
    if (key_size > 0) memcpy(shown->bytes, delivery->key.data, key_size);
    uint8_t *payload = shown->bytes + key_size;
    *shown = (struct shown){.feed = feed,
        .position = delivery->position,
        .record = {.route = ROUTE_PROGRESS,
            .has_key = delivery->has_key,
            .key = slice_of(shown->bytes, key_size),
            .payload = slice_of(payload, message_write_progress(job, payload, size_max)),
            .header_count = 1,
            .headers = &content_type,
            .on_settled = on_settled}};
    return shown;
}

void feed_show(struct feed *feed, const struct job *job) {
    struct shown *shown = encode(feed, job);
    if (shown == NULL) return; /* the next one will do */
    pthread_mutex_lock(&feed->lock);
    struct shown *rest = put(feed, shown);
    pthread_cond_signal(&feed->has_some);
    pthread_mutex_unlock(&feed->lock);
    free(rest);
}

/* --- the thread --- */

static void on_settled(struct record *record, enum err code, const struct error *err) {
    struct shown *shown = (struct shown *)record;
    shown->feed->sent--;
    if (code != ERR_OK) shown->feed->on_failed(err);
    free(shown);
}

/* The first that waits, if there is room for one more on its way; waits for one where none is. */
static struct shown *take(struct feed *feed, bool *is_over) {
    pthread_mutex_lock(&feed->lock);
    while (feed->waiting == NULL && feed->sent == 0 && !feed->is_stopping)
        pthread_cond_wait(&feed->has_some, &feed->lock);
    struct shown *shown = feed->sent < FEED_MESSAGES_MAX ? feed->waiting : NULL;
    if (shown != NULL) {
        feed->waiting = shown->next;
        feed->waiting_count--;
    }
    *is_over = feed->is_stopping && shown == NULL;
    pthread_mutex_unlock(&feed->lock);
    return shown;
}

static void run_feed(void *context, uint32_t index) {
    crash_is_no_evidence();
    struct feed *feed = context;
    struct error err;
    bool is_over = false;
    while (!is_over) {
        pulse_idle();
        struct shown *shown = take(feed, &is_over);
        pulse_busy();
        if (shown != NULL) {
            feed->sent++;
            sink_send(feed->sink, &shown->record);
        }
        if (!is_over) sink_serve(feed->sink, shown != NULL ? 0 : SERVE_MS);
    }
    if (sink_flush(feed->sink, FLUSH_MS, &err) != ERR_OK) feed->on_failed(&err);
    pulse_idle();
    sink_destroy(feed->sink);
}

/* --- start and stop --- */

static void feed_destroy(struct feed *feed) {
    while (feed->waiting != NULL) {
        struct shown *shown = feed->waiting;
        feed->waiting = shown->next;
        free(shown);
    }
    pthread_cond_destroy(&feed->has_some);
    pthread_mutex_destroy(&feed->lock);
    free(feed);
}

enum err feed_start(struct sink *sink, void (*on_failed)(const struct error *err),
    struct feed **ret, struct error *err) {
    struct feed *feed = calloc(1, sizeof *feed);
    if (feed == NULL) {
        sink_destroy(sink);
        return error_no_memory(err, "no memory for what long jobs show");
    }
    feed->sink = sink;
    feed->on_failed = on_failed;
    pthread_mutex_init(&feed->lock, NULL);
    pthread_cond_init(&feed->has_some, NULL);
    const struct crew_options crew = {.name = "feed", .count = 1, .run = run_feed, .context = feed};
    enum err code = crew_start(&crew, &feed->crew, err);
    if (code == ERR_OK) {
        *ret = feed;
        return ERR_OK;
    }
    sink_destroy(sink);
    feed_destroy(feed);
    return code;
}

void feed_stop(struct feed *feed) {
    if (feed == NULL) return;
    pthread_mutex_lock(&feed->lock);
    feed->is_stopping = true;
    pthread_cond_signal(&feed->has_some);
    pthread_mutex_unlock(&feed->lock);
    crew_join(&feed->crew);
    feed_destroy(feed);
}
