#include "cli/message.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/json_writer.h"
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
    struct json_writer json = {.out = stdout, .is_spaced = true};
    json_object(&json, NULL);
    json_bytes(&json, "topic", slice_of_text(position->topic));
    json_int(&json, "partition", position->partition);
    json_int(&json, "offset", position->offset);
    json_uint(&json, "published_ms", position->published_unix_ms);
    if (delivery->has_key) json_bytes(&json, "key", delivery->key);
    else json_null(&json, "key");
    json_array(&json, "headers");
    for (size_t i = 0; i < delivery->header_count; i++) {
        json_array(&json, NULL);
        json_bytes(&json, NULL, delivery->headers[i].name);
        json_bytes(&json, NULL, delivery->headers[i].value);
        json_end(&json);
    }
    json_end(&json);
    print_message_json(delivery->payload, json_value(&json, "message"));
    json_end_line(&json);
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
