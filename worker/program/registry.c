#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "program/manifest.h"
#include "program/params.h"

enum { MANIFESTS_BYTES_MAX = 64 << 20, IMAGE_BYTES_MAX = 256 << 20 };

struct registry {
    struct arena arena;       /* what the manifests say */
    struct program *programs; /* by name */
    size_t count;
};

static void free_images(struct program *program) {
    for (size_t i = 0; i < program->image_count; i++) free((void *)program->images[i].bytes.data);
}

/* Reads the bytes of an image; what is wrong is added at `node`, its file's name. */
static void load_image(const char *folder, const struct yaml_document *document,
    const struct yaml_node *node, struct image *image, struct problems *problems) {
    char *path, *bytes;
    size_t size;
    struct error err;
    if (asprintf(&path, "%s/%s", folder, image->file) < 0) {
        yaml_problem(problems, document, node, "", "out of memory");
        return;
    }
    if (file_read(path, IMAGE_BYTES_MAX, &bytes, &size, &err) != ERR_OK) {
        yaml_problem(problems, document, node, err.fix, "%s", err.message);
    } else {
        image->bytes = slice_of(bytes, size); /* file_read() ends them with the NUL for PTX */
        image->digest = digest_of(image->bytes);
        if (size == 0) yaml_problem(problems, document, node, "build it again", "%s: empty", path);
        if (image->kind == IMAGE_PTX && strlen(bytes) != size)
            yaml_problem(problems, document, node, "", "%s: not a text file", path);
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

/* Reads the program of `document`; its images are to be freed even where problems were added. */
static void load_program(struct registry *registry, const struct yaml_document *document,
    const char *folder, const char *name, struct program *ret, struct problems *problems) {
    if (!manifest_read(document, &registry->arena, ret, problems)) {
        ret->image_count = 0;
        return;
    }
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
    return true;
}

/* Adds the program in `folder`, if that holds one and nothing is wrong with it. */
static void load_folder(
    struct registry *registry, const char *folder, const char *name, struct problems *problems) {
    char *path;
    if (asprintf(&path, "%s/program.yaml", folder) < 0) {
        problems_add(problems, folder, 0, 0, "", "out of memory");
        return;
    }
    size_t before = problems_total(problems);
    bool is_program = access(path, F_OK) == 0;
    if (!is_program && errno != ENOENT && errno != ENOTDIR)
        problems_add(problems, path, 0, 0, "let the worker read it", "%s", strerror(errno));
    struct yaml_document *document =
        is_program ? yaml_load(path, YAML_KEEP_VARIABLES, problems) : NULL;
    free(path);
    if (document == NULL) return;
    struct program program;
    load_program(registry, document, folder, name, &program, problems);
    if (problems_total(problems) == before && !append(registry, &program))
        problems_add(problems, folder, 0, 0, "", "out of memory");
    if (problems_total(problems) > before) free_images(&program);
    yaml_destroy(document);
}

/* Folders of mounted volumes have dotted ones beside them that hold the same files. */
static int is_visible(const struct dirent *entry) {
    return entry->d_name[0] != '.';
}

static int by_name(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

struct registry *registry_load(const char *dir, struct problems *problems) {
    struct registry *registry = calloc(1, sizeof *registry);
    if (registry == NULL) return NULL;
    arena_init(&registry->arena, MANIFESTS_BYTES_MAX);
    struct dirent **entries = NULL;
    int count = scandir(dir, &entries, is_visible, by_name);
    if (count < 0)
        problems_add(problems, dir, 0, 0, "set programs.dir to the folder of programs", "%s",
            strerror(errno));
    size_t before = problems_total(problems);
    for (int i = 0; i < count; i++) {
        char *folder;
        if (asprintf(&folder, "%s/%s", dir, entries[i]->d_name) < 0) {
            problems_add(problems, dir, 0, 0, "", "out of memory");
        } else {
            load_folder(registry, folder, entries[i]->d_name, problems);
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
    for (size_t i = 0; i < registry->count; i++) free_images(&registry->programs[i]);
    free(registry->programs);
    arena_fini(&registry->arena);
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

const struct entry *program_entry(const struct program *program, struct slice name) {
    if (name.size == 0) return &program->entries[0];
    for (size_t i = 0; i < program->entry_count; i++)
        if (slice_is_text(name, program->entries[i].name)) return &program->entries[i];
    return NULL;
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
