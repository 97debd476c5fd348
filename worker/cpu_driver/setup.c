/* The functions of cpu_driver.h besides the table of calls. */
#include "cpu_driver/block.h"
#include "cpu_driver/context.h"
#include "cpu_driver/cpu_driver.h"
#include "cpu_driver/stream.h"

enum err cpu_driver_check_faults(const char *faults, struct error *err) {
    struct cpu_faults parsed;
    return cpu_faults_parse(faults, &parsed, err);
}

enum err cpu_driver_configure(
    int device_count, size_t memory_bytes, const char *faults, struct error *err) {
    if (device_count < 1 || device_count > CPU_DEVICES_MAX)
        return error_set(err, ERR_CONFIG, 0, "ask for 1 to 16 devices",
            "the CPU driver cannot simulate %d devices", device_count);
    struct cpu_faults parsed;
    enum err code = cpu_faults_parse(faults, &parsed, err);
    if (code != ERR_OK) return code;
    pthread_mutex_lock(&cpu.lock);
    cpu.device_count = device_count;
    cpu.memory_bytes = memory_bytes;
    cpu.faults = parsed;
    for (int i = 0; i < CPU_DEVICES_MAX; i++) cpu.devices[i].ordinal = i;
    pthread_mutex_unlock(&cpu.lock);
    return ERR_OK;
}

struct cpu_driver_counters cpu_driver_counters(void) {
    pthread_mutex_lock(&cpu.lock);
    struct cpu_driver_counters counters = cpu.counters;
    pthread_mutex_unlock(&cpu.lock);
    return counters;
}

void cpu_driver_check_memory(void) {
    pthread_mutex_lock(&cpu.lock);
    cpu_blocks_check();
    pthread_mutex_unlock(&cpu.lock);
}

void cpu_driver_reset(void) {
    pthread_mutex_lock(&cpu.lock);
    cpu.is_stopping = true;
    pthread_cond_broadcast(&cpu.stopping);
    cpu_streams_wake();
    while (cpu.waits > 0) pthread_cond_wait(&cpu.stopping, &cpu.lock);
    for (int i = 0; i < CPU_DEVICES_MAX; i++) {
        cpu_context_clear(&cpu.devices[i]);
        cpu.devices[i] = (struct cpu_device){.ordinal = i};
    }
    cpu.counters = (struct cpu_driver_counters){.faults = 0};
    cpu.faults = (struct cpu_faults){.count = 0};
    cpu.device_count = 0;
    cpu.memory_bytes = 0;
    cpu.is_initialised = false;
    cpu.is_stopping = false;
    pthread_mutex_unlock(&cpu.lock);
}
