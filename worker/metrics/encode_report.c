#include "metrics/encode_report.h"

#include <stdlib.h>

#include "base/pack.h"

static void pack_worker(msgpack_packer *packer, const struct identity *identity) {
    pack_text(packer, "worker");
    msgpack_pack_map(packer, 4);
    pack_text(packer, "host");
    pack_text(packer, identity->host);
    pack_text(packer, "device");
    pack_text(packer, identity->device);
    pack_uint(packer, "device_index", identity->device_index);
    pack_text(packer, "version");
    pack_text(packer, identity->version);
}

/* Packs the outcomes that occurred. */
static void pack_outcomes(msgpack_packer *packer, const uint64_t outcomes[ERR_COUNT]) {
    size_t count = 0;
    for (int code = 0; code < ERR_COUNT; code++) count += outcomes[code] > 0;
    pack_text(packer, "outcomes");
    msgpack_pack_map(packer, count);
    for (int code = 0; code < ERR_COUNT; code++)
        if (outcomes[code] > 0) pack_uint(packer, err_code((enum err)code), outcomes[code]);
}

static void pack_section(
    msgpack_packer *packer, enum section section, const struct totals *totals) {
    size_t count = 0;
    for (int i = 0; i < COUNTER_COUNT; i++) count += counter_infos[i].section == section;
    pack_text(packer, section_names[section]);
    msgpack_pack_map(packer, count);
    for (int i = 0; i < COUNTER_COUNT; i++)
        if (counter_infos[i].section == section)
            pack_uint(packer, counter_infos[i].name, totals->of[i]);
}

static void pack_gauges(msgpack_packer *packer, const struct gauges *gauges) {
#define X(gauge) {#gauge, gauges->gauge},
    const struct {
        const char *name;
        uint64_t value;
    } fields[] = {GAUGE_LIST(X)};
#undef X
    const size_t count = sizeof fields / sizeof fields[0];
    pack_text(packer, "gauges");
    msgpack_pack_map(packer, count);
    for (size_t i = 0; i < count; i++) pack_uint(packer, fields[i].name, fields[i].value);
}

static void pack_oldest(msgpack_packer *packer, const struct oldest_unfinished *oldest) {
    pack_text(packer, "oldest_unfinished");
    if (oldest->topic == NULL) {
        msgpack_pack_nil(packer);
        return;
    }
    msgpack_pack_map(packer, 4);
    pack_text(packer, "topic");
    pack_text(packer, oldest->topic);
    pack_uint(packer, "partition", (uint64_t)oldest->partition);
    pack_uint(packer, "offset", (uint64_t)oldest->offset);
    pack_uint(packer, "age_ns", oldest->age_ns);
}

/*
 * msgpack-c's growing buffer. Only the packer's return values tell that it could not grow, so this
 * is kept here and checked once, at the end.
 */
struct growing {
    msgpack_sbuffer buffer;
    bool failed;
};

static int write_growing(void *context, const char *bytes, size_t size) {
    struct growing *growing = context;
    if (!growing->failed && msgpack_sbuffer_write(&growing->buffer, bytes, size) != 0)
        growing->failed = true;
    return growing->failed ? -1 : 0;
}

struct slice encode_report(const struct report *report, const struct identity *identity) {
    struct growing growing = {0};
    msgpack_packer packer;
    msgpack_packer_init(&packer, &growing, write_growing);
    msgpack_pack_map(&packer, 9 + SECTION_TOLD);
    pack_uint(&packer, "v", 1);
    pack_worker(&packer, identity);
    pack_uint(&packer, "sequence", report->sequence);
    pack_uint(&packer, "unix_ms", report->unix_ms);
    pack_uint(&packer, "interval_ns", report->interval_ns);
    pack_uint(&packer, "uptime_ns", report->uptime_ns);
    pack_outcomes(&packer, report->totals.outcomes);
    for (int s = 0; s < SECTION_TOLD; s++) pack_section(&packer, (enum section)s, &report->totals);
    pack_gauges(&packer, &report->gauges);
    pack_oldest(&packer, &report->oldest);
    if (growing.failed) {
        free(growing.buffer.data);
        return slice_of(NULL, 0);
    }
    return slice_of(growing.buffer.data, growing.buffer.size);
}
