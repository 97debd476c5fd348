#include "support/at_once.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct child {
    pid_t pid;
    FILE *output;
};

static void give_up(const char *what) {
    perror(what);
    exit(2); /* the children that have begun end with this process */
}

/* Does not return in the child. */
static struct child start(const struct CMUnitTest *test) {
    struct child child = {.output = tmpfile()};
    if (child.output == NULL) give_up("tmpfile");
    child.pid = fork();
    if (child.pid < 0) give_up("fork");
    if (child.pid > 0) return child;
    int descriptor = fileno(child.output);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || dup2(descriptor, STDOUT_FILENO) < 0 ||
        dup2(descriptor, STDERR_FILENO) < 0)
        give_up("what a test's process inherits");
    exit(_cmocka_run_group_tests(test->name, test, 1, NULL, NULL));
}

/* False: it failed, or was killed. */
static bool wait_for(const struct child *child, const char *name) {
    int status, byte;
    if (waitpid(child->pid, &status, 0) < 0) give_up("waitpid");
    rewind(child->output);
    while ((byte = getc(child->output)) != EOF) putchar(byte);
    fclose(child->output);
    if (WIFSIGNALED(status)) printf("%s: killed by signal %d\n", name, WTERMSIG(status));
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int run_at_once(const struct CMUnitTest *tests, size_t count) {
    struct child *children = calloc(count, sizeof *children);
    if (children == NULL) give_up("calloc");
    int failures = 0;
    fflush(NULL); /* a child would print it once more */
    for (size_t i = 0; i < count; i++) children[i] = start(&tests[i]);
    for (size_t i = 0; i < count; i++) {
        printf("%s:\n", tests[i].name); /* which one, if it never ends */
        fflush(stdout);
        if (!wait_for(&children[i], tests[i].name)) failures++;
    }
    free(children);
    return failures;
}
