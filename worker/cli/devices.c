/* gpu-worker devices: lists what the setting `devices` can name. The supervisor reads this too. */
#include <inttypes.h>
#include <stdio.h>

#include "cli/cli.h"
#include "cli/options.h"
#include "pipeline/devices.h"

static const char about[] =
    "Lists the devices that the driver shows, one on each line: number, UUID, known fault (-: "
    "none) and\n"
    "name, separated by tabs.\n";

static const char examples[] = "example:\n"
                               "  gpu-worker devices --config worker.yaml\n";

static int list(const struct settings *settings) {
    struct device_info devices[DEVICES_MAX];
    size_t count;
    struct error err;
    enum err code = devices_list(settings, devices, &count, &err);
    if (code != ERR_OK) return cli_fail_error("devices", &err);
    for (size_t i = 0; i < count; i++)
        printf("%" PRIu32 "\t%s\t%s\t%s\n", devices[i].index, devices[i].uuid,
            devices[i].fault[0] != 0 ? devices[i].fault : "-", devices[i].name);
    return CLI_OK;
}

int command_devices(int argc, char **argv) {
    const char *config = NULL, *driver = NULL;
    char **words;
    int ret;
    const struct cli_option options[] = {
        {"config", "FILE", "the configuration; without it, all defaults", .text = &config},
        {"driver", "cuda|cpu", "overrides `driver`", .text = &driver}, {0}};
    const struct cli_command command = {
        .name = "devices", .about = about, .options = options, .examples = examples};
    if (!cli_parse(&command, argc, argv, &words, &ret)) return ret;
    struct settings settings;
    ret = cli_load_settings("devices", config, &settings);
    if (ret != CLI_OK) return ret;
    if (cli_override_driver(driver, &settings)) ret = list(&settings);
    else ret = cli_fail(CLI_USAGE, "devices", "--driver is cuda or cpu, not '%s'", driver);
    settings_fini(&settings);
    return ret;
}
