#include "cli/message.h"

#include <inttypes.h>
#include <stdio.h>

#include "decode/print.h"
#include "decode/print_json.h"

static void print_as_yaml(const struct delivery *delivery) {
    const struct position *position = &delivery->position;
    printf("--- # %s/%" PRId32 "/%" PRId64 "\n", position->topic, position->partition,
        position->offset);
    if (delivery->has_key) {
        printf("# key: ");
        print_text(delivery->key, stdout);
        printf("\n");
    }
    for (size_t i = 0; i < delivery->header_count; i++) {
        printf("# ");
        print_text(delivery->headers[i].name, stdout);
        printf(": ");
        print_text(delivery->headers[i].value, stdout);
        printf("\n");
    }
    print_message_payload(delivery->payload, stdout);
}

static void print_as_json(const struct delivery *delivery) {
    const struct position *position = &delivery->position;
    printf("{\"topic\": ");
    print_text_json(slice_of_text(position->topic), stdout);
    printf(", \"partition\": %" PRId32 ", \"offset\": %" PRId64 ", \"published_ms\": %" PRIu64
           ", \"key\": ",
        position->partition, position->offset, position->published_unix_ms);
    if (delivery->has_key) print_text_json(delivery->key, stdout);
    else printf("null");
    printf(", \"headers\": [");
    for (size_t i = 0; i < delivery->header_count; i++) {
        printf(i == 0 ? "[" : ", [");
        print_text_json(delivery->headers[i].name, stdout);
        printf(", ");
        print_text_json(delivery->headers[i].value, stdout);
        printf("]");
    }
    printf("], \"message\": ");
    print_message_json(delivery->payload, stdout);
    printf("}\n");
}

void message_print(const struct delivery *delivery, bool is_json) {
    if (is_json) print_as_json(delivery);
    else print_as_yaml(delivery);
    fflush(stdout);
}

void message_print_payload(struct slice payload, bool is_json) {
    if (!is_json) printf("---\n");
    if (is_json) print_message_json(payload, stdout);
    else print_message_payload(payload, stdout);
    if (is_json) printf("\n");
}
