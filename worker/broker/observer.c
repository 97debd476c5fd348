#include "broker/observer.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/crew.h"
#include "broker/client.h"

enum { ASK_MS = 2000 };

struct observer {
    rd_kafka_t *client;
    observer_question *question;
    struct crew *crew;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t changed;
    bool is_stopping, is_answered;
    rd_kafka_topic_partition_list_t *asked; /* taken by the thread */
    rd_kafka_topic_partition_list_t *answer;
    rd_kafka_resp_err_t code;
};

/* NULL: the observer has to stop. */
static rd_kafka_topic_partition_list_t *wait_for_question(struct observer *observer) {
    pthread_mutex_lock(&observer->lock);
    while (observer->asked == NULL && !observer->is_stopping)
        pthread_cond_wait(&observer->changed, &observer->lock);
    rd_kafka_topic_partition_list_t *asked = observer->asked;
    observer->asked = NULL;
    pthread_mutex_unlock(&observer->lock);
    return asked;
}

static void run_observer(void *context, uint32_t index) {
    struct observer *observer = context;
    rd_kafka_topic_partition_list_t *partitions;
    while ((partitions = wait_for_question(observer)) != NULL) {
        rd_kafka_poll(observer->client, 0); /* its callbacks, which may renew a token */
        rd_kafka_resp_err_t code = observer->question(observer->client, partitions, ASK_MS);
        pthread_mutex_lock(&observer->lock);
        observer->answer = partitions;
        observer->code = code;
        observer->is_answered = true;
        pthread_mutex_unlock(&observer->lock);
    }
}

struct observer *observer_create(rd_kafka_t *member, observer_question *question) {
    struct error ignored;
    struct observer *observer = calloc(1, sizeof *observer);
    if (observer == NULL) return NULL;
    pthread_mutex_init(&observer->lock, NULL);
    pthread_cond_init(&observer->changed, NULL);
    observer->question = question;
    observer->client = client_create_beside(member);
    const struct crew_options crew = {
        .name = "observer", .count = 1, .run = run_observer, .context = observer};
    if (observer->client != NULL && crew_start(&crew, &observer->crew, &ignored) == ERR_OK)
        return observer;
    observer_destroy(observer);
    return NULL;
}

void observer_destroy(struct observer *observer) {
    if (observer == NULL) return;
    pthread_mutex_lock(&observer->lock);
    observer->is_stopping = true;
    pthread_cond_signal(&observer->changed);
    pthread_mutex_unlock(&observer->lock);
    crew_join(&observer->crew);
    client_destroy(observer->client);
    if (observer->answer != NULL) rd_kafka_topic_partition_list_destroy(observer->answer);
    pthread_cond_destroy(&observer->changed);
    pthread_mutex_destroy(&observer->lock);
    free(observer);
}

void observer_ask(struct observer *observer, const rd_kafka_topic_partition_list_t *partitions) {
    pthread_mutex_lock(&observer->lock);
    observer->asked = rd_kafka_topic_partition_list_copy(partitions);
    pthread_cond_signal(&observer->changed);
    pthread_mutex_unlock(&observer->lock);
}

bool observer_take(
    struct observer *observer, rd_kafka_topic_partition_list_t **ret, rd_kafka_resp_err_t *code) {
    pthread_mutex_lock(&observer->lock);
    bool is_answered = observer->is_answered;
    rd_kafka_topic_partition_list_t *answer = observer->answer;
    *code = observer->code;
    observer->is_answered = false;
    observer->answer = NULL;
    pthread_mutex_unlock(&observer->lock);
    if (is_answered && *code != RD_KAFKA_RESP_ERR_NO_ERROR) {
        rd_kafka_topic_partition_list_destroy(answer);
        answer = NULL;
    }
    *ret = answer;
    return is_answered;
}
