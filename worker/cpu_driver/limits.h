/** The limits that the CPU driver's devices report: those of current data-centre GPUs. */
#ifndef CPU_DRIVER_LIMITS_H
#define CPU_DRIVER_LIMITS_H

enum {
    CPU_DRIVER_VERSION = 12090,
    CPU_COMPUTE_MAJOR = 9,
    CPU_COMPUTE_MINOR = 0,
    CPU_BLOCK_THREADS_MAX = 1024,
    CPU_BLOCK_X_MAX = 1024,
    CPU_BLOCK_Y_MAX = 1024,
    CPU_BLOCK_Z_MAX = 64,
    CPU_GRID_X_MAX = 0x7fffffff,
    CPU_GRID_Y_MAX = 65535,
    CPU_GRID_Z_MAX = 65535,
    CPU_SHARED_BYTES_DEFAULT = 48 * 1024,
    CPU_SHARED_BYTES_OPTIN = 227 * 1024,
    CPU_SHARED_BYTES_MULTIPROCESSOR = 228 * 1024,
    CPU_SHARED_BYTES_RESERVED = 1024, /* of each block, by the system */
    CPU_MULTIPROCESSORS = 2, /* few, because each thread of a cooperative grid needs a stack */
    CPU_THREADS_MULTIPROCESSOR = 2048,
    CPU_BLOCKS_MULTIPROCESSOR = 32,
    CPU_WARP_SIZE = 32,
    CPU_REGISTERS_BLOCK = 65536,
    CPU_REGISTERS_THREAD = 32,
    CPU_PARAM_BYTES_MAX = 4096
};

#endif
