/* Any bytes as a configuration: refused with problems, or good, and then printed and read again. */
#include <string.h>

#include "fuzz.h"
#include "settings/settings.h"

static char *print(const struct settings *settings) {
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    FUZZ_CHECK(out != NULL);
    settings_print(settings, out);
    fclose(out);
    return text;
}

static void check_print_loads_again(const struct settings *settings) {
    struct settings again;
    struct problems problems;
    settings_init(&again);
    problems_init(&problems);
    char *text = print(settings);
    settings_parse(&again, "again", slice_of_text(text), &problems);
    FUZZ_CHECK(!problems_any(&problems));
    char *text_again = print(&again);
    FUZZ_CHECK(strcmp(text, text_again) == 0);
    free(text);
    free(text_again);
    problems_fini(&problems);
    settings_fini(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct settings settings;
    struct problems problems;
    settings_init(&settings);
    problems_init(&problems);
    /* A value may be {file: -}, and nobody types here. */
    FUZZ_CHECK(freopen("/dev/null", "r", stdin) != NULL);
    settings_parse(&settings, "fuzz", slice_of(data, size), &problems);
    if (!problems_any(&problems)) check_print_loads_again(&settings);
    problems_fini(&problems);
    settings_fini(&settings);
    return 0;
}
