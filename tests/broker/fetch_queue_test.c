/* How librdkafka fills its queue of fetched messages (broker/waker.h). */
#include "base/clock.h"
#include "broker/kafka_harness.h"
#include "testing.h"

/* Each message is more than the queue of fetched ones may have, so each is a fetch of its own,
 * after the queue was full. Looks at the queue a second apart would make most of them slow. */
TEST(a_full_queue_is_filled_again_as_soon_as_it_has_room) {
    enum { COUNT = 60, BYTES = 2048, QUICK_MS = 500 };
    static const char bytes[BYTES];
    struct setting narrow[] = {
        {"queued.max.messages.kbytes", "1"}, {"max.partition.fetch.bytes", "2048"}, {NULL, NULL}};
    struct broker broker;
    struct events events = {0};
    struct position positions[COUNT];
    broker_start(&broker, 1);
    struct sink *sink = producer_start(&broker, &events, NULL);
    for (int i = 0; i < COUNT; i++) {
        struct sent sent = {
            .record = {
                .topic = broker.jobs, .payload = slice_of(bytes, BYTES), .on_settled = sent_note}};
        sink_send(sink, &sent.record);
        sent_wait(sink, &sent); /* or several would be one batch, which is fetched whole */
        assert_int_equal(sent.code, ERR_OK);
    }
    sink_destroy(sink);
    struct source *source = consumer_start(&broker, &events, narrow);
    int quick_count = 0;
    for (int i = 0; i < COUNT; i++) {
        uint64_t quick_ns = clock_ns_in(QUICK_MS);
        consumer_take_many(source, &positions[i], 1);
        quick_count += clock_ns() < quick_ns;
    }
    assert_in_range(quick_count, COUNT / 2, COUNT);
    for (int i = 0; i < COUNT; i++) source_finish(source, &positions[i]);
    consumer_stop(source);
    broker_stop(&broker);
}

RUN_TESTS(T(a_full_queue_is_filled_again_as_soon_as_it_has_room))
