#include "cpu_driver/call.h"

#include <time.h>

#include "cpu_driver/context.h"

static CUresult call_admit(const struct call *call, enum needs needs) {
    if (needs == NEEDS_NOTHING) return CUDA_SUCCESS;
    if (!cpu.is_initialised) return CUDA_ERROR_NOT_INITIALIZED;
    if (needs == NEEDS_INIT) return CUDA_SUCCESS;
    return call->device == NULL ? CUDA_ERROR_INVALID_CONTEXT : call->device->lost;
}

static void sleep_unlocked(uint64_t ns) {
    struct timespec time = {
        .tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
    pthread_mutex_unlock(&cpu.lock);
    nanosleep(&time, NULL);
    pthread_mutex_lock(&cpu.lock);
}

/* Applies a fault inside the call. True: the call goes on after it. */
static bool call_suffers(struct call *call, const struct cpu_fault *fault) {
    call->result = fault->result;
    if (fault->effect == CPU_EFFECT_SLOW) sleep_unlocked(fault->delay_ns);
    if (fault->effect == CPU_EFFECT_LOSE && call->device != NULL)
        cpu_device_lose(call->device, fault->result);
    if (fault->effect == CPU_EFFECT_HANG) {
        cpu_wait_begin();
        while (!cpu.is_stopping) pthread_cond_wait(&cpu.stopping, &cpu.lock);
        cpu_wait_end();
        call->result = CUDA_ERROR_DEINITIALIZED;
    }
    return fault->effect == CPU_EFFECT_SLOW;
}

bool call_begin(struct call *call, enum cpu_entry entry, enum needs needs) {
    pthread_mutex_lock(&cpu.lock);
    cpu.counters.calls[entry]++;
    *call = (struct call){.device = cpu_context_current()};
    call->result = call_admit(call, needs);
    if (call->result != CUDA_SUCCESS) return false;
    struct cpu_fault fault = cpu_faults_draw(&cpu.faults, entry);
    if (fault.effect == CPU_EFFECT_NONE) return true;
    cpu.counters.faults++;
    bool is_of_the_call = fault.effect == CPU_EFFECT_ANSWER || fault.effect == CPU_EFFECT_NULL;
    if (is_of_the_call || !cpu_entry_enqueues(entry)) return call_suffers(call, &fault);
    call->fault = fault;
    return true;
}

CUresult call_end(const struct call *call) {
    pthread_mutex_unlock(&cpu.lock);
    return call->result;
}
