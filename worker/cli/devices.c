/* gpu-worker devices: lists what the setting `devices` can name. The supervisor reads this too. */
#include <inttypes.h>
#include <stdio.h>

#include "base/json_writer.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "pipeline/devices.h"

static const char about[] =
    "Lists the devices that the driver shows, one on each line: number, UUID, known fault (-: "
    "none),\n"
    "name, NUMA node and the CPUs of that node (-: not known), separated by tabs. Executors run on "
    "these\n"
    "CPUs, if the machine has several nodes and executors.numa is local.\n";

static const char examples[] = "example:\n"
                               "  gpu-worker devices --config worker.yaml\n";

static const char *or_dash(const char *text) {
    return text[0] != 0 ? text : "-";
}

static void print_line(const struct device_info *device) {
    char node[16] = "";
    if (device->locality.node >= 0) snprintf(node, sizeof node, "%" PRId32, device->locality.node);
    printf("%" PRIu32 "\t%s\t%s\t%s\t%s\t%s\n", device->index, device->uuid, or_dash(device->fault),
        device->name, or_dash(node), or_dash(device->locality.cpus));
}

static void write_text(struct json_writer *json, const char *key, const char *text) {
    if (text[0] != 0) json_text(json, key, text);
    else json_null(json, key);
}

/* What is not known is null. */
static void print_json(const struct device_info *device) {
    struct json_writer json = {.out = stdout, .is_spaced = true};
    json_object(&json, NULL);
    json_uint(&json, "device", device->index);
    write_text(&json, "uuid", device->uuid);
    write_text(&json, "name", device->name);
    write_text(&json, "fault", device->fault);
    write_text(&json, "pci", device->pci);
    if (device->locality.node >= 0) json_int(&json, "numa_node", device->locality.node);
    else json_null(&json, "numa_node");
    write_text(&json, "cpus", device->locality.cpus);
    json_end_line(&json);
}

static int list(const struct settings *settings, const char *command, bool is_json) {
    struct device_info devices[DEVICES_MAX];
    size_t count;
    struct error err;
    enum err code = devices_list(settings, devices, &count, &err);
    if (code != ERR_OK) return cli_fail_error(command, &err);
    for (size_t i = 0; i < count; i++)
        if (is_json) print_json(&devices[i]);
        else print_line(&devices[i]);
    return CLI_OK;
}

int command_devices(int argc, char **argv) {
    const char *config = NULL, *driver = NULL;
    bool is_json = false, is_logged = false;
    char **words;
    int ret;
    const struct cli_option options[] = {
        {"config", "FILE", "the configuration; without it, all defaults", .text = &config},
        {"driver", "cuda|cpu", "overrides `driver`", .text = &driver},
        {"json", NULL, "print each device as a line of JSON; what is not known is null",
            .flag = &is_json},
        {"log", NULL,
            "says what goes wrong as `run` does: in its name, and in the form of log.format",
            .flag = &is_logged},
        {0}};
    const struct cli_command command = {
        .name = "devices", .about = about, .options = options, .examples = examples};
    if (!cli_parse(&command, argc, argv, &words, &ret)) return ret;
    struct settings settings;
    ret = cli_load_settings("devices", config, &settings);
    if (ret != CLI_OK) return ret;
    if (is_logged) log_init(settings.log.level, settings.log.format);
    if (cli_override_driver(driver, &settings))
        ret = list(&settings, is_logged ? "run" : "devices", is_json);
    else ret = cli_fail(CLI_USAGE, "devices", "--driver is cuda or cpu, not '%s'", driver);
    settings_fini(&settings);
    return ret;
}
