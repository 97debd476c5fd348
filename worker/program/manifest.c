#include "program/manifest.h"

#include <string.h>

#include "base/invariant.h"
#include "base/number.h"
#include "program/bounds.h"
#include "program/fields.h"

enum {
    NAME_MAX_BYTES = 64,
    FILE_NAME_MAX_BYTES = 255,
    SYMBOL_MAX_BYTES = 1000, /* mangled names are long */
    IMAGES_MAX = 64,
    BLOCK_THREADS_MAX = 1024, /* of every device so far */
    SHARED_BYTES_MAX = 1 << 20,
    WORDS_MAX = 1 << 20
};

/* Indexed by value, ended by NULL. */
static const char *const role_names[] = {[ROLE_VALUE] = "value",
    [ROLE_IN] = "in",
    [ROLE_OUT] = "out",
    [ROLE_INOUT] = "inout",
    [ROLE_STATIC] = "static",
    NULL};
static const char *const value_names[] = {[ARG_BUFFER] = "buffer",
    [ARG_U32] = "u32",
    [ARG_I32] = "i32",
    [ARG_U64] = "u64",
    [ARG_I64] = "i64",
    [ARG_F32] = "f32",
    [ARG_F64] = "f64",
    [ARG_WORDS] = "words",
    NULL};
static const char *const kind_names[] = {
    [IMAGE_PTX] = "ptx", [IMAGE_CUBIN] = "cubin", [IMAGE_CPU] = "cpu", NULL};

/* "7.0" as 70. */
static int read_capability(const struct manifest *manifest, const struct yaml_node *node) {
    const char *text = node->kind == YAML_SCALAR ? node->text : "";
    uint64_t major;
    size_t digits = number_read(text, &major);
    const char *minor = text + digits;
    bool is_right = digits > 0 && digits <= 2 && major > 0 && minor[0] == '.' && minor[1] >= '0' &&
                    minor[1] <= '9' && minor[2] == 0;
    if (is_right) return (int)major * 10 + (minor[1] - '0');
    MANIFEST_ADD(manifest, node, "write major.minor, such as 7.0",
        "'%.80s' is not a compute capability", text);
    return 0;
}

static void read_arg_value(
    const struct manifest *manifest, const struct yaml_node *node, struct entry_arg *ret) {
    if (yaml_get(node, "type") != NULL)
        MANIFEST_ADD(manifest, yaml_get(node, "type"), "remove it", "'type' is for buffers");
    if (yaml_get(node, "access") != NULL)
        MANIFEST_ADD(manifest, yaml_get(node, "access"), "remove it", "'access' is for buffers");
    int kind =
        manifest_read_choice(manifest, yaml_get(node, "value"), "'value'", value_names, ARG_U32);
    ret->role = ROLE_VALUE;
    if (yaml_get(node, "at_least") != NULL)
        MANIFEST_ADD(manifest, yaml_get(node, "at_least"), "write between: [lowest, highest]",
            "'at_least' is for buffers");
    if (kind >= 0) ret->value_kind = (enum arg_kind)kind;
    const struct yaml_node *count = yaml_get(node, "count");
    if (kind == ARG_WORDS && count == NULL)
        MANIFEST_ADD(manifest, node, "write count: 4, or so", "'words' need a 'count'");
    else if (kind == ARG_WORDS)
        ret->word_count = manifest_read_number(manifest, count, "'count'", 1, WORDS_MAX);
    else if (count != NULL) MANIFEST_ADD(manifest, count, "remove it", "'count' is for words");
}

static void read_arg_buffer(
    const struct manifest *manifest, const struct yaml_node *node, struct entry_arg *ret) {
    static const char *const of_values[] = {"at_most", "between"};
    int role =
        manifest_read_choice(manifest, yaml_get(node, "buffer"), "'buffer'", role_names, ROLE_IN);
    if (role >= 0) ret->role = (enum arg_role)role;
    for (size_t i = 0; i < sizeof of_values / sizeof of_values[0]; i++)
        if (yaml_get(node, of_values[i]) != NULL)
            MANIFEST_ADD(manifest, yaml_get(node, of_values[i]), "remove it", "'%s' is for values",
                of_values[i]);
    static const char *const accesses[] = {"any", "stream", NULL};
    const struct yaml_node *access = yaml_get(node, "access");
    if (access != NULL)
        ret->is_streamed = manifest_read_choice(manifest, access, "'access'", accesses, 0) == 1;
    const struct yaml_node *type = yaml_get(node, "type");
    if (type == NULL) return;
    ret->element_type = datatype_find(slice_of_text(type->text));
    if (ret->element_type == DATATYPE_NONE)
        MANIFEST_ADD(manifest, type, "write one such as FP32, INT64 or UINT8",
            "'%.80s' is not an element type", type->text);
}

static void read_arg(
    const struct manifest *manifest, const struct yaml_node *node, struct entry_arg *ret) {
    static const char *const known[] = {"name", "value", "count", "buffer", "type", "access",
        "at_most", "at_least", "between", NULL};
    if (!manifest_check_mapping(manifest, node, "an argument", known)) return;
    ret->line = node->line;
    ret->column = node->column;
    ret->name = manifest_read_name(manifest, node, "name", NAME_MAX_BYTES, "");
    bool has_value = yaml_get(node, "value") != NULL, has_buffer = yaml_get(node, "buffer") != NULL;
    if (has_value == has_buffer)
        MANIFEST_ADD(manifest, node, "write value: f32, or buffer: in",
            "an argument is either a 'value' or a 'buffer'");
    else if (has_value) read_arg_value(manifest, node, ret);
    else read_arg_buffer(manifest, node, ret);
}

static void read_args(
    const struct manifest *manifest, const struct yaml_node *entry, struct entry *ret) {
    const struct yaml_node *list =
        manifest_require_list(manifest, entry, "args", 0, ENTRY_ARGS_MAX);
    if (list == NULL) return;
    ret->args = manifest_alloc(manifest, list->count, sizeof *ret->args);
    if (ret->args == NULL) return;
    ret->arg_count = list->count;
    for (size_t i = 0; i < list->count; i++) {
        read_arg(manifest, list->values[i], &ret->args[i]);
        for (size_t k = 0; k < i && ret->args[i].name != NULL; k++)
            if (ret->args[k].name != NULL && strcmp(ret->args[k].name, ret->args[i].name) == 0)
                MANIFEST_ADD(manifest, list->values[i], "give it another name",
                    "a second argument is named '%s'", ret->args[i].name);
    }
}

static void read_block(
    const struct manifest *manifest, const struct yaml_node *entry, uint32_t block[static 3]) {
    block[0] = 256;
    block[1] = block[2] = 1;
    if (yaml_get(entry, "block") == NULL) return;
    const struct yaml_node *list = manifest_require_list(manifest, entry, "block", 1, 3);
    if (list == NULL) return;
    uint32_t threads = 1;
    for (size_t i = 0; i < list->count; i++) {
        block[i] = manifest_read_number(
            manifest, list->values[i], "a side of the block", 1, i < 2 ? BLOCK_THREADS_MAX : 64);
        threads *= block[i];
    }
    if (threads > BLOCK_THREADS_MAX)
        MANIFEST_ADD(manifest, list, "write smaller sides: their product counts",
            "a block of %u threads; no device runs more than %d", threads, BLOCK_THREADS_MAX);
}

static void read_requirements(
    const struct manifest *manifest, const struct yaml_node *node, struct entry *ret) {
    static const char *const known[] = {"compute_capability", "cooperative", NULL};
    if (node == NULL || !manifest_check_mapping(manifest, node, "'requires'", known)) return;
    const struct yaml_node *capability = yaml_get(node, "compute_capability");
    if (capability != NULL) ret->capability_min = read_capability(manifest, capability);
    const struct yaml_node *cooperative = yaml_get(node, "cooperative");
    if (cooperative != NULL && !yaml_read_bool(cooperative, &ret->cooperative))
        MANIFEST_ADD(manifest, cooperative, "write true or false",
            "'cooperative' is neither true nor false");
}

/* With `params: buffer` the parameter block comes last, as a pointer to it. */
static void read_params(
    const struct manifest *manifest, const struct yaml_node *node, struct entry *ret) {
    static const char *const names[] = {"value", "buffer", NULL};
    if (node == NULL) return;
    ret->params_in_buffer = manifest_read_choice(manifest, node, "'params'", names, 0) == 1;
    if (!ret->params_in_buffer || ret->args == NULL) return;
    size_t words = 0;
    for (size_t i = 0; i < ret->arg_count; i++) words += ret->args[i].value_kind == ARG_WORDS;
    if (words != 1 || ret->args[ret->arg_count - 1].value_kind != ARG_WORDS)
        MANIFEST_ADD(manifest, node, "make one argument of words the last one",
            "'params: buffer' is for entries that end with their only words");
}

/* A number, or for a kernel that asks how many it has, from the least to the most. */
static void read_shared_bytes(
    const struct manifest *manifest, const struct yaml_node *node, struct entry *ret) {
    static const char *const known[] = {"least", "most", NULL};
    if (node == NULL) return;
    if (node->kind != YAML_MAPPING) {
        ret->shared_bytes =
            manifest_read_number(manifest, node, "'shared_bytes'", 0, SHARED_BYTES_MAX);
        ret->shared_bytes_least = ret->shared_bytes;
        return;
    }
    if (!manifest_check_mapping(manifest, node, "shared_bytes", known)) return;
    const struct yaml_node *most = manifest_require(manifest, node, "most");
    const struct yaml_node *least = manifest_require(manifest, node, "least");
    if (most == NULL || least == NULL) return;
    ret->has_shared_range = true;
    ret->shared_bytes = manifest_read_number(manifest, most, "'most'", 0, SHARED_BYTES_MAX);
    ret->shared_bytes_least =
        manifest_read_number(manifest, least, "'least'", 0, ret->shared_bytes);
}

static void read_entry(
    const struct manifest *manifest, const struct yaml_node *node, struct entry *ret) {
    static const char *const known[] = {"name", "symbol", "args", "params", "block", "shared_bytes",
        "requires", "phases", "batched", "blocks", "threads", NULL};
    if (!manifest_check_mapping(manifest, node, "an entry", known)) return;
    ret->name = manifest_read_name(manifest, node, "name", FILE_NAME_MAX_BYTES, "$");
    ret->symbol = ret->name;
    if (yaml_get(node, "symbol") != NULL)
        ret->symbol = manifest_read_name(manifest, node, "symbol", SYMBOL_MAX_BYTES, "$.");
    size_t before = problems_total(manifest->problems);
    read_args(manifest, node, ret);
    if (problems_total(manifest->problems) == before) bounds_read(manifest, node, ret);
    read_block(manifest, node, ret->block);
    read_shared_bytes(manifest, yaml_get(node, "shared_bytes"), ret);
    read_requirements(manifest, yaml_get(node, "requires"), ret);
    read_params(manifest, yaml_get(node, "params"), ret);
    if (yaml_get(node, "batched") != NULL)
        ret->batched = manifest_read_name(manifest, node, "batched", FILE_NAME_MAX_BYTES, "$");
}

static bool same_arg(const struct entry_arg *a, const struct entry_arg *b) {
    return a->role == b->role && a->word_count == b->word_count && a->value_kind == b->value_kind &&
           a->element_type == b->element_type;
}

static bool can_be_phase_of(const struct entry *phase, const struct entry *whole) {
    bool is_same = phase->arg_count == whole->arg_count &&
                   phase->params_in_buffer == whole->params_in_buffer &&
                   phase->capability_min <= whole->capability_min && !phase->cooperative;
    for (size_t i = 0; i < whole->arg_count && is_same; i++)
        is_same = same_arg(&phase->args[i], &whole->args[i]);
    return is_same;
}

static void read_phases(const struct manifest *manifest, const struct yaml_node *node,
    const struct program *program, struct entry *ret) {
    if (yaml_get(node, "phases") == NULL) return;
    const struct yaml_node *list =
        manifest_require_list(manifest, node, "phases", 1, ENTRY_PHASES_MAX);
    if (list == NULL) return;
    if (!ret->cooperative)
        MANIFEST_ADD(manifest, list, "write requires: {cooperative: true}, or remove them",
            "'phases' are for entries that need a grid-wide barrier");
    for (size_t i = 0; i < list->count; i++) {
        const char *name = list->values[i]->kind == YAML_SCALAR ? list->values[i]->text : "";
        const struct entry *phase = program_entry(program, slice_of_text(name));
        if (name[0] == 0 || phase == NULL)
            MANIFEST_ADD(manifest, list->values[i], "name an entry of this program",
                "there is no entry '%.80s' to be a phase", name);
        else if (!can_be_phase_of(phase, ret))
            MANIFEST_ADD(manifest, list->values[i],
                "give it the same arguments, and no stricter needs",
                "entry '%.80s' cannot be a phase of '%.80s'", name, ret->name);
        else ret->phases[ret->phase_count++] = (size_t)(phase - program->entries);
    }
}

static void read_entries(
    const struct manifest *manifest, const struct yaml_node *root, struct program *ret) {
    const struct yaml_node *list =
        manifest_require_list(manifest, root, "entries", 1, PROGRAM_ENTRIES_MAX);
    if (list == NULL) return;
    ret->entries = manifest_alloc(manifest, list->count, sizeof *ret->entries);
    if (ret->entries == NULL) return;
    ret->entry_count = list->count;
    size_t before = problems_total(manifest->problems);
    for (size_t i = 0; i < list->count; i++) {
        read_entry(manifest, list->values[i], &ret->entries[i]);
        const char *name = ret->entries[i].name;
        for (size_t k = 0; k < i && name != NULL; k++)
            if (ret->entries[k].name != NULL && strcmp(ret->entries[k].name, name) == 0)
                MANIFEST_ADD(
                    manifest, list->values[i], "give it another name", "a second entry '%s'", name);
    }
    if (problems_total(manifest->problems) != before) return; /* some entries are missing */
    for (size_t i = 0; i < list->count; i++)
        read_phases(manifest, list->values[i], ret, &ret->entries[i]);
}

static void read_architecture(
    const struct manifest *manifest, const struct yaml_node *node, struct image *ret) {
    const struct yaml_node *architecture = yaml_get(node, "architecture");
    if (ret->kind == IMAGE_CUBIN) {
        if (architecture == NULL) architecture = manifest_require(manifest, node, "architecture");
        if (architecture != NULL) ret->architecture = read_capability(manifest, architecture);
    } else if (architecture != NULL) {
        MANIFEST_ADD(manifest, architecture, "remove it", "'architecture' is for cubin images");
    }
}

static void read_image(
    const struct manifest *manifest, const struct yaml_node *node, struct image *ret) {
    static const char *const known[] = {"kind", "file", "architecture", NULL};
    if (!manifest_check_mapping(manifest, node, "an image", known)) return;
    ret->file = manifest_read_name(manifest, node, "file", FILE_NAME_MAX_BYTES, ".-+");
    const struct yaml_node *kind = manifest_require(manifest, node, "kind");
    int choice =
        kind == NULL ? -1 : manifest_read_choice(manifest, kind, "'kind'", kind_names, IMAGE_PTX);
    if (choice < 0) return;
    ret->kind = (enum image_kind)choice;
    read_architecture(manifest, node, ret);
}

static void read_images(
    const struct manifest *manifest, const struct yaml_node *root, struct program *ret) {
    const struct yaml_node *list = manifest_require_list(manifest, root, "images", 1, IMAGES_MAX);
    if (list == NULL) return;
    ret->images = manifest_alloc(manifest, list->count, sizeof *ret->images);
    if (ret->images == NULL) return;
    ret->image_count = list->count;
    for (size_t i = 0; i < list->count; i++) read_image(manifest, list->values[i], &ret->images[i]);
}

bool manifest_read(const struct yaml_document *document, struct arena *arena, struct program *ret,
    struct problems *problems) {
    static const char *const known[] = {"name", "description", "entries", "images", NULL};
    const struct manifest manifest = {.document = document, .arena = arena, .problems = problems};
    const struct yaml_node *root = yaml_root(document);
    *ret = (struct program){.description = (char *)""};
    size_t before = problems_total(problems);
    if (manifest_check_mapping(&manifest, root, "a program", known)) {
        ret->name = manifest_read_name(&manifest, root, "name", NAME_MAX_BYTES, ".-");
        const struct yaml_node *description = yaml_get(root, "description");
        if (description != NULL) ret->description = manifest_read_text(&manifest, description);
        read_entries(&manifest, root, ret);
        read_images(&manifest, root, ret);
    }
    return problems_total(problems) == before;
}

const char *arg_role_name(enum arg_role role) {
    INVARIANT(role <= ROLE_STATIC, "a role is one of the table");
    return role_names[role];
}

const char *arg_value_name(enum arg_kind kind) {
    INVARIANT(kind <= ARG_WORDS, "a kind of argument is one of the table");
    return value_names[kind];
}

const char *image_kind_name(enum image_kind kind) {
    INVARIANT(kind <= IMAGE_CPU, "a kind of image is one of the table");
    return kind_names[kind];
}
