/* The linker puts these in the place of the library's functions (CMakeLists.txt). */
#include "world/versions.h"

#include <librdkafka/rdkafka.h>
#include <string.h>

static int least_version;

int __real_rd_kafka_version(void);
rd_kafka_conf_res_t __real_rd_kafka_conf_set(
    rd_kafka_conf_t *conf, const char *key, const char *value, char *why, size_t why_size);

void versions_be_new(void) {
    least_version = VERSIONS_COOPERATIVE;
}

int __wrap_rd_kafka_version(void);
int __wrap_rd_kafka_version(void) {
    int version = __real_rd_kafka_version();
    return version > least_version ? version : least_version;
}

/* A setting that only newer ones have, and that changes nothing here. */
rd_kafka_conf_res_t __wrap_rd_kafka_conf_set(
    rd_kafka_conf_t *conf, const char *key, const char *value, char *why, size_t why_size);
rd_kafka_conf_res_t __wrap_rd_kafka_conf_set(
    rd_kafka_conf_t *conf, const char *key, const char *value, char *why, size_t why_size) {
    if (least_version > 0 && strcmp(key, "fetch.queue.backoff.ms") == 0) return RD_KAFKA_CONF_OK;
    return __real_rd_kafka_conf_set(conf, key, value, why, why_size);
}
