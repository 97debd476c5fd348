/* The kernels of a shared object as others may have built it: what is said here stands in the file.
 */
#include "kernel_cpu.h"

static void run(const struct kernel_thread *self, void **args) {
    (void)self;
    (void)args;
}

const struct kernel_info kernel_scale = {.entry = run, .param_count = 2, .param_bytes = {4, 8}};
const struct kernel_info kernel_batch = {.entry = run, .param_count = 2, .param_bytes = {8, 4}};
const struct kernel_info kernel_greedy = {.entry = run, .param_count = 17, .param_bytes = {4, 8}};
const char kernel_short[4] = "abc";
