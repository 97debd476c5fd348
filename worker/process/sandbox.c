#include "process/sandbox.h"

#include <linux/capability.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static const int kept_capabilities[] = {CAP_DAC_READ_SEARCH, CAP_IPC_LOCK, CAP_SYS_NICE};

static void drop_capabilities(void) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[2];
    uint32_t kept[2] = {0};
    for (size_t i = 0; i < sizeof kept_capabilities / sizeof kept_capabilities[0]; i++)
        kept[CAP_TO_INDEX(kept_capabilities[i])] |= CAP_TO_MASK(kept_capabilities[i]);
    if (syscall(SYS_capget, &header, sets) != 0) return;
    for (int i = 0; i < 2; i++) {
        sets[i].permitted &= kept[i];
        sets[i].effective &= kept[i];
        sets[i].inheritable &= kept[i];
    }
    (void)syscall(SYS_capset, &header, sets);
}

void sandbox_enter(bool allows_core_dumps) {
    const struct rlimit none = {0};
    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    drop_capabilities();
    if (allows_core_dumps) return;
    (void)setrlimit(RLIMIT_CORE, &none);
    /*
     * A core pattern that is a pipe ignores the size limit. This also keeps other processes of this
     * user from reading our memory.
     */
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}
