/** Kafka's numbers of the requests that tests tell brokers to refuse. */
#ifndef TESTS_BROKER_REQUESTS_H
#define TESTS_BROKER_REQUESTS_H

enum request {
    REQUEST_PRODUCE = 0,
    REQUEST_OFFSET_COMMIT = 8,
    REQUEST_OFFSET_FETCH = 9,
    REQUEST_JOIN_GROUP = 11,
    REQUEST_HEARTBEAT = 12,
    REQUEST_ADD_PARTITIONS_TO_TXN = 24,
    REQUEST_END_TXN = 26,
    REQUEST_TXN_OFFSET_COMMIT = 28
};

#endif
