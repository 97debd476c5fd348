#include "cpu_driver/operation.h"

#include <stdlib.h>

#include "base/invariant.h"

struct cpu_operation *cpu_operation_create(enum cpu_operation_kind kind, struct cpu_fault fault) {
    struct cpu_operation *operation = calloc(1, sizeof *operation);
    if (operation == NULL) return NULL;
    operation->kind = kind;
    operation->fault = fault;
    return operation;
}

void cpu_operation_use(struct cpu_operation *operation, struct cpu_use use) {
    INVARIANT(operation->use_count < KERNEL_PARAMS_MAX,
        "an operation has room for each block that it names");
    operation->uses[operation->use_count++] = use;
    use.block->users++;
}

void cpu_operation_destroy(struct cpu_operation *operation) {
    if (operation == NULL) return;
    for (unsigned i = 0; i < operation->use_count; i++) cpu_block_unuse(operation->uses[i].block);
    if (operation->kind == CPU_OPERATION_RECORD) cpu_event_unref(operation->event);
    if (operation->kind == CPU_OPERATION_LAUNCH) cpu_launch_destroy(operation->launch);
    free(operation);
}
