#include "cpu_driver/fiber.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cpu_driver/switch.h"

#if defined(__SANITIZE_ADDRESS__)
#define WITH_ASAN 1
#elif defined(__SANITIZE_THREAD__)
#define WITH_TSAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ASAN 1
#elif __has_feature(thread_sanitizer)
#define WITH_TSAN 1
#endif
#endif

#ifdef WITH_ASAN
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef WITH_TSAN
#include <sanitizer/tsan_interface.h>
#endif

/* sanitizers enlarge stack frames */
#if defined(WITH_ASAN) || defined(WITH_TSAN)
static const size_t STACK_BYTES = 256 * 1024;
#else
static const size_t STACK_BYTES = 64 * 1024;
#endif

/* A stack, and what the sanitizers need to know about it. */
struct side {
    struct cpu_stack stack;
    const void *memory; /* its lowest byte */
    size_t bytes;
    void *fake_stack; /* AddressSanitizer's */
    void *shadow;     /* ThreadSanitizer's */
};

struct cpu_fiber {
    struct side side;
    struct cpu_fiber_pool *pool;
    void (*body)(void *);
    void *argument;
    bool is_parked;
    void *mapping; /* the stack, and a guard page below it */
    struct cpu_fiber *next_idle, *next_made;
};

struct cpu_fiber_pool {
    struct side side; /* of the thread itself */
    struct cpu_fiber *current;
    struct cpu_fiber *idle, *made;
};

/* A fiber begins in a function without arguments, which finds its fiber here. */
static _Thread_local struct cpu_fiber *starting;

static size_t guard_bytes(void) {
    return (size_t)sysconf(_SC_PAGESIZE);
}

static void leave(struct side *from, struct side *to) {
#ifdef WITH_ASAN
    __sanitizer_start_switch_fiber(&from->fake_stack, to->memory, to->bytes);
#endif
#ifdef WITH_TSAN
    from->shadow = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(to->shadow, 0);
#endif
    cpu_stack_switch(&from->stack, &to->stack);
#ifdef WITH_ASAN
    __sanitizer_finish_switch_fiber(from->fake_stack, NULL, NULL);
#endif
}

static void arrive_first(struct cpu_fiber *fiber) {
#ifdef WITH_ASAN
    struct side *thread = &fiber->pool->side;
    __sanitizer_finish_switch_fiber(NULL, &thread->memory, &thread->bytes);
#else
    (void)fiber;
#endif
}

void cpu_fiber_yield(struct cpu_fiber *fiber) {
    leave(&fiber->side, &fiber->pool->side);
}

static void fiber_main(void) {
    struct cpu_fiber *fiber = starting;
    arrive_first(fiber);
    for (;;) {
        fiber->body(fiber->argument);
        fiber->is_parked = false;
        cpu_fiber_yield(fiber);
    }
}

static void fiber_destroy(struct cpu_fiber *fiber) {
#ifdef WITH_TSAN
    __tsan_destroy_fiber(fiber->side.shadow);
#endif
    munmap(fiber->mapping, guard_bytes() + STACK_BYTES);
    free(fiber);
}

static struct cpu_fiber *fiber_create(struct cpu_fiber_pool *pool) {
    struct cpu_fiber *fiber = calloc(1, sizeof *fiber);
    if (fiber == NULL) return NULL;
    fiber->mapping = mmap(NULL, guard_bytes() + STACK_BYTES, PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (fiber->mapping == MAP_FAILED) {
        free(fiber);
        return NULL;
    }
    mprotect(fiber->mapping, guard_bytes(), PROT_NONE);
    char *stack = (char *)fiber->mapping + guard_bytes();
    fiber->side = (struct side){.memory = stack, .bytes = STACK_BYTES};
#ifdef WITH_TSAN
    fiber->side.shadow = __tsan_create_fiber(0);
#endif
    cpu_stack_prepare(&fiber->side.stack, stack, STACK_BYTES, fiber_main);
    fiber->pool = pool;
    fiber->next_made = pool->made;
    pool->made = fiber;
    return fiber;
}

struct cpu_fiber_pool *cpu_fiber_pool_create(void) {
    return calloc(1, sizeof(struct cpu_fiber_pool));
}

void cpu_fiber_pool_destroy(struct cpu_fiber_pool *pool) {
    if (pool == NULL) return;
    while (pool->made != NULL) {
        struct cpu_fiber *fiber = pool->made;
        pool->made = fiber->next_made;
        fiber_destroy(fiber);
    }
    free(pool);
}

struct cpu_fiber *cpu_fiber_take(
    struct cpu_fiber_pool *pool, void (*body)(void *argument), void *argument) {
    struct cpu_fiber *fiber = pool->idle;
    if (fiber != NULL) pool->idle = fiber->next_idle;
    else fiber = fiber_create(pool);
    if (fiber == NULL) return NULL;
    fiber->body = body;
    fiber->argument = argument;
    return fiber;
}

bool cpu_fiber_resume(struct cpu_fiber *fiber) {
    struct cpu_fiber_pool *pool = fiber->pool;
    starting = fiber;
    fiber->is_parked = true; /* unless its body returns */
    pool->current = fiber;
    leave(&pool->side, &fiber->side);
    pool->current = NULL;
    if (fiber->is_parked) return true;
    fiber->next_idle = pool->idle;
    pool->idle = fiber;
    return false;
}

struct cpu_fiber *cpu_fiber_current(const struct cpu_fiber_pool *pool) {
    return pool->current;
}
