/* gpu-worker programs: lists the programs that jobs can name. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/kit.h"
#include "cli/options.h"
#include "cli/programs_json.h"
#include "program/bounds.h"
#include "settings/settings.h"

static const char about[] = "Lists the programs with their entries, arguments in order, and images "
                            "with the digests that a\n"
                            "job can pin (program: \"name@sha256:...\").\n\n"
                            "new, build, test and import are a kit for programs of your own, in "
                            "Python:\n"
                            "gpu-worker programs new --help.\n";

static const char examples[] = "examples:\n"
                               "  gpu-worker programs --dir /etc/gpu-worker/programs\n"
                               "  gpu-worker programs list --json > programs.json\n"
                               "  gpu-worker programs new scale\n"
                               "  gpu-worker programs test scale\n";

struct programs_arguments {
    const char *config, *dir;
    bool json;
};

static void print_phases(const struct program *program, const struct entry *entry) {
    for (size_t i = 0; i < entry->phase_count; i++)
        printf("%s%s", i == 0 ? ", or in phases: " : ", ", program->entries[entry->phases[i]].name);
}

static void print_between(const struct range *between) {
    char min[40], max[40];
    scalar_format(&between->min, min, sizeof min);
    scalar_format(&between->max, max, sizeof max);
    printf(", %s to %s", min, max);
}

static void print_entry(const struct program *program, const struct entry *entry) {
    printf("  entry %s: block [%u, %u, %u], shared_bytes ", entry->name, entry->block[0],
        entry->block[1], entry->block[2]);
    if (entry->shared_bytes_least < entry->shared_bytes)
        printf("%u to ", entry->shared_bytes_least);
    printf("%u", entry->shared_bytes);
    if (entry->capability_min > 0)
        printf(
            ", compute capability %d.%d", entry->capability_min / 10, entry->capability_min % 10);
    if (entry->cooperative) printf(", cooperative");
    print_phases(program, entry);
    if (strcmp(entry->symbol, entry->name) != 0) printf(", symbol %s", entry->symbol);
    printf("\n");
    for (size_t i = 0; i < entry->arg_count; i++) {
        const struct entry_arg *arg = &entry->args[i];
        printf("    %-20s %-7s %s%s", arg->name, arg_role_name(arg->role),
            arg->role == ROLE_VALUE              ? arg_value_name(arg->value_kind)
            : arg->element_type == DATATYPE_NONE ? "any"
                                                 : datatype_name(arg->element_type),
            arg->is_streamed ? ", access stream" : "");
        if (arg->between.is_set) print_between(&arg->between);
        printf("\n");
    }
    for (size_t i = 0; i < entry->bound_count; i++) {
        char text[260];
        bound_format(entry, &entry->bounds[i], text, sizeof text);
        printf("    needs %s\n", text);
    }
}

static void print_image(const struct image *image) {
    char digest[DIGEST_TEXT_SIZE];
    printf("  image %s", image_kind_name(image->kind));
    if (image->kind == IMAGE_CUBIN)
        printf(" %d.%d", image->architecture / 10, image->architecture % 10);
    printf(": %s, %zu bytes, %s\n", image->file, image->bytes.size,
        digest_format(&image->digest, digest));
}

/* Where jobs of the program get the error `unsupported`. */
static void print_missing(const struct program *program) {
    bool has_cpu = false, has_cuda = false;
    for (size_t i = 0; i < program->image_count; i++)
        if (program->images[i].kind == IMAGE_CPU) has_cpu = true;
        else has_cuda = true;
    if (!has_cpu) printf("  no image for driver: cpu\n");
    if (!has_cuda) printf("  no image for driver: cuda\n");
}

static void print_program(const struct program *program) {
    printf(
        "%s%s%s\n", program->name, program->description[0] != 0 ? ": " : "", program->description);
    for (size_t i = 0; i < program->entry_count; i++) print_entry(program, &program->entries[i]);
    for (size_t i = 0; i < program->image_count; i++) print_image(&program->images[i]);
    print_missing(program);
}

/* Prints valid programs, and adds problems of others. */
static void list(const char *dir, bool json, struct problems *problems) {
    struct registry *registry = dir != NULL ? registry_load(dir, problems) : NULL;
    if (registry == NULL) {
        problems_add(problems, "programs", 0, 0, "", "out of memory");
        return;
    }
    if (json) programs_print_json(registry, stdout);
    for (size_t i = 0; !json && i < registry_count(registry); i++)
        print_program(registry_at(registry, i));
    registry_destroy(registry);
}

static int list_programs(const struct programs_arguments *arguments) {
    struct settings settings;
    struct problems problems;
    int code = cli_load_settings("programs", arguments->config, &settings);
    if (code != CLI_OK) return code;
    problems_init(&problems);
    char *configured = settings_programs_dir(&settings);
    list(arguments->dir != NULL ? arguments->dir : configured, arguments->json, &problems);
    if (problems_any(&problems)) code = cli_fail_problems("programs", &problems);
    free(configured);
    problems_fini(&problems);
    settings_fini(&settings);
    return code;
}

int command_programs(int argc, char **argv) {
    struct programs_arguments arguments = {0};
    char **words;
    int ret;
    if (argc > 1 && kit_takes(argv[1])) return kit_run(argv);
    const struct cli_option options[] = {
        {"dir", "DIR", "the folder of programs, instead of programs.dir", .text = &arguments.dir},
        {"config", "FILE", "the configuration; without it, all defaults",
            .text = &arguments.config},
        {"json", NULL, "as JSON, for programs such as the Python client", .flag = &arguments.json},
        {0}};
    const struct cli_command command = {.name = "programs",
        .first = "list|" KIT_WORDS,
        .first_may_lack = true,
        .about = about,
        .options = options,
        .examples = examples};
    if (!cli_parse(&command, argc, argv, &words, &ret)) return ret;
    return list_programs(&arguments);
}
