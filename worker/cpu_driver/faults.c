#include "cpu_driver/faults.h"

#include <stdlib.h>

#include "base/slice.h"

static const char FIX[] =
    "write FUNCTION:EFFECT[=DURATION]@WHEN, such as cuMemAlloc:out_of_memory@3";

static const struct effect_info {
    const char *name;
    enum cpu_effect effect;
    CUresult result;
} effect_infos[] = {
    {"out_of_memory", CPU_EFFECT_ANSWER, CUDA_ERROR_OUT_OF_MEMORY},
    {"invalid_value", CPU_EFFECT_ANSWER, CUDA_ERROR_INVALID_VALUE},
    {"invalid_ptx", CPU_EFFECT_ANSWER, CUDA_ERROR_INVALID_PTX},
    {"no_binary_for_gpu", CPU_EFFECT_ANSWER, CUDA_ERROR_NO_BINARY_FOR_GPU},
    {"launch_out_of_resources", CPU_EFFECT_ANSWER, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES},
    {"not_supported", CPU_EFFECT_ANSWER, CUDA_ERROR_NOT_SUPPORTED},
    {"null", CPU_EFFECT_NULL, CUDA_SUCCESS},
    {"illegal_address", CPU_EFFECT_LOSE, CUDA_ERROR_ILLEGAL_ADDRESS},
    {"assert", CPU_EFFECT_LOSE, CUDA_ERROR_ASSERT},
    {"launch_failed", CPU_EFFECT_LOSE, CUDA_ERROR_LAUNCH_FAILED},
    {"launch_timeout", CPU_EFFECT_LOSE, CUDA_ERROR_LAUNCH_TIMEOUT},
    {"ecc_uncorrectable", CPU_EFFECT_LOSE, CUDA_ERROR_ECC_UNCORRECTABLE},
    {"hang", CPU_EFFECT_HANG, CUDA_SUCCESS},
    {"slow", CPU_EFFECT_SLOW, CUDA_SUCCESS},
};

static const char *const entry_names[CPU_ENTRY_COUNT] = {
#define X(field, function, version) [CPU_##field] = #function,
    GPU_DRIVER_LIST(X)
#undef X
};

bool cpu_entry_enqueues(enum cpu_entry entry) {
    switch (entry) {
    case CPU_copy_to_device:
    case CPU_copy_to_host:
    case CPU_fill:
    case CPU_launch:
    case CPU_launch_cooperative:
    case CPU_graph_launch:
    case CPU_event_record:
    case CPU_stream_wait_event: return true;
    default: return false;
    }
}

static bool entry_returns_handle(enum cpu_entry entry) {
    switch (entry) {
    case CPU_primary_context_retain:
    case CPU_memory_alloc:
    case CPU_host_alloc:
    case CPU_host_device_pointer:
    case CPU_stream_create:
    case CPU_event_create:
    case CPU_module_load:
    case CPU_module_function:
    case CPU_graph_create:
    case CPU_graph_instantiate: return true;
    default: return false;
    }
}

/* One item of the script, with its position for errors. */
struct item {
    struct slice text;
    size_t column; /* from 1 */
};

static enum err item_error(const struct item *item, const char *what, struct error *err) {
    return error_set(err, ERR_CONFIG, 0, FIX, "fault script, column %zu: \"%.*s\": %s",
        item->column, SLICE_TEXT(item->text), what);
}

/* Moves the text before `mark` from `from` into `ret`; false if there is no mark. */
static bool take_until(struct slice *from, char mark, struct slice *ret) {
    const uint8_t *end = memchr(from->data, mark, from->size);
    if (end == NULL) return false;
    slice_take(from, (size_t)(end - from->data), ret);
    struct slice skipped;
    return slice_take(from, 1, &skipped);
}

/* A whole decimal number of at most 18 digits. */
static bool parse_number(struct slice text, uint64_t *ret) {
    uint64_t number = 0;
    if (text.size == 0 || text.size > 18) return false;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9') return false;
        number = number * 10 + (uint64_t)(text.data[i] - '0');
    }
    *ret = number;
    return true;
}

static bool parse_duration(struct slice text, uint64_t *ret_ns) {
    size_t digits = 0;
    while (digits < text.size && text.data[digits] >= '0' && text.data[digits] <= '9') digits++;
    struct slice number;
    if (digits > 9 || !slice_take(&text, digits, &number) || !parse_number(number, ret_ns))
        return false;
    if (slice_is_text(text, "us")) *ret_ns *= 1000u;
    else if (slice_is_text(text, "ms")) *ret_ns *= 1000000u;
    else if (slice_is_text(text, "s")) *ret_ns *= 1000000000u;
    else return false;
    return true;
}

static bool parse_probability(struct slice text, double *ret) {
    char copy[32];
    if (text.size == 0 || text.size >= sizeof copy) return false;
    memcpy(copy, text.data, text.size);
    copy[text.size] = '\0';
    char *end;
    *ret = strtod(copy, &end);
    return *end == '\0' && *ret >= 0.0 && *ret <= 1.0;
}

static bool parse_when(struct slice text, struct cpu_fault_rule *rule) {
    rule->probability = 1.0;
    if (slice_is_text(text, "*")) return true;
    struct slice p;
    if (text.size > 0 && text.data[0] == 'p')
        return slice_take(&text, 1, &p) && parse_probability(text, &rule->probability);
    return parse_number(text, &rule->nth) && rule->nth > 0;
}

static bool find_entry(struct slice name, enum cpu_entry *ret) {
    for (int i = 0; i < CPU_ENTRY_COUNT; i++) {
        if (!slice_is_text(name, entry_names[i])) continue;
        *ret = (enum cpu_entry)i;
        return true;
    }
    return false;
}

static const struct effect_info *find_effect(struct slice name) {
    for (size_t i = 0; i < sizeof effect_infos / sizeof effect_infos[0]; i++)
        if (slice_is_text(name, effect_infos[i].name)) return &effect_infos[i];
    return NULL;
}

static enum err parse_rule(
    const struct item *item, struct cpu_fault_rule *rule, struct error *err) {
    struct slice when = item->text, name, what, effect;
    if (!take_until(&when, ':', &name) || !take_until(&when, '@', &what))
        return item_error(item, "no FUNCTION:EFFECT@WHEN", err);
    struct slice duration = what;
    bool has_duration = take_until(&duration, '=', &effect);
    const struct effect_info *info = find_effect(has_duration ? effect : what);
    if (!find_entry(name, &rule->entry)) return item_error(item, "unknown function", err);
    if (info == NULL) return item_error(item, "unknown effect", err);
    rule->fault = (struct cpu_fault){.effect = info->effect, .result = info->result};
    if (has_duration != (info->effect == CPU_EFFECT_SLOW))
        return item_error(item, "only \"slow\" takes a duration", err);
    if (has_duration && !parse_duration(duration, &rule->fault.delay_ns))
        return item_error(item, "a duration is a number with us, ms or s", err);
    if (info->effect == CPU_EFFECT_NULL && !entry_returns_handle(rule->entry))
        return item_error(item, "this function returns nothing that could be null", err);
    if (!parse_when(when, rule))
        return item_error(item, "WHEN is a call number from 1, '*', or 'p' and 0.0 to 1.0", err);
    return ERR_OK;
}

static enum err parse_item(const struct item *item, struct cpu_faults *faults, struct error *err) {
    struct slice seed = item->text, key;
    if (take_until(&seed, '=', &key) && slice_is_text(key, "seed")) {
        if (!parse_number(seed, &faults->random)) return item_error(item, "seed is a number", err);
        return ERR_OK;
    }
    if (faults->count == CPU_FAULT_RULES_MAX) return item_error(item, "too many items", err);
    enum err code = parse_rule(item, &faults->rules[faults->count], err);
    if (code == ERR_OK) faults->count++;
    return code;
}

static void item_trim(struct item *item) {
    struct slice blank;
    while (item->text.size > 0 && item->text.data[0] == ' ' && slice_take(&item->text, 1, &blank))
        item->column++;
    while (item->text.size > 0 && item->text.data[item->text.size - 1] == ' ') item->text.size--;
}

enum err cpu_faults_parse(const char *text, struct cpu_faults *ret, struct error *err) {
    *ret = (struct cpu_faults){.random = 1};
    if (text == NULL) return ERR_OK;
    for (size_t at = 0; text[at] != '\0';) {
        size_t size = strcspn(text + at, ";,");
        struct item item = {.text = slice_of(text + at, size), .column = at + 1};
        item_trim(&item);
        if (item.text.size > 0) {
            enum err code = parse_item(&item, ret, err);
            if (code != ERR_OK) return code;
        }
        at += size;
        if (text[at] != '\0') at++;
    }
    return ERR_OK;
}

/* splitmix64: equal seeds hit the same calls on every machine. */
static double draw_fraction(uint64_t *random) {
    uint64_t z = *random += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    return (double)(z >> 11) * 0x1p-53;
}

static bool rule_strikes(struct cpu_fault_rule *rule, uint64_t *random) {
    rule->calls++;
    if (rule->nth > 0) return rule->calls == rule->nth;
    return draw_fraction(random) < rule->probability;
}

struct cpu_fault cpu_faults_draw(struct cpu_faults *faults, enum cpu_entry entry) {
    struct cpu_fault fault = {.effect = CPU_EFFECT_NONE};
    /* Every rule counts every call, whichever of them applies. */
    for (size_t i = 0; i < faults->count; i++) {
        struct cpu_fault_rule *rule = &faults->rules[i];
        if (rule->entry != entry || !rule_strikes(rule, &faults->random)) continue;
        if (fault.effect == CPU_EFFECT_NONE) fault = rule->fault;
    }
    return fault;
}
