#include "support/groups.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static struct test_group *groups;

void test_group_add(struct test_group *group) {
    group->next = groups;
    groups = group;
}

/* What a file tests: "ring" of ".../base/ring_test.c". */
static int name_of(const struct test_group *group, const char **ret) {
    const char *slash = strrchr(group->file, '/');
    *ret = slash != NULL ? slash + 1 : group->file;
    return (int)(strlen(*ret) - strlen("_test.c"));
}

static bool has_name(const struct test_group *group, const char *wanted) {
    const char *name;
    int length = name_of(group, &name);
    return strlen(wanted) == (size_t)length && strncmp(name, wanted, (size_t)length) == 0;
}

/* test_<folder> [FILE]: without a name where there is one file alone. */
int main(int argc, char **argv) {
    const char *name;
    if (argc == 1 && groups->next == NULL) return groups->run();
    for (const struct test_group *group = groups; argc == 2 && group != NULL; group = group->next)
        if (has_name(group, argv[1])) return group->run();
    fprintf(stderr, "usage: %s NAME, which is one of:", argv[0]);
    for (const struct test_group *group = groups; group != NULL; group = group->next) {
        int length = name_of(group, &name);
        fprintf(stderr, " %.*s", length, name);
    }
    fprintf(stderr, "\n");
    return 2;
}
