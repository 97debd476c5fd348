#include "broker/version.h"

#include <librdkafka/rdkafka.h>
#include <stdio.h>

struct broker_version broker_version(void) {
    static char built[32];
    snprintf(built, sizeof built, "%d.%d.%d", RD_KAFKA_VERSION >> 24 & 0xff,
        RD_KAFKA_VERSION >> 16 & 0xff, RD_KAFKA_VERSION >> 8 & 0xff);
    return (struct broker_version){.built = built, .loaded = rd_kafka_version_str()};
}
