/**
 * Device and pinned memory: host memory between guards. A freed block first stays in a quarantine,
 * filled with a pattern, so that writes after the free are found. Registered memory of the caller
 * is a block too, but without guards and quarantine.
 */
#ifndef CPU_DRIVER_BLOCK_H
#define CPU_DRIVER_BLOCK_H

#include "cpu_driver/state.h"

enum cpu_block_kind { CPU_BLOCK_DEVICE, CPU_BLOCK_PINNED, CPU_BLOCK_REGISTERED };

/** What an operation does with a block. What a kernel does with it is unknown. */
enum cpu_access { CPU_READS, CPU_WRITES, CPU_KERNEL, CPU_ACCESS_COUNT };

/** The last use of a kind by a stream; see hazard.h. */
struct cpu_touch {
    uint64_t number; /* of the operation in its stream; 0: none */
    const uint8_t *first, *end;
};

struct cpu_block {
    enum cpu_block_kind kind;
    struct cpu_device *device;
    uint8_t *data; /* aligned to 512, unless registered */
    size_t bytes;
    unsigned users; /* operations that name it and are not finished */
    bool is_freed;
    bool is_reported; /* its damage has been counted */
    struct cpu_touch touched[CPU_ACCESS_COUNT][CPU_STREAMS_MAX];
    struct cpu_block *next; /* in quarantine */
};

/** What an operation uses of a block. */
struct cpu_use {
    struct cpu_block *block;
    enum cpu_access access;
    const uint8_t *first;
    size_t bytes;
};

/** Releases the lock while it fills the memory with a pattern. */
CUresult cpu_block_create(
    enum cpu_block_kind kind, struct cpu_device *device, size_t bytes, void **ret);

/** Makes the caller's memory a block until cpu_block_free(). */
CUresult cpu_block_register(struct cpu_device *device, void *data, size_t bytes);

/** Does not wait: memory that queued work still names is released after that work. */
CUresult cpu_block_free(enum cpu_block_kind kind, struct cpu_device *device, const void *data);

/** The live block that holds the address, or NULL. */
struct cpu_block *cpu_block_find(const void *address);

/** True if kernels can use this host address, because it is in pinned memory. */
bool cpu_block_is_mapped(const void *address);

/** True if the address is in memory that was freed recently. */
bool cpu_block_was_freed(const void *address);

/** True if the whole range is inside the block. */
bool cpu_block_covers(const struct cpu_block *block, const void *address, size_t bytes);

/** Ends one operation's use of the block. */
void cpu_block_unuse(struct cpu_block *block);

/** Checks the guards; broken ones are counted and lose the context. */
void cpu_block_check_guards(struct cpu_block *block);

void cpu_blocks_check(void);

/** Frees every block of the device, the quarantined ones too. No operation may be left. */
void cpu_blocks_clear(const struct cpu_device *device);

#endif
