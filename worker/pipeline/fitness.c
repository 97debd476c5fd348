#include "pipeline/fitness.h"

#include <errno.h>
#include <libgen.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/address.h"
#include "base/file.h"
#include "broker/embedded.h"
#include "broker/keys.h"
#include "gpu/driver.h"
#include "gpu/profile.h"

enum { CONFIG_BYTES_MAX = 16 << 20 };

static bool has_image(const struct program *program, bool on_cpu) {
    for (size_t i = 0; i < program->image_count; i++)
        if ((program->images[i].kind == IMAGE_CPU) == on_cpu) return true;
    return false;
}

/* What the device says of the images is asked when it is there (edition.h). */
static void check_images(const struct settings *settings, const char *dir,
    const struct registry *registry, struct problems *problems) {
    bool on_cpu = settings->driver == DRIVER_CPU;
    size_t count = registry_count(registry);
    for (size_t i = 0; i < count; i++)
        if (has_image(registry_at(registry, i), on_cpu)) return;
    if (count > 0)
        problems_add(problems, dir, 0, 0,
            "set `driver`, or programs.dir, or add such images to their program.yaml",
            "none of the %zu programs has an image for driver: %s", count,
            on_cpu ? "cpu (kind: cpu)" : "cuda (kind: ptx or cubin)");
}

struct registry *fitness_load_programs(const struct settings *settings, const char *dir,
    const struct registry *earlier, struct problems *problems) {
    char *configured = settings_programs_dir(settings);
    if (dir == NULL) dir = configured;
    struct registry *registry = dir != NULL ? registry_load_again(dir, earlier, problems) : NULL;
    if (registry == NULL) problems_add(problems, "programs", 0, 0, "", "out of memory");
    else check_images(settings, dir, registry, problems);
    free(configured);
    return registry;
}

/* 0, or the errno of what is wrong. */
static int try_folder(const char *path, int mode) {
    struct stat status;
    if (stat(path, &status) != 0) return errno;
    if (!S_ISDIR(status.st_mode)) return ENOTDIR;
    return access(path, mode) == 0 ? 0 : errno;
}

/* One that is missing is made by `run`, in a folder that must be there. */
static int try_parent(const char *path) {
    char *copy = strdup(path);
    int ret = copy != NULL ? try_folder(dirname(copy), W_OK | X_OK) : ENOMEM;
    free(copy);
    return ret;
}

static void check_folder(
    const char *setting, const char *path, int mode, struct problems *problems) {
    if (path[0] == 0) return;
    int native = try_folder(path, mode);
    if (native == ENOENT) native = try_parent(path);
    if (native != 0)
        problems_add(problems, path, 0, 0, "make it a folder that the worker can use", "%s: %s",
            setting, strerror(native));
}

static void check_blob_folders(const struct settings *settings, struct problems *problems) {
    bool are_outputs_stored = settings->results.inline_max_bytes > 0;
    check_folder("blobs.dir", settings->blobs.dir,
        are_outputs_stored ? R_OK | W_OK | X_OK : R_OK | X_OK, problems);
    check_folder("blobs.cache_dir", settings->blobs.cache_dir, R_OK | W_OK | X_OK, problems);
}

/* Missing parents get created, so this tests the deepest existing one. */
static void check_state_folder(const struct settings *settings, struct problems *problems) {
    char *path = settings_state_dir(settings);
    int native = path != NULL ? try_folder(path, R_OK | W_OK | X_OK) : ENOMEM;
    char *parent = path != NULL ? strdup(path) : NULL;
    for (char *end = parent; native == ENOENT && end != NULL && parent[0] != 0;) {
        end = strrchr(parent, '/');
        if (end != NULL) *end = 0;
        native = try_folder(end == NULL ? "." : parent[0] == 0 ? "/" : parent, W_OK | X_OK);
    }
    if (native != 0)
        problems_add(problems, path != NULL ? path : "state.dir", 0, 0,
            "set state.dir to a folder that the worker can make or use", "state.dir: %s",
            strerror(native));
    free(parent);
    free(path);
}

static void check_address_file(const struct settings *settings, struct problems *problems) {
    const char *path = settings->embedded.address_file;
    if (settings->broker != BROKER_EMBEDDED || path[0] == 0) return;
    int native = try_parent(path);
    if (native != 0)
        problems_add(problems, path, 0, 0, "name a file in a folder that the worker can write to",
            "embedded.address_file: %s", strerror(native));
    else if (!embedded_may_write(path))
        problems_add(problems, path, 0, 0, EMBEDDED_FIX_FILE,
            "embedded.address_file: it holds something else than an address");
}

static void check_keys(
    const char *section, const struct string_map *map, struct problems *problems) {
    struct error err;
    for (size_t i = 0; i < map->count; i++)
        if (kafka_key_check(section, map->keys[i], map->values[i], &err) != ERR_OK)
            problems_add(problems, section, 0, 0, err.fix, "%s", err.message);
}

static void check_nvtx(const struct settings *settings, struct problems *problems) {
    struct error err;
    if (profile_check(settings->profile.nvtx_library, &err) != ERR_OK)
        problems_add(problems, "profile.nvtx_library", 0, 0, err.fix, "%s", err.message);
}

/* One that is there, whatever stands in it: it is read anew for each question. */
static void check_token_file(const struct settings *settings, struct problems *problems) {
    const char *path = settings->http.token_file;
    struct stat status;
    if (path[0] == 0) return;
    int native = stat(path, &status) != 0 || access(path, R_OK) != 0 ? errno : 0;
    if (native != 0 || !S_ISREG(status.st_mode))
        problems_add(problems, path, 0, 0, "make it a plain file that the worker can read",
            "http.token_file: %s", native != 0 ? strerror(native) : "it is not a plain file");
}

/* 0, or the errno of why it is not possible to listen there. */
static int try_address(const struct addrinfo *at) {
    int fd = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);
    int native = fd >= 0 && bind(fd, at->ai_addr, at->ai_addrlen) == 0 ? 0 : errno;
    if (fd >= 0) close(fd);
    return native;
}

/* That a process listens there now, such as the worker that is to be started again, is no fault of
 * the configuration: `run` will say so. */
static void check_listen(const struct settings *settings, struct problems *problems) {
    const struct addrinfo wanted = {
        .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    const char *text = settings->http.listen;
    struct address address;
    struct addrinfo *found;
    if (text[0] == 0 || !address_read(text, &address)) return; /* which was a problem before */
    int failed = getaddrinfo(address.host, address.port, &wanted, &found);
    int native = failed == 0 ? try_address(found) : 0;
    if (failed == 0) freeaddrinfo(found);
    if (failed == 0 && (native == 0 || native == EADDRINUSE)) return;
    problems_add(problems, "http.listen", 0, 0,
        "give it an address of this machine and a free port, such as 127.0.0.1:9400", "%s: %s",
        text, failed != 0 ? gai_strerror(failed) : strerror(native));
}

/* A script for tests of the CPU driver; no other one reads it. */
static void check_faults(const struct settings *settings, struct problems *problems) {
    struct error err;
    if (settings->driver == DRIVER_CPU &&
        gpu_cpu_faults_check(settings->cpu_driver.faults, &err) != ERR_OK)
        problems_add(problems, "cpu_driver.faults", 0, 0, err.fix, "%s", err.message);
}

/* What stands around the programs; each line by its setting. */
static void check_surroundings(const struct settings *settings, const struct fitness_source *source,
    struct problems *problems) {
    check_blob_folders(settings, problems);
    check_nvtx(settings, problems);
    check_faults(settings, problems);
    check_listen(settings, problems);
    check_token_file(settings, problems);
    if (source->is_file_run) return;
    if (!source->has_state_file) check_state_folder(settings, problems);
    check_address_file(settings, problems);
    check_keys("kafka.consumer", &settings->kafka.consumer, problems);
    check_keys("kafka.producer", &settings->kafka.producer, problems);
}

struct registry *fitness_read(const struct fitness_source *source, const struct registry *earlier,
    struct settings *settings, struct problems *problems) {
    const char *path = source->config;
    settings_init(settings);
    if (source->text.data == NULL) settings_load(settings, path, problems);
    else
        settings_parse(
            settings, strcmp(path, "-") == 0 ? "standard input" : path, source->text, problems);
    if (source->driver != NULL) settings->driver = *source->driver;
    struct registry *ret = fitness_load_programs(settings, source->programs, earlier, problems);
    if (!source->is_sandboxed) check_surroundings(settings, source, problems);
    return ret;
}

/* A prefix of a configuration is often one, too: "lanes: 1" of "lanes: 16". Whoever writes a file
 * ends its lines, and what braces begin they end. */
static bool may_be_half_written(struct slice text) {
    uint8_t last = text.size > 0 ? text.data[text.size - 1] : 0;
    return last != '\n' && last != '}';
}

/* The text is read once, so that what was checked is what is used. */
static enum err read_configuration(
    const struct fitness_source *source, char **ret, struct slice *text, struct error *err) {
    size_t size;
    *ret = NULL;
    *text = source->text;
    if (source->config == NULL) return ERR_OK;
    if (text->data == NULL) {
        enum err code = file_read(source->config, CONFIG_BYTES_MAX, ret, &size, err);
        if (code != ERR_OK) return code;
        *text = slice_of(*ret, size);
    }
    if (!may_be_half_written(*text)) return ERR_OK;
    return error_set(err, ERR_CONFIG, 0, "write all of it, and send SIGHUP again",
        "%s: it may be half written: its last line does not end", source->config);
}

enum err fitness_read_again(const struct fitness_source *source, const struct settings *running,
    const struct registry *earlier, struct reading *ret, struct error *err) {
    struct fitness_source whole = *source;
    struct problems problems;
    char *text;
    enum err code = read_configuration(source, &text, &whole.text, err);
    if (code != ERR_OK) {
        free(text);
        return code;
    }
    problems_init(&problems);
    ret->registry = fitness_read(&whole, earlier, &ret->settings, &problems);
    free(text);
    ret->changes = settings_find_fixed_changes(running, &ret->settings);
    if (!problems_any(&problems))
        settings_keep_fixed(running, &ret->settings,
            source->config != NULL ? source->config : "defaults", &problems);
    code = problems_check(&problems, err);
    problems_fini(&problems);
    if (code != ERR_OK) reading_fini(ret);
    return code;
}

void reading_fini(struct reading *reading) {
    registry_destroy(reading->registry);
    settings_fini(&reading->settings);
    *reading = (struct reading){0};
}

void reading_log_fixed(const struct reading *reading) {
    char text[FIXED_CHANGES_TEXT_SIZE];
    if (reading->changes.count > 0)
        log_line(LOG_WARN, "%s", fixed_changes_describe(&reading->changes, text));
}
