#include "broker/keys.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
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

/* Why librdkafka cannot read what is there, or would wait for it: it takes files and folders. NULL:
 * it can. */
static const char *trouble_with(const char *path) {
    struct stat file;
    if (stat(path, &file) != 0 || access(path, R_OK) != 0) return strerror(errno);
    bool is_fine = S_ISREG(file.st_mode) || S_ISDIR(file.st_mode);
    return is_fine ? NULL : "it is neither a plain file nor a folder";
}

enum err kafka_key_check(
    const char *section, const char *key, const char *value, struct error *err) {
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    enum err code = client_conf_set(conf, section, key, value, err);
    rd_kafka_conf_destroy(conf);
    const char *trouble = code == ERR_OK && names_a_file(key, value) ? trouble_with(value) : NULL;
    if (trouble == NULL) return code;
    return error_set(err, ERR_CONFIG, 0, "name a file that the worker can read", "%s.%s: %s: %s",
        section, key, value, trouble);
}
