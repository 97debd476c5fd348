/**
 * Programs: named bundles on disk, `<dir>/<name>/program.yaml` beside its kernel images. A job is
 * data, a program is code: only code in the configured folder can run.
 *
 * Lifetime: a program lives as long as a registry has it, or a holder. When a registry is loaded
 * again, both share programs that have not changed. Threads: read-only once loaded.
 */
#ifndef PROGRAM_PROGRAM_H
#define PROGRAM_PROGRAM_H

#include "base/digest.h"
#include "base/problems.h"
#include "decode/scalar.h"
#include "job/job.h"

enum { ENTRY_ARGS_MAX = 64, ENTRY_PHASES_MAX = 8, PROGRAM_ENTRIES_MAX = 64 };

/** What a kernel does with an argument. */
enum arg_role {
    ROLE_VALUE, /* a scalar or a block of words, by value */
    ROLE_IN,    /* buffers: read */
    ROLE_OUT,   /* written */
    ROLE_INOUT, /* both */
    ROLE_STATIC /* read, and expected to be a static of the job */
};

/** The range of a scalar, including both ends; for words, of each word, as u32. */
struct range {
    bool is_set;
    struct scalar min, max; /* UINT, INT or, of f32 and f64, FLOAT */
};

struct entry_arg {
    char *name;
    enum arg_role role;
    uint32_t word_count;        /* ARG_WORDS: how many u32 words the block has */
    enum arg_kind value_kind;   /* ROLE_VALUE: ARG_U32 .. ARG_WORDS */
    enum datatype element_type; /* of buffers; DATATYPE_NONE: any bytes */
    bool is_streamed; /* of buffers: each byte is used once, so the buffer may be in host memory */
    struct range between; /* ROLE_VALUE */
    int line, column;     /* in the manifest */
};

/** A number in a bound, known when a launch is planned. */
enum term_kind {
    TERM_CONSTANT,
    TERM_ARG,    /* a value of the entry; for words, each of them */
    TERM_BLOCKS, /* of the grid */
    TERM_THREADS /* of a block */
};
struct term {
    enum term_kind kind;
    uint64_t constant;
    size_t arg; /* by index */
};

enum { BOUND_SHARED = ENTRY_ARGS_MAX }; /* instead of a buffer: the launch's shared_bytes */

/**
 * `what * times + plus` must not exceed the size of a buffer: in elements of its type or, without a
 * type, in bytes.
 */
struct bound {
    struct term what;        /* TERM_CONSTANT: the buffer's `at_least` */
    struct term times, plus; /* constants, whole numbers among the arguments, blocks or threads */
    size_t buffer;           /* index of an argument of the entry, or BOUND_SHARED */
};

/**
 * One kernel of a program, as jobs see it.
 *
 * A cooperative entry may have phases: entries with the same arguments. If its grid cannot run at
 * once, these are launched instead, one after the other, with its grid, block and shared memory,
 * and do the same.
 */
struct entry {
    char *name;
    char *symbol;     /* what the images call the kernel: `name`, unless the manifest says more */
    size_t arg_count; /* <= ENTRY_ARGS_MAX */
    struct entry_arg *args;
    size_t bound_count;
    const struct bound
        *bounds;           /* what a launch must keep to, so that the kernel stays in its buffers */
    uint32_t block[3];     /* default threads of a block */
    uint32_t shared_bytes; /* default dynamic shared memory of a block */
    uint32_t shared_bytes_least; /* the default on a device that has fewer is what it has, but not
                                    below this */
    bool has_shared_range; /* a step may ask for no less than the least, and for no more than the
                              default */
    bool cooperative;      /* needs a grid-wide barrier */
    size_t phase_count;    /* <= ENTRY_PHASES_MAX; 0: it has no phases */
    size_t phases[ENTRY_PHASES_MAX]; /* by index as the program's entries */
    int capability_min;              /* 10 x major + minor, such as 80; 0: any */
    bool params_in_buffer; /* its parameter block is in device memory, and the kernel gets a pointer
                            */
    char *batched;         /* the kernel that runs many jobs in one launch; NULL if there is none */
};

enum image_kind { IMAGE_PTX, IMAGE_CUBIN, IMAGE_CPU };

struct image {
    enum image_kind kind;
    char *file;           /* its name in the program's folder */
    int architecture;     /* CUBIN: 10 x major + minor */
    struct digest digest; /* of the bytes */
    struct slice bytes;   /* PTX: followed by a NUL, as the driver requires */
};

struct bundle;

struct program {
    struct bundle *bundle; /* owns the rest */
    char *name;
    char *description;     /* may be empty */
    size_t entry_count;    /* <= PROGRAM_ENTRIES_MAX */
    struct entry *entries; /* the first is the default */
    size_t image_count;
    struct image *images;
};

/** The names used in manifests: "inout", "f32", "ptx". */
const char *arg_role_name(enum arg_role role);
const char *arg_value_name(enum arg_kind kind);
const char *image_kind_name(enum image_kind kind);

struct registry;

/**
 * Loads every folder of `dir` that holds a program.yaml. Everything wrong (manifest, missing or
 * empty images, kernels that take other parameters, a folder whose name is not the program's, no
 * program at all) is added to `problems`; programs without problems are still loaded. NULL only
 * when memory is short.
 */
struct registry *registry_load(const char *dir, struct problems *problems);

/**
 * The same, but shares with `earlier` (may be NULL) the programs that have not changed by a byte.
 */
struct registry *registry_load_again(
    const char *dir, const struct registry *earlier, struct problems *problems);
void registry_destroy(struct registry *registry); /* NULL is fine */

size_t registry_count(const struct registry *registry);
const struct program *registry_at(const struct registry *registry, size_t index);

/** NULL if there is none of that name. */
const struct program *registry_find(const struct registry *registry, struct slice name);

/**
 * The name that `name` was probably meant to be, of those that stand near it in their order; NULL
 * if there is none.
 */
const char *registry_nearest(const struct registry *registry, struct slice name);

/** Whether both are the same program, loaded from the same files. */
bool program_is_same(const struct program *a, const struct program *b);

/** Whether a registry still has the program. The caller must hold it. */
bool program_is_installed(const struct program *program);

void program_hold(const struct program *program);
void program_release(const struct program *program);

/** An empty name means the first entry. NULL if there is no entry of that name. */
const struct entry *program_entry(const struct program *program, struct slice name);

/** As registry_nearest(), of the entries. */
const char *program_nearest_entry(const struct program *program, struct slice name);

/**
 * The image to load: the `cpu` image for the CPU driver; for CUDA the cubin of exactly this
 * architecture, otherwise the PTX. If several fit equally, the first. With `pinned`, only the image
 * with that digest. NULL if there is none.
 */
const struct image *program_image(
    const struct program *program, bool on_cpu, int architecture, const struct digest *pinned);

#endif
