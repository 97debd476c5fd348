/* What an executor holds once it is in its sandbox. */
#include "process/sandbox.h"

#include <linux/capability.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log_limit.h"
#include "testing.h"

static bool has_capability(int number) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[2];
    if (syscall(SYS_capget, &header, sets) != 0) return true;
    const struct __user_cap_data_struct *set = &sets[CAP_TO_INDEX(number)];
    return ((set->permitted | set->effective | set->inheritable) & CAP_TO_MASK(number)) != 0;
}

/* 0, or which of the promises is broken. */
static int check_sandbox(void) {
    static const int given_up[] = {CAP_DAC_OVERRIDE, CAP_CHOWN, CAP_FOWNER, CAP_SETUID, CAP_SETGID,
        CAP_SYS_ADMIN, CAP_SYS_PTRACE, CAP_NET_RAW, CAP_NET_ADMIN, CAP_KILL, CAP_MKNOD,
        CAP_SYS_MODULE, CAP_SYS_CHROOT, CAP_SETPCAP, CAP_SYS_RAWIO, CAP_SYS_RESOURCE};
    struct rlimit core;
    sandbox_enter(false);
    for (size_t i = 0; i < sizeof given_up / sizeof given_up[0]; i++)
        if (has_capability(given_up[i])) return 1;
    if (prctl(PR_GET_DUMPABLE) != 0) return 2;
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1) return 3;
    return getrlimit(RLIMIT_CORE, &core) == 0 && core.rlim_max == 0 ? 0 : 4;
}

TEST(an_executor_holds_nothing_that_it_does_not_need) {
    int status;
    pid_t pid = fork();
    if (pid == 0) _exit(check_sandbox());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

TEST(lines_that_strangers_cause_are_bounded_and_what_is_left_out_is_counted) {
    struct log_limit limit = LOG_LIMIT_OF_SENDERS;
    uint64_t left_out, now_ns = 1ull << 40;
    for (int i = 0; i < (int)limit.lines_max; i++) {
        assert_true(log_limit_take(&limit, now_ns, &left_out));
        assert_int_equal(left_out, 0);
    }
    for (int i = 0; i < 1000; i++) assert_false(log_limit_take(&limit, now_ns, &left_out));
    now_ns += limit.per_ms * 1000000ull;
    assert_true(log_limit_take(&limit, now_ns, &left_out));
    assert_int_equal(left_out, 1000);
    assert_true(log_limit_take(&limit, now_ns, &left_out));
    assert_int_equal(left_out, 0);
}

RUN_TESTS(cmocka_unit_test(an_executor_holds_nothing_that_it_does_not_need),
    cmocka_unit_test(lines_that_strangers_cause_are_bounded_and_what_is_left_out_is_counted))
