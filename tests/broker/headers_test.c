/* What a message costs in memory is bounded by its size: its headers are counted, and not more than
 * DELIVERY_HEADERS_MAX of them are taken. */
#include "broker/kafka_harness.h"
#include "testing.h"

enum { MANY = 100000 };

static struct delivery *take(struct source *source) {
    struct delivery *delivery = NULL;
    struct error err;
    bool at_end;
    while (delivery == NULL)
        assert_int_equal(source_poll(source, KAFKA_POLL_MS, &delivery, &at_end, &err), ERR_OK);
    return delivery;
}

static void produce_with_headers(const struct broker *broker, int count) {
    char why[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    assert_int_equal(
        rd_kafka_conf_set(conf, "bootstrap.servers", broker->bootstrap, why, sizeof why),
        RD_KAFKA_CONF_OK);
    rd_kafka_t *client = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
    assert_non_null(client);
    rd_kafka_headers_t *headers = rd_kafka_headers_new(MANY);
    for (int i = 0; i < count; i++) rd_kafka_header_add(headers, "h", 1, "v", 1);
    rd_kafka_resp_err_t code =
        rd_kafka_producev(client, RD_KAFKA_V_TOPIC(broker->jobs), RD_KAFKA_V_PARTITION(0),
            RD_KAFKA_V_VALUE("job", 3), RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_END);
    assert_int_equal(code, RD_KAFKA_RESP_ERR_NO_ERROR);
    assert_int_equal(rd_kafka_flush(client, KAFKA_PATIENCE_MS), RD_KAFKA_RESP_ERR_NO_ERROR);
    rd_kafka_destroy(client);
}

TEST(many_headers_are_cut_and_all_that_is_taken_is_counted) {
    struct broker broker;
    struct events events = {0};
    broker_start(&broker, 1);
    produce_with_headers(&broker, MANY);
    produce_with_headers(&broker, DELIVERY_HEADERS_MAX);
    struct source *source = consumer_start(&broker, &events, NULL);
    struct delivery *many = take(source), *few = take(source);
    assert_true(many->is_cut);
    assert_int_equal(many->header_count, DELIVERY_HEADERS_MAX);
    assert_non_null(many->kept); /* the client's list of all of them is gone */
    assert_false(few->is_cut);
    assert_int_equal(few->header_count, DELIVERY_HEADERS_MAX);
    assert_true(slice_is_text(few->headers[DELIVERY_HEADERS_MAX - 1].value, "v"));
    /* the list, what a letter of it takes, and the bytes of both */
    assert_true(few->held_bytes >=
                DELIVERY_HEADERS_MAX * (sizeof(struct header) + DELIVERY_HEADER_BYTES + 2 * 2) + 3);
    delivery_destroy(many);
    delivery_destroy(few);
    consumer_stop(source);
    broker_stop(&broker);
}

RUN_TESTS(T(many_headers_are_cut_and_all_that_is_taken_is_counted))
