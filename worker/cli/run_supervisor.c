#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/log.h"
#include "base/temporary.h"
#include "broker/embedded.h"
#include "cli/cli.h"
#include "cli/own_state.h"
#include "cli/run.h"
#include "supervise/supervise.h"

/* Why the run cannot go on after an executor died; NULL: it can. */
static const char *final_reason(const struct run_arguments *arguments) {
    const struct file_paths *files = &arguments->files;
    if (!arguments->is_file_run) return NULL;
    if (!run_is_plain_file(files->jobs, false))
        return "jobs that come through a pipe cannot be read again";
    if (!run_is_plain_file(files->results, true) ||
        (files->dead_letters != NULL && !run_is_plain_file(files->dead_letters, true)))
        return "output that went into a pipe cannot be taken back";
    return NULL;
}

/* A run of files needs its state only until it ends, so its folder is temporary. */
static char *make_state_folder(
    const struct settings *settings, bool is_file_run, struct error *err) {
    char temporary[TEMPORARY_PATH_SIZE];
    enum err code = ERR_OK;
    if (is_file_run) code = temporary_folder_make("gpu-worker", temporary, err);
    if (code != ERR_OK) return NULL;
    char *folder = is_file_run ? strdup(temporary) : settings_state_dir(settings);
    if (folder == NULL) code = error_no_memory(err, "no memory for a path");
    else if (!is_file_run) code = state_folder_make(folder, err);
    if (code == ERR_OK) return folder;
    free(folder);
    return NULL;
}

static void remove_state_folder(const char *folder, uint32_t device) {
    char *path = state_folder_file(folder, device);
    if (path != NULL) unlink(path);
    free(path);
    rmdir(folder);
}

/* Arguments for executors that depend on the command line. */
static void list_arguments(const struct run_arguments *arguments, const char *ret[static 20]) {
    const struct {
        const char *name, *value;
    } all[] = {{"--driver", arguments->driver}, {"--jobs", arguments->files.jobs},
        {"--results", arguments->files.results}, {"--dead-letters", arguments->files.dead_letters},
        {"--telemetry", arguments->files.telemetry}, {"--progress", arguments->files.progress},
        {"--broker", arguments->broker}, {"--config-source", arguments->config_source}};
    size_t count = 0;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (all[i].value == NULL) continue;
        ret[count++] = all[i].name;
        ret[count++] = all[i].value;
    }
    ret[count] = NULL;
}

/* Only one executor can read a file, or from the embedded broker. */
static size_t count_max(const struct settings *settings, const struct run_arguments *arguments) {
    bool is_single = arguments->is_file_run || settings->broker == BROKER_EMBEDDED;
    return is_single ? 1 : PROBED_DEVICES_MAX;
}

/* The supervisor's memory contains the configuration too, so it writes no core dump either. */
static void hide_memory(const struct settings *settings) {
    if (settings->executors.core_dumps != CORE_DUMPS_INHERIT)
        (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

/* What the supervisor reloads before its executors do; executors that start later use it too. */
struct rereading {
    const struct run_arguments *arguments;
    const struct settings *running;
    struct kept_config *kept;
};

static enum err read_again(void *context, struct error *err) {
    const struct rereading *rereading = context;
    struct fitness_source source = run_source(rereading->arguments);
    struct kept_config kept = {.fd = -1};
    struct reading reading;
    enum err code = ERR_OK;
    if (source.config != NULL) code = kept_config_init(&kept, source.config, err);
    source.text = kept.text;
    if (code == ERR_OK) code = fitness_read_again(&source, rereading->running, NULL, &reading, err);
    if (code != ERR_OK) {
        kept_config_fini(&kept);
        return code;
    }
    kept_config_fini(rereading->kept);
    *rereading->kept = kept;
    log_set_level(reading.settings.log.level);
    reading_log_fixed(&reading);
    reading_fini(&reading);
    return ERR_OK;
}

/*
 * The embedded broker lives here: what kills an executor does not reach it. It is new, and what the
 * executor of an earlier one has left says nothing about its messages.
 */
static enum err start_broker(const struct settings *settings, const char *state_folder,
    uint32_t device, struct embedded **ret, struct error *err) {
    *ret = NULL;
    if (settings->broker != BROKER_EMBEDDED) return ERR_OK;
    enum err code = own_state_forget(state_folder, device, err);
    return code == ERR_OK ? connect_start_broker(settings, ret, err) : code;
}

int run_supervisor(
    const struct settings *settings, struct run_arguments *arguments, struct kept_config *kept) {
    struct probed_device devices[PROBED_DEVICES_MAX];
    size_t count;
    struct error err;
    const char *executor_arguments[20];
    int ret = run_find_devices(
        settings, arguments->config, count_max(settings, arguments), devices, &count);
    if (ret != CLI_OK) return ret;
    hide_memory(settings);
    char *folder = make_state_folder(settings, arguments->is_file_run, &err);
    if (folder == NULL) return cli_fail_error("run", &err);
    struct embedded *embedded = NULL;
    enum err code = ERR_OK;
    if (!arguments->is_file_run)
        code = start_broker(settings, folder, devices[0].index, &embedded, &err);
    if (embedded != NULL) arguments->broker = embedded_bootstrap_servers(embedded);
    list_arguments(arguments, executor_arguments);
    struct rereading rereading = {arguments, settings, kept};
    const struct supervise_options options = {.settings = settings,
        .reload = read_again,
        .context = &rereading,
        .state_dir = folder,
        .config = arguments->config,
        .arguments = executor_arguments,
        .devices = devices,
        .device_count = count,
        .is_finite = arguments->is_file_run,
        .final_reason = final_reason(arguments)};
    if (code == ERR_OK) code = supervise_run(&options, &ret, &err);
    if (code != ERR_OK) ret = cli_fail_error("run", &err);
    embedded_destroy(embedded);
    if (arguments->is_file_run) remove_state_folder(folder, devices[0].index);
    free(folder);
    return ret;
}
