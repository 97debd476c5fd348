#include "broker/keys.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "broker/client.h"

static bool ends_with(const char *text, const char *end) {
    size_t size = strlen(text), end_size = strlen(end);
    return size >= end_size && strcmp(text + size - end_size, end) == 0;
}

/* "probe" means the usual places of certificates of authorities. */
static bool names_a_file(const char *key, const char *value) {
    return ends_with(key, ".location") && value[0] != 0 && strcmp(value, "probe") != 0;
}

enum err kafka_key_check(
    const char *section, const char *key, const char *value, struct error *err) {
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    enum err code = client_conf_set(conf, section, key, value, err);
    rd_kafka_conf_destroy(conf);
    if (code != ERR_OK || !names_a_file(key, value) || access(value, R_OK) == 0) return code;
    return error_set(err, ERR_CONFIG, errno, "name a file that the worker can read",
        "%s.%s: %s: %s", section, key, value, strerror(errno));
}
