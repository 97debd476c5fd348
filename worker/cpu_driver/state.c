#include "cpu_driver/state.h"

struct cpu_state cpu = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .stopping = PTHREAD_COND_INITIALIZER,
};

void cpu_wait_begin(void) {
    cpu.waits++;
}

void cpu_wait_end(void) {
    cpu.waits--;
    if (cpu.is_stopping) pthread_cond_broadcast(&cpu.stopping);
}

void cpu_device_lose(struct cpu_device *device, CUresult result) {
    if (device->lost != CUDA_SUCCESS) return;
    device->lost = result;
    if (cpu.wake_streams != NULL) cpu.wake_streams();
}
