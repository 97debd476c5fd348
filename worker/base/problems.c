#include "base/problems.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

void problems_init(struct problems *problems) {
    *problems = (struct problems){0};
}

static void problem_fini(struct problem *problem) {
    free(problem->where);
    free(problem->what);
    free(problem->fix);
}

void problems_fini(struct problems *problems) {
    for (size_t i = 0; i < problems->count; i++) problem_fini(&problems->items[i]);
    free(problems->items);
    problems_init(problems);
}

static char *format_where(const char *file, int line, int column) {
    char *ret = NULL;
    int length =
        line == 0 ? asprintf(&ret, "%s", file) : asprintf(&ret, "%s:%d:%d", file, line, column);
    return length < 0 ? NULL : ret;
}

/* Problems quote files of strangers, and a name that was cut may end within a character. */
static void make_one_line(char *text) {
    text_mend(text);
    text_tame(text);
}

/*
 * Takes ownership of the strings of `problem`; false if there is no room, and they stay the
 * caller's.
 */
static bool keep(struct problems *problems, const struct problem *problem) {
    if (problem->where == NULL || problem->what == NULL || problem->fix == NULL) return false;
    if (problems->count == PROBLEMS_MAX) return false;
    struct problem *items = reallocarray(problems->items, problems->count + 1, sizeof *items);
    if (items == NULL) return false;
    problems->items = items;
    items[problems->count++] = *problem;
    make_one_line(problem->where);
    make_one_line(problem->what);
    return true;
}

void problems_add(struct problems *problems, const char *file, int line, int column,
    const char *fix, const char *format, ...) {
    struct problem problem = {.where = format_where(file, line, column), .fix = strdup(fix)};
    va_list args;
    va_start(args, format);
    if (vasprintf(&problem.what, format, args) < 0) problem.what = NULL;
    va_end(args);
    if (keep(problems, &problem)) return;
    problem_fini(&problem);
    problems->omitted++;
}

size_t problems_total(const struct problems *problems) {
    return problems->count + problems->omitted;
}

bool problems_any(const struct problems *problems) {
    return problems_total(problems) > 0;
}

enum err problems_check(const struct problems *problems, struct error *err) {
    if (!problems_any(problems)) return ERR_OK;
    if (problems->count == 0)
        return error_set(err, ERR_NO_MEMORY, 0, "", "no memory left to say what is wrong");
    const struct problem *first = &problems->items[0];
    size_t more = problems_total(problems) - 1;
    if (more == 0)
        return error_set(err, ERR_CONFIG, 0, first->fix, "%s: %s", first->where, first->what);
    return error_set(err, ERR_CONFIG, 0, first->fix, "%s: %s (and %zu more problems)", first->where,
        first->what, more);
}

void problems_print(const struct problems *problems, const char *prefix) {
    for (size_t i = 0; i < problems->count; i++) {
        const struct problem *problem = &problems->items[i];
        fprintf(stderr, "%s: %s: %s%s%s\n", prefix, problem->where, problem->what,
            problem->fix[0] != 0 ? "; " : "", problem->fix);
    }
    if (problems->omitted > 0)
        fprintf(stderr, "%s: %zu more problems are not shown\n", prefix, problems->omitted);
}
