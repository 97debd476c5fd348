#include "cpu_driver/switch.h"

#include <stdint.h>

#ifdef __x86_64__

/*
 * Saves what the System V calling convention makes a callee keep (rounding modes are left out: no
 * kernel changes them), stores the stack pointer in *from and loads *to. The fresh stack of
 * cpu_stack_prepare() looks as if it had left through here.
 */
void cpu_stack_exchange(void **from, void *to);
__asm__(".text\n"
        ".p2align 4\n"
        ".globl cpu_stack_exchange\n"
        ".hidden cpu_stack_exchange\n"
        ".type cpu_stack_exchange, @function\n"
        "cpu_stack_exchange:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size cpu_stack_exchange, .-cpu_stack_exchange\n");

void cpu_stack_prepare(struct cpu_stack *stack, void *memory, size_t bytes, void (*entry)(void)) {
    uintptr_t *top = (uintptr_t *)((char *)memory + bytes);
    /* The return address of `entry`: none. Right above it the stack is aligned to 16 bytes, as a
     * function expects at its entry. */
    *--top = 0;
    *--top = (uintptr_t)entry;
    for (int saved = 0; saved < 6; saved++) *--top = 0;
    stack->top = top;
}

void cpu_stack_switch(struct cpu_stack *from, struct cpu_stack *to) {
    cpu_stack_exchange(&from->top, to->top);
}

#else

void cpu_stack_prepare(struct cpu_stack *stack, void *memory, size_t bytes, void (*entry)(void)) {
    getcontext(&stack->context);
    stack->context.uc_stack.ss_sp = memory;
    stack->context.uc_stack.ss_size = bytes;
    stack->context.uc_link = NULL;
    makecontext(&stack->context, entry, 0);
}

void cpu_stack_switch(struct cpu_stack *from, struct cpu_stack *to) {
    swapcontext(&from->context, &to->context);
}

#endif
