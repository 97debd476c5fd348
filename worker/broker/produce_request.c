#include "broker/produce_request.h"

#include <endian.h>

enum {
    FIRST_WITH_TRANSACTIONS = 3, /* versions in which something was added */
    FIRST_WITH_THROTTLING = 1,
    FIRST_WITH_APPEND_TIME = 2,
    FIRST_WITH_LOG_START = 5,
    MAGIC_AT = 16, /* of a batch of records; behind it, version 2 has them counted at COUNT_AT */
    COUNT_AT = 57,
    MAGIC = 2
};

bool produce_take_16(struct slice *from, int16_t *ret) {
    struct slice taken;
    uint16_t word;
    if (!slice_take(from, sizeof word, &taken)) return false;
    memcpy(&word, taken.data, sizeof word);
    *ret = (int16_t)be16toh(word);
    return true;
}

bool produce_take_32(struct slice *from, int32_t *ret) {
    struct slice taken;
    uint32_t word;
    if (!slice_take(from, sizeof word, &taken)) return false;
    memcpy(&word, taken.data, sizeof word);
    *ret = (int32_t)be32toh(word);
    return true;
}

static bool take_64(struct slice *from, int64_t *ret) {
    struct slice taken;
    uint64_t word;
    if (!slice_take(from, sizeof word, &taken)) return false;
    memcpy(&word, taken.data, sizeof word);
    *ret = (int64_t)be64toh(word);
    return true;
}

/* A negative length is that of nothing. */
static bool take_text(struct slice *from, struct slice *ret) {
    int16_t length;
    return produce_take_16(from, &length) && slice_take(from, length > 0 ? (size_t)length : 0, ret);
}

bool produce_read_request(struct slice request, struct produce_entries *ret, size_t *acks_at) {
    struct slice rest = request, text;
    int16_t api, version, acks;
    int32_t number, timeout_ms;
    if (!produce_take_16(&rest, &api) || !produce_take_16(&rest, &version) ||
        !produce_take_32(&rest, &number) || !take_text(&rest, &text))
        return false;
    if (api != PRODUCE_API || version < 0 || version > PRODUCE_VERSION_MAX) return false;
    if (version >= FIRST_WITH_TRANSACTIONS && !take_text(&rest, &text)) return false;
    *acks_at = request.size - rest.size;
    *ret = (struct produce_entries){.number = number, .version = version};
    if (!produce_take_16(&rest, &acks) || !produce_take_32(&rest, &timeout_ms) ||
        !produce_take_32(&rest, &ret->topics))
        return false;
    ret->rest = rest;
    return true;
}

bool produce_read_response(struct slice response, int16_t version, struct produce_entries *ret) {
    *ret = (struct produce_entries){.rest = response, .version = version, .is_response = true};
    return produce_take_32(&ret->rest, &ret->number) && produce_take_32(&ret->rest, &ret->topics);
}

static uint32_t count_messages(struct slice records) {
    struct slice count = {0};
    int32_t ret = 0;
    if (records.size < COUNT_AT + sizeof ret || records.data[MAGIC_AT] != MAGIC) return 0;
    count = slice_of(records.data + COUNT_AT, sizeof ret);
    return produce_take_32(&count, &ret) && ret > 0 ? (uint32_t)ret : 0;
}

static bool take_appended(struct slice *from, struct produce_entry *ret) {
    struct slice records;
    int32_t length;
    if (!produce_take_32(from, &length) ||
        !slice_take(from, length > 0 ? (size_t)length : 0, &records))
        return false;
    ret->bytes = (uint32_t)records.size;
    ret->messages = count_messages(records);
    return true;
}

static bool take_answer(struct slice *from, int16_t version, struct produce_entry *ret) {
    int64_t ignored;
    return produce_take_16(from, &ret->code) && take_64(from, &ret->first_offset) &&
           (version < FIRST_WITH_APPEND_TIME || take_64(from, &ignored)) &&
           (version < FIRST_WITH_LOG_START || take_64(from, &ignored));
}

enum produce_next produce_next(struct produce_entries *entries, struct produce_entry *ret) {
    while (entries->partitions <= 0) {
        if (entries->topics <= 0) return PRODUCE_END;
        entries->topics--;
        if (!take_text(&entries->rest, &entries->topic) ||
            !produce_take_32(&entries->rest, &entries->partitions))
            return PRODUCE_BROKEN;
    }
    entries->partitions--;
    *ret = (struct produce_entry){.topic = entries->topic};
    bool is_read = produce_take_32(&entries->rest, &ret->partition) &&
                   (entries->is_response ? take_answer(&entries->rest, entries->version, ret)
                                         : take_appended(&entries->rest, ret));
    return is_read ? PRODUCE_ENTRY : PRODUCE_BROKEN;
}

/* ---- a refusal ---- */

static void put_integer(FILE *to, int64_t value, unsigned bytes) {
    for (unsigned i = bytes; i-- > 0;) fputc((int)((uint64_t)value >> 8 * i & 0xff), to);
}

static void put_topic(FILE *to, const struct produce_entries *entries) {
    put_integer(to, (int64_t)entries->topic.size, sizeof(int16_t));
    fwrite(entries->topic.data, 1, entries->topic.size, to);
    put_integer(to, (int64_t)entries->partitions + 1, sizeof(int32_t));
}

void produce_write_refusal(struct produce_entries request, int16_t code, FILE *response) {
    struct produce_entry entry;
    put_integer(response, request.number, sizeof(int32_t));
    put_integer(response, request.topics, sizeof(int32_t));
    for (int32_t topics = request.topics; produce_next(&request, &entry) == PRODUCE_ENTRY;) {
        if (request.topics < topics) put_topic(response, &request);
        topics = request.topics;
        put_integer(response, entry.partition, sizeof(int32_t));
        put_integer(response, code, sizeof code);
        put_integer(response, -1, sizeof(int64_t));
        if (request.version >= FIRST_WITH_APPEND_TIME) put_integer(response, -1, sizeof(int64_t));
        if (request.version >= FIRST_WITH_LOG_START) put_integer(response, -1, sizeof(int64_t));
    }
    if (request.version >= FIRST_WITH_THROTTLING) put_integer(response, 0, sizeof(int32_t));
}
