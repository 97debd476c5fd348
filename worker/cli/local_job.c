#include "cli/local_job.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/file.h"
#include "base/temporary.h"
#include "cli/quiet.h"

enum { PATH_SIZE = TEMPORARY_PATH_SIZE + 16, RESULT_BYTES_MAX = 1 << 30 };

/* The folder of a run and what is in it. */
struct room {
    char folder[TEMPORARY_PATH_SIZE], job[PATH_SIZE], result[PATH_SIZE], log[PATH_SIZE];
};

static enum err room_make(struct room *room, struct error *err) {
    enum err code = temporary_folder_make("gpu-worker", room->folder, err);
    snprintf(room->job, sizeof room->job, "%s/job", room->folder);
    snprintf(room->result, sizeof room->result, "%s/result", room->folder);
    snprintf(room->log, sizeof room->log, "%s/log", room->folder);
    return code;
}

static enum err start(
    const struct local_job *job, const struct room *room, pid_t *ret, struct error *err) {
    const char *arguments[12] = {"run", "--jobs", room->job, "--results", room->result};
    size_t count = 5;
    if (job->config != NULL) {
        arguments[count++] = "--config";
        arguments[count++] = job->config;
    }
    if (job->driver != NULL) {
        arguments[count++] = "--driver";
        arguments[count++] = job->driver;
    }
    /* What it leaves behind when it is killed is removed with the room. */
    if (setenv("TMPDIR", room->folder, 1) != 0)
        return error_no_memory(err, "no memory for a variable");
    return quiet_start(arguments, room->log, ret, err);
}

/* Signals that end a command. They wait until the room is removed, and end it then. */
static sigset_t stop_signals(void) {
    sigset_t ret;
    sigemptyset(&ret);
    sigaddset(&ret, SIGINT);
    sigaddset(&ret, SIGTERM);
    sigaddset(&ret, SIGHUP);
    return ret;
}

/* A worker that is late, or not wanted any more, is killed. */
static enum err await(pid_t pid, uint64_t timeout_s, struct error *err) {
    const sigset_t signals = stop_signals();
    struct pollfd ends[] = {{.fd = pidfd_open(pid, 0), .events = POLLIN},
        {.fd = signalfd(-1, &signals, SFD_CLOEXEC), .events = POLLIN}};
    uint64_t timeout_ms = timeout_s * 1000;
    (void)poll(ends, 2, timeout_ms > INT32_MAX ? INT32_MAX : (int)timeout_ms);
    bool has_ended = ends[0].revents != 0;
    if (!has_ended) kill(pid, SIGKILL);
    (void)quiet_wait(pid);
    for (int i = 0; i < 2; i++)
        if (ends[i].fd >= 0) close(ends[i].fd);
    if (has_ended) return ERR_OK;
    return error_set(err, ERR_TIMEOUT, 0, "give it more with --timeout",
        "no result within %" PRIu64 " s", timeout_s);
}

static enum err take_result(
    const struct room *room, uint8_t **ret, size_t *ret_size, struct error *err) {
    char *result = NULL;
    *ret_size = 0;
    enum err code = file_read(room->result, RESULT_BYTES_MAX, &result, ret_size, err);
    if (code == ERR_OK && *ret_size > 0) {
        *ret = (uint8_t *)result;
        return ERR_OK;
    }
    free(result);
    quiet_print_log(room->log);
    return error_set(err, ERR_IO, 0, "see the lines above", "the worker gave no result");
}

enum err local_job_run(
    const struct local_job *job, uint8_t **ret, size_t *ret_size, struct error *err) {
    struct room room = {0};
    pid_t pid;
    sigset_t before;
    const sigset_t signals = stop_signals();
    *ret = NULL;
    enum err code = room_make(&room, err);
    if (code != ERR_OK) return code;
    sigprocmask(SIG_BLOCK, &signals, &before);
    code = quiet_write_file(room.job, job->message.data, job->message.size, err);
    if (code == ERR_OK) code = start(job, &room, &pid, err);
    if (code == ERR_OK) code = await(pid, job->timeout_s, err);
    if (code == ERR_OK) code = take_result(&room, ret, ret_size, err);
    quiet_remove_folder(room.folder);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return code;
}
