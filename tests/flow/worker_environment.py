"""The environment of workers that meet faults, which are to be the same in builds with a sanitizer."""

import os

# Fatal signals are left to the process, which dies of them as any other does. What is preloaded may come before the
# sanitizer, which knows nothing of it. Where memory ends, who asked for it is told.
OPTIONS = ":".join([f"handle_{name}=0" for name in ("segv", "sigbus", "sigfpe", "sigill", "abort")]
                   + ["verify_asan_link_order=0", "allocator_may_return_null=1"])


def for_faults(preload=None, **variables):
    """With the library, where there is one, whose functions take the place of others', and what it wants to know."""
    environment = os.environ | {name: f"{os.environ.get(name, '')}:{OPTIONS}" for name in ("ASAN_OPTIONS", "TSAN_OPTIONS")}
    return environment | ({"LD_PRELOAD": str(preload.resolve())} if preload else {}) | variables
