#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/nearest.h"
#include "base/pulse.h"
#include "base/shared.h"
#include "base/text.h"
#include "program/manifest.h"
#include "program/params.h"

enum {
    MANIFEST_BYTES_MAX = 16 << 20,
    PARSED_BYTES_MAX = 64 << 20, /* of a manifest */
    IMAGE_BYTES_MAX = 256 << 20
};

static const char NO_MEMORY[] = "give the process more memory";

/* A program and the memory that it owns. */
struct bundle {
    struct shared shared;
    atomic_size_t registries; /* how many of its holders are registries */
    struct arena arena;       /* what was read from the manifest */
    struct digest manifest;
    size_t image_count;
    struct image *images;
};

struct registry {
    struct program *programs; /* by name */
    size_t count;
};

/* ---- bundles ---- */

static void bundle_end(struct shared *shared) {
    struct bundle *bundle = (struct bundle *)shared;
    for (size_t i = 0; i < bundle->image_count; i++) free((void *)bundle->images[i].bytes.data);
    arena_fini(&bundle->arena);
    free(bundle);
}

static struct bundle *bundle_create(void) {
    struct bundle *bundle = calloc(1, sizeof *bundle);
    if (bundle == NULL) return NULL;
    shared_init(&bundle->shared, bundle_end);
    arena_init(&bundle->arena, PARSED_BYTES_MAX);
    return bundle;
}

void program_hold(const struct program *program) {
    shared_hold(&program->bundle->shared);
}

void program_release(const struct program *program) {
    shared_release(&program->bundle->shared);
}

bool program_is_same(const struct program *a, const struct program *b) {
    return a->bundle == b->bundle;
}

bool program_is_installed(const struct program *program) {
    /* relaxed: the caller has released the registry before, on the same thread */
    return atomic_load_explicit(&program->bundle->registries, memory_order_relaxed) > 0;
}

static bool are_alike(const struct bundle *a, const struct bundle *b) {
    bool ret = digest_equal(&a->manifest, &b->manifest) && a->image_count == b->image_count;
    for (size_t i = 0; ret && i < a->image_count; i++)
        ret = digest_equal(&a->images[i].digest, &b->images[i].digest);
    return ret;
}

/* ---- one program ---- */

/* Reads the bytes of an image. Problems are added at `node`, the file's name. */
static void load_image(const char *folder, const struct yaml_document *document,
    const struct yaml_node *node, struct image *image, struct problems *problems) {
    char *path, *bytes;
    size_t size;
    struct error err;
    if (asprintf(&path, "%s/%s", folder, image->file) < 0) {
        yaml_problem(problems, document, node, NO_MEMORY, "out of memory");
        return;
    }
    if (file_read(path, IMAGE_BYTES_MAX, &bytes, &size, &err) != ERR_OK) {
        yaml_problem(problems, document, node, err.fix, "%s", err.message);
    } else {
        image->bytes = slice_of(bytes, size); /* file_read() adds the NUL that PTX needs */
        image->digest = digest_of(image->bytes);
        if (size == 0) yaml_problem(problems, document, node, "build it again", "%s: empty", path);
        if (image->kind == IMAGE_PTX && strlen(bytes) != size)
            yaml_problem(problems, document, node, "build it again", "%s: not a text file", path);
    }
    free(path);
}

static void load_images(const char *folder, const struct yaml_document *document,
    struct program *program, struct problems *problems) {
    const struct yaml_node *images = yaml_get(yaml_root(document), "images");
    for (size_t i = 0; i < program->image_count; i++) {
        size_t before = problems_total(problems);
        load_image(
            folder, document, yaml_get(images->values[i], "file"), &program->images[i], problems);
        if (problems_total(problems) == before)
            params_check(document, program, &program->images[i], problems);
    }
}

/* Reads the program of `document` into `bundle`. */
static void load_program(const struct yaml_document *document, const char *folder, const char *name,
    struct bundle *bundle, struct program *ret, struct problems *problems) {
    if (!manifest_read(document, &bundle->arena, ret, problems)) return;
    ret->bundle = bundle;
    bundle->image_count = ret->image_count;
    bundle->images = ret->images;
    if (strcmp(ret->name, name) != 0)
        yaml_problem(problems, document, yaml_get(yaml_root(document), "name"),
            "rename one of them", "program '%s' in a folder named '%s'", ret->name, name);
    load_images(folder, document, ret, problems);
}

static bool append(struct registry *registry, const struct program *program) {
    struct program *programs =
        reallocarray(registry->programs, registry->count + 1, sizeof *programs);
    if (programs == NULL) return false;
    registry->programs = programs;
    programs[registry->count++] = *program;
    program_hold(program);
    /* relaxed: a single number, read once the registry is gone */
    atomic_fetch_add_explicit(&program->bundle->registries, 1, memory_order_relaxed);
    return true;
}

/* The program, or the program of the same name in `earlier` if nothing has changed. */
static const struct program *choose(const struct program *program, const struct registry *earlier) {
    const struct program *other =
        earlier != NULL ? registry_find(earlier, slice_of_text(program->name)) : NULL;
    return other != NULL && are_alike(program->bundle, other->bundle) ? other : program;
}

/* A folder of a program, and the registry that the program is added to. */
struct place {
    const char *folder, *name;
    const struct registry *earlier;
    struct registry *registry;
};

/* Adds the program of a manifest's text, if it has no problems. */
static void add_program(
    const struct place *place, const char *path, struct slice text, struct problems *problems) {
    struct program program;
    size_t before = problems_total(problems);
    struct bundle *bundle = bundle_create();
    struct yaml_document *document =
        bundle != NULL ? yaml_parse(path, text, YAML_KEEP_VARIABLES, problems) : NULL;
    if (bundle != NULL) bundle->manifest = digest_of(text);
    if (document != NULL)
        load_program(document, place->folder, place->name, bundle, &program, problems);
    bool is_added = document != NULL && problems_total(problems) == before &&
                    append(place->registry, choose(&program, place->earlier));
    if (!is_added && problems_total(problems) == before)
        problems_add(problems, place->folder, 0, 0, NO_MEMORY, "out of memory");
    yaml_destroy(document);
    if (bundle != NULL) shared_release(&bundle->shared);
}

/* Adds the program in the folder, if there is one and it has no problems. */
static void load_folder(const struct place *place, struct problems *problems) {
    char *path, *text;
    size_t size;
    struct error err;
    if (asprintf(&path, "%s/program.yaml", place->folder) < 0) {
        problems_add(problems, place->folder, 0, 0, NO_MEMORY, "out of memory");
        return;
    }
    bool is_program = access(path, F_OK) == 0;
    if (!is_program && errno != ENOENT && errno != ENOTDIR) {
        problems_add(problems, path, 0, 0, "let the worker read it", "%s", strerror(errno));
    } else if (is_program && file_read(path, MANIFEST_BYTES_MAX, &text, &size, &err) != ERR_OK) {
        file_add_problem(problems, path, &err);
    } else if (is_program) {
        add_program(place, path, slice_of(text, size), problems);
        free(text);
    }
    free(path);
}

/* Mounted volumes have hidden folders with the same files, whose names begin with a dot. */
static int is_visible(const struct dirent *entry) {
    return entry->d_name[0] != '.';
}

static int by_name(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

struct registry *registry_load(const char *dir, struct problems *problems) {
    return registry_load_again(dir, NULL, problems);
}

struct registry *registry_load_again(
    const char *dir, const struct registry *earlier, struct problems *problems) {
    struct registry *registry = calloc(1, sizeof *registry);
    if (registry == NULL) return NULL;
    struct dirent **entries = NULL;
    int count = scandir(dir, &entries, is_visible, by_name);
    if (count < 0)
        problems_add(problems, dir, 0, 0, "set programs.dir to the folder of programs", "%s",
            strerror(errno));
    size_t before = problems_total(problems);
    for (int i = 0; i < count; i++) {
        char *folder;
        pulse_busy();
        if (asprintf(&folder, "%s/%s", dir, entries[i]->d_name) < 0) {
            problems_add(problems, dir, 0, 0, NO_MEMORY, "out of memory");
        } else {
            const struct place place = {folder, entries[i]->d_name, earlier, registry};
            load_folder(&place, problems);
            free(folder);
        }
        free(entries[i]);
    }
    free(entries);
    if (count >= 0 && registry->count == 0 && problems_total(problems) == before)
        problems_add(problems, dir, 0, 0, "set programs.dir to the folder of programs",
            "no program is in it");
    return registry;
}

void registry_destroy(struct registry *registry) {
    if (registry == NULL) return;
    for (size_t i = 0; i < registry->count; i++) {
        struct bundle *bundle = registry->programs[i].bundle;
        atomic_fetch_sub_explicit(&bundle->registries, 1, memory_order_relaxed); /* as above */
        shared_release(&bundle->shared);
    }
    free(registry->programs);
    free(registry);
}

size_t registry_count(const struct registry *registry) {
    return registry->count;
}

const struct program *registry_at(const struct registry *registry, size_t index) {
    return index < registry->count ? &registry->programs[index] : NULL;
}

static int compare_name(const void *key, const void *element) {
    const struct slice *name = key;
    struct slice other = slice_of_text(((const struct program *)element)->name);
    size_t common = name->size < other.size ? name->size : other.size;
    int order = common == 0 ? 0 : memcmp(name->data, other.data, common);
    return order != 0 ? order : (name->size > other.size) - (name->size < other.size);
}

const struct program *registry_find(const struct registry *registry, struct slice name) {
    if (registry->count == 0) return NULL;
    return bsearch(
        &name, registry->programs, registry->count, sizeof *registry->programs, compare_name);
}

/* Senders choose what is looked for, so how much is compared has bounds. */
enum { NEAREST_WORD_BYTES = 64, NEAREST_EACH_WAY = 32 };

/* Makes a text of the name; false if it is too long to be a typing error worth finding. */
static bool begin_nearest(
    struct nearest *nearest, struct slice name, char word[static NEAREST_WORD_BYTES]) {
    if (name.size >= NEAREST_WORD_BYTES) return false;
    text_format(word, NEAREST_WORD_BYTES, "%.*s", SLICE_TEXT(name));
    nearest_init(nearest, word);
    return true;
}

const char *registry_nearest(const struct registry *registry, struct slice name) {
    char word[NEAREST_WORD_BYTES];
    struct nearest nearest;
    if (!begin_nearest(&nearest, name, word)) return NULL;
    size_t below = 0;
    for (size_t above = registry->count; below < above;) {
        size_t middle = below + (above - below) / 2;
        if (compare_name(&name, &registry->programs[middle]) > 0) below = middle + 1;
        else above = middle;
    }
    size_t first = below > NEAREST_EACH_WAY ? below - NEAREST_EACH_WAY : 0;
    for (size_t i = first; i < registry->count && i < below + NEAREST_EACH_WAY; i++)
        nearest_offer(&nearest, registry->programs[i].name);
    return nearest.text;
}

const struct entry *program_entry(const struct program *program, struct slice name) {
    if (name.size == 0) return &program->entries[0];
    for (size_t i = 0; i < program->entry_count; i++)
        if (slice_is_text(name, program->entries[i].name)) return &program->entries[i];
    return NULL;
}

const char *program_nearest_entry(const struct program *program, struct slice name) {
    char word[NEAREST_WORD_BYTES];
    struct nearest nearest;
    if (!begin_nearest(&nearest, name, word)) return NULL;
    for (size_t i = 0; i < program->entry_count; i++)
        nearest_offer(&nearest, program->entries[i].name);
    return nearest.text;
}

const struct image *program_image(
    const struct program *program, bool on_cpu, int architecture, const struct digest *pinned) {
    const struct image *ret = NULL;
    for (size_t i = 0; i < program->image_count; i++) {
        const struct image *image = &program->images[i];
        if (pinned != NULL && !digest_equal(&image->digest, pinned)) continue;
        if (on_cpu && image->kind == IMAGE_CPU) return image;
        if (!on_cpu && image->kind == IMAGE_CUBIN && image->architecture == architecture)
            return image;
        if (!on_cpu && image->kind == IMAGE_PTX && ret == NULL) ret = image;
    }
    return ret;
}
