/* gpu-worker demo: a worker with a broker inside it, and its first job. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/temporary.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "cli/quiet.h"
#include "process/child.h"

static const char about[] =
    "Starts a worker with a broker inside it, sends it a job, and prints the job and its result. "
    "The worker\n"
    "then runs until Ctrl-C, for jobs of your own. Neither a GPU nor a Kafka is needed.\n";

static const char job_text[] =
    "# y = 2x + y over three numbers\n"
    "id: first-job\n"
    "buffers:\n"
    "  x: {data: {f32: [1, 2, 3]}, datatype: FP32, shape: [3]}\n"
    "  y: {data: {f32: [10, 20, 30]}, datatype: FP32, shape: [3]}\n"
    "steps:\n"
    "  - {program: saxpy, args: [{f32: 2}, x, y, {u32: 3}], elements: 3}\n"
    "outputs:\n"
    "  - {buffer: y}\n";

enum { PATH_SIZE = TEMPORARY_PATH_SIZE + 16 };

struct demo {
    const char *driver;
    bool is_json; /* nothing is printed but the result */
    char folder[TEMPORARY_PATH_SIZE], config[PATH_SIZE], job[PATH_SIZE], log[PATH_SIZE];
    pid_t worker;
};

static volatile sig_atomic_t stop;

/* Any of them ends sigsuspend(). */
static void on_signal(int number) {
    if (number != SIGCHLD) stop = 1;
}

static enum err write_files(struct demo *demo, struct error *err) {
    char config[2 * TEMPORARY_PATH_SIZE];
    snprintf(demo->config, sizeof demo->config, "%s/worker.yaml", demo->folder);
    snprintf(demo->job, sizeof demo->job, "%s/job.yaml", demo->folder);
    snprintf(demo->log, sizeof demo->log, "%s/worker.log", demo->folder);
    int size = snprintf(config, sizeof config,
        "driver: %s\nbroker: embedded\nstate: {dir: \"%s/state\"}\n", demo->driver, demo->folder);
    enum err code = quiet_write_file(demo->config, config, (size_t)size, err);
    if (code == ERR_OK) code = quiet_write_file(demo->job, job_text, strlen(job_text), err);
    return code;
}

static bool is_running(pid_t pid) {
    siginfo_t ended = {0};
    return waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid == 0;
}

/* Until a signal, or until the worker or `other` ends by itself; 0: there is no other. */
static void wait_for_end(const struct demo *demo, pid_t other, const sigset_t *waiting) {
    while (!stop && is_running(demo->worker) && (other == 0 || is_running(other)))
        sigsuspend(waiting);
}

/* Without a worker no result comes. */
static enum err submit(
    const struct demo *demo, const sigset_t *waiting, int *ret_exit, struct error *err) {
    const char *const arguments[] = {
        "submit", "--config", demo->config, demo->job, demo->is_json ? "--json" : NULL, NULL};
    pid_t pid;
    if (!demo->is_json)
        printf("# %s\n%s\n# gpu-worker submit --config %s %s\n", demo->job, job_text, demo->config,
            demo->job);
    fflush(stdout);
    enum err code = child_start(arguments, -1, NULL, &pid, err);
    if (code != ERR_OK) return code;
    wait_for_end(demo, pid, waiting);
    if (is_running(pid)) kill(pid, SIGTERM);
    *ret_exit = quiet_wait(pid);
    return ERR_OK;
}

static void wait_for_stop(const struct demo *demo, const sigset_t *waiting) {
    printf("\nThe worker runs until Ctrl-C; it logs to %s. In another terminal:\n"
           "  gpu-worker tail --config %s --from-beginning\n"
           "  gpu-worker submit --config %s --set a=5 %s\n",
        demo->log, demo->config, demo->config, demo->job);
    fflush(stdout);
    wait_for_end(demo, 0, waiting);
}

static int show(struct demo *demo, bool is_once, const sigset_t *waiting, struct error *err) {
    int exit_code = CLI_FAILED;
    enum err code = write_files(demo, err);
    const char *const arguments[] = {"run", "--config", demo->config, NULL};
    if (code == ERR_OK) code = quiet_start(arguments, demo->log, &demo->worker, err);
    if (code == ERR_OK) code = submit(demo, waiting, &exit_code, err);
    if (code != ERR_OK) exit_code = cli_fail_error("demo", err);
    else if (exit_code == CLI_OK && !is_once) wait_for_stop(demo, waiting);
    if (demo->worker > 0) {
        kill(demo->worker, SIGTERM);
        int worker_exit_code = quiet_wait(demo->worker);
        if (stop) exit_code = CLI_OK; /* the worker may have been too young to end well */
        else if (worker_exit_code != CLI_OK) exit_code = worker_exit_code;
    }
    if (code == ERR_OK && exit_code != CLI_OK) {
        quiet_print_log(demo->log);
        cli_fail((enum cli_exit)exit_code, "demo", "the lines above say why");
    }
    return exit_code;
}

int command_demo(int argc, char **argv) {
    struct demo demo = {.driver = "cpu"};
    bool is_once = false;
    char **words;
    int ret;
    const struct cli_option options[] = {
        {"driver", "cuda|cpu", "what runs the jobs: the CPU if not given", .text = &demo.driver},
        {"once", NULL, "end after the job", .flag = &is_once},
        {"json", NULL, "with --once: print the result alone, as a line of JSON",
            .flag = &demo.is_json},
        {0}};
    const struct cli_command command = {.name = "demo", .about = about, .options = options};
    if (!cli_parse(&command, argc, argv, &words, &ret)) return ret;
    if (demo.is_json && !is_once) return cli_fail_usage("demo", "--json goes only with --once");
    enum driver_choice driver;
    if (!cli_read_driver(demo.driver, &driver))
        return cli_fail_usage("demo", "--driver is cuda or cpu, not '%s'", demo.driver);

    /* Held back except in sigsuspend(), so that none is missed; children get none of this. */
    sigset_t held, before;
    sigemptyset(&held);
    sigaddset(&held, SIGINT);
    sigaddset(&held, SIGTERM);
    sigaddset(&held, SIGHUP);
    sigaddset(&held, SIGCHLD);
    sigprocmask(SIG_BLOCK, &held, &before);
    const struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    sigaction(SIGCHLD, &action, NULL);
    struct error err;
    if (temporary_folder_make("gpu-worker-demo", demo.folder, &err) != ERR_OK)
        return cli_fail_error("demo", &err);
    ret = show(&demo, is_once, &before, &err);
    quiet_remove_folder(demo.folder);
    return ret;
}
