/** The tests of one file, run by its name: all files of a folder are one program. Threads: none
 * yet. */
#ifndef TESTS_SUPPORT_GROUPS_H
#define TESTS_SUPPORT_GROUPS_H

struct test_group {
    const char *file; /* a path; its name ends with _test.c */
    int (*run)(void); /* the value of main() */
    struct test_group *next;
};

/** Before main(). The group stays the caller's. */
void test_group_add(struct test_group *group);

#endif
