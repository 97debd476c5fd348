#include "broker/claim.h"

#include <pthread.h>
#include <stdlib.h>

enum standing {
    FREE,
    ASKED,
    TAKEN,     /* a transaction commits it */
    WITHDRAWN, /* the same, but no answer is wanted */
    ANSWERED
};

struct claim {
    pthread_mutex_t lock; /* guards all below */
    enum standing standing;
    rd_kafka_topic_partition_list_t *partitions; /* NULL unless it is ASKED */
    rd_kafka_consumer_group_metadata_t *group;   /* as well */
    rd_kafka_resp_err_t answer;
};

struct claim *claim_create(void) {
    struct claim *claim = calloc(1, sizeof *claim);
    if (claim != NULL) pthread_mutex_init(&claim->lock, NULL);
    return claim;
}

/* Call with the lock held. */
static void drop(struct claim *claim) {
    if (claim->partitions != NULL) rd_kafka_topic_partition_list_destroy(claim->partitions);
    if (claim->group != NULL) rd_kafka_consumer_group_metadata_destroy(claim->group);
    claim->partitions = NULL;
    claim->group = NULL;
}

void claim_destroy(struct claim *claim) {
    if (claim == NULL) return;
    drop(claim);
    pthread_mutex_destroy(&claim->lock);
    free(claim);
}

bool claim_ask(struct claim *claim, const rd_kafka_topic_partition_list_t *partitions,
    rd_kafka_consumer_group_metadata_t *group) {
    pthread_mutex_lock(&claim->lock);
    bool is_free = claim->standing == FREE;
    if (is_free) {
        claim->partitions = rd_kafka_topic_partition_list_copy(partitions);
        claim->group = group;
        claim->standing = ASKED;
    }
    pthread_mutex_unlock(&claim->lock);
    if (!is_free) rd_kafka_consumer_group_metadata_destroy(group);
    return is_free;
}

bool claim_get_answer(struct claim *claim, rd_kafka_resp_err_t *ret) {
    pthread_mutex_lock(&claim->lock);
    bool is_answered = claim->standing == ANSWERED;
    bool is_waiting = claim->standing == ASKED || claim->standing == TAKEN;
    *ret = is_answered ? claim->answer : RD_KAFKA_RESP_ERR__IN_PROGRESS;
    if (is_answered) claim->standing = FREE;
    pthread_mutex_unlock(&claim->lock);
    return is_answered || is_waiting;
}

void claim_withdraw(struct claim *claim) {
    pthread_mutex_lock(&claim->lock);
    bool is_on_its_way = claim->standing == TAKEN || claim->standing == WITHDRAWN;
    claim->standing = is_on_its_way ? WITHDRAWN : FREE;
    drop(claim);
    pthread_mutex_unlock(&claim->lock);
}

bool claim_is_asked(struct claim *claim) {
    pthread_mutex_lock(&claim->lock);
    bool is_asked = claim->standing == ASKED;
    pthread_mutex_unlock(&claim->lock);
    return is_asked;
}

rd_kafka_topic_partition_list_t *claim_take(
    struct claim *claim, rd_kafka_consumer_group_metadata_t **group) {
    pthread_mutex_lock(&claim->lock);
    rd_kafka_topic_partition_list_t *partitions = claim->partitions;
    *group = claim->group;
    claim->partitions = NULL;
    claim->group = NULL;
    if (partitions != NULL) claim->standing = TAKEN;
    pthread_mutex_unlock(&claim->lock);
    return partitions;
}

void claim_answer(struct claim *claim, rd_kafka_resp_err_t code) {
    pthread_mutex_lock(&claim->lock);
    claim->answer = code;
    if (claim->standing == TAKEN) claim->standing = ANSWERED;
    else if (claim->standing == WITHDRAWN) claim->standing = FREE;
    pthread_mutex_unlock(&claim->lock);
}
