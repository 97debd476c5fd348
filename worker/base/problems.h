/**
 * Collects what is wrong with a file that a person wrote: every problem, not only the first.
 * Lifetime: problems_init() to problems_fini(). Threads: one at a time.
 */
#ifndef BASE_PROBLEMS_H
#define BASE_PROBLEMS_H

#include "base/error.h"

struct problem {
    char *where; /* "worker.yaml:12:5", or only the file if there is no position */
    char *what;
    char *fix; /* may be empty */
};

struct problems {
    struct problem *items;
    size_t count;
    size_t omitted; /* found but not kept: more than PROBLEMS_MAX, or memory was short */
};

enum { PROBLEMS_MAX = 100 };

void problems_init(struct problems *problems);
void problems_fini(struct problems *problems);

/**
 * Adds "file:line:column"; line 0 stands for the file as a whole. Control characters, which names
 * in a file may contain, become "?", so that a problem stays one line, and UTF-8 where it was cut.
 */
__attribute__((format(printf, 6, 7))) void problems_add(struct problems *problems, const char *file,
    int line, int column, const char *fix, const char *format, ...);

/** How many were found, kept or omitted. */
size_t problems_total(const struct problems *problems);
bool problems_any(const struct problems *problems);

/**
 * ERR_OK if there are none. Otherwise ERR_CONFIG with the first problem and the number of others,
 * or ERR_NO_MEMORY if not even the first could be kept.
 */
MUST_CHECK enum err problems_check(const struct problems *problems, struct error *err);

/** Writes one line for each problem to standard error: "<prefix>: <where>: <what>; <fix>". */
void problems_print(const struct problems *problems, const char *prefix);

#endif
