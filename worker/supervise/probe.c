#include "supervise/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/number.h"
#include "process/child.h"

enum { LIST_BYTES = 64 << 10, CHILD_TIMEOUT_MS = 60000 };

/* Reads what the child writes until it ends or its time is up. */
static void read_all(int fd, char text[static LIST_BYTES]) {
    uint64_t until_ns = clock_ns() + CHILD_TIMEOUT_MS * 1000000ull;
    size_t used = 0;
    while (used < LIST_BYTES - 1 && clock_ns() < until_ns) {
        struct pollfd waiting = {.fd = fd, .events = POLLIN};
        if (poll(&waiting, 1, 1000) <= 0) continue;
        ssize_t count = read(fd, text + used, LIST_BYTES - 1 - used);
        if (count == 0 || (count < 0 && errno != EINTR)) break;
        if (count > 0) used += (size_t)count;
    }
    text[used] = 0;
}

static enum err run_child(const struct settings *settings, const char *config,
    char text[static LIST_BYTES], int *status, struct error *err) {
    const char *arguments[8] = {
        "devices", "--log", "--driver", (settings->driver == DRIVER_CPU ? "cpu" : "cuda")};
    if (config != NULL) {
        arguments[4] = "--config";
        arguments[5] = config;
    }
    int ends[2];
    pid_t pid;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return error_set(err, ERR_IO, errno, "raise the limit on open files", "cannot make a pipe");
    enum err code = child_start(arguments, ends[1], NULL, &pid, err);
    close(ends[1]);
    if (code == ERR_OK) {
        read_all(ends[0], text);
        if (!child_end(pid, CHILD_DEATH_MS, status))
            code = error_set(err, ERR_NO_DEVICE, 0, "reset the GPU, or restart the machine",
                "the process that lists the devices was killed and does not die: it hangs in the "
                "driver");
    }
    close(ends[0]);
    return code;
}

/* One line: number, UUID, fault or "-", and what the supervisor need not know. */
static bool read_line(char *line, struct probed_device *ret) {
    uint64_t index;
    char *rest = line;
    const char *number = strsep(&rest, "\t"), *uuid = strsep(&rest, "\t");
    const char *fault = strsep(&rest, "\t");
    if (uuid == NULL || fault == NULL || number_read(number, &index) == 0) return false;
    *ret = (struct probed_device){.index = (uint32_t)index};
    snprintf(ret->uuid, sizeof ret->uuid, "%s", uuid);
    if (strcmp(fault, "-") != 0) snprintf(ret->fault, sizeof ret->fault, "%s", fault);
    return true;
}

static size_t read_lines(char *text, struct probed_device shown[static PROBED_DEVICES_MAX]) {
    size_t count = 0;
    for (char *line; count < PROBED_DEVICES_MAX && (line = strsep(&text, "\n")) != NULL;)
        count += read_line(line, &shown[count]);
    return count;
}

static enum err list_shown(const struct settings *settings, const char *config,
    struct probed_device shown[static PROBED_DEVICES_MAX], size_t *count, int *child_exit_code,
    struct error *err) {
    char text[LIST_BYTES];
    int status = 0;
    enum err code = run_child(settings, config, text, &status, err);
    if (code != ERR_OK) return code;
    if (!WIFEXITED(status))
        return error_set(err, ERR_NO_DEVICE, 0, "see that nvidia-smi works",
            "listing the devices took longer than %d s or crashed", CHILD_TIMEOUT_MS / 1000);
    *child_exit_code = WEXITSTATUS(status);
    *count = read_lines(text, shown);
    if (*count > 0 && *child_exit_code == 0) return ERR_OK;
    return error_set(err, ERR_NO_DEVICE, 0, "see that nvidia-smi works", "no device was listed");
}

static bool is_named(const struct probed_device *device, const char *name) {
    uint64_t number;
    if (number_read(name, &number) > 0) return device->index == number;
    return strcmp(device->uuid, name) == 0;
}

static const struct probed_device *find(
    const struct probed_device *shown, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (is_named(&shown[i], name)) return &shown[i];
    return NULL;
}

static bool contains(const struct probed_device *devices, size_t count, uint32_t index) {
    for (size_t i = 0; i < count; i++)
        if (devices[i].index == index) return true;
    return false;
}

enum err probe_devices(const struct settings *settings, const char *config,
    struct probed_device ret[static PROBED_DEVICES_MAX], size_t max, size_t *count,
    int *child_exit_code, struct error *err) {
    const struct string_list *wanted = &settings->devices;
    uint32_t number;
    *child_exit_code = 0;
    if (max == 1 && settings_first_device(settings, &number)) {
        ret[0] = (struct probed_device){.index = number};
        *count = 1;
        return ERR_OK;
    }
    struct probed_device shown[PROBED_DEVICES_MAX];
    size_t shown_count = 0;
    enum err code = list_shown(settings, config, shown, &shown_count, child_exit_code, err);
    if (code != ERR_OK) return code;
    *count = 0;
    for (size_t i = 0; wanted->count == 0 && i < shown_count && *count < max; i++)
        ret[(*count)++] = shown[i];
    for (size_t i = 0; i < wanted->count && *count < max; i++) {
        const struct probed_device *device = find(shown, shown_count, wanted->items[i]);
        if (device == NULL)
            return error_set(err, ERR_NO_DEVICE, 0, "run gpu-worker devices for a list",
                "there is no device '%s' among the %zu that the driver shows", wanted->items[i],
                shown_count);
        /* the list may name one device by number and by UUID */
        if (!contains(ret, *count, device->index)) ret[(*count)++] = *device;
    }
    return ERR_OK;
}
