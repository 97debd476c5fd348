/**
 * The kit for programs: a part in Python (scripts/python/gpu_worker_kit), which is installed beside
 * the worker. Threads: one.
 */
#ifndef CLI_KIT_H
#define CLI_KIT_H

#include <stdbool.h>

/** The words after `gpu-worker programs` that the kit takes. */
#define KIT_WORDS "new|build|test|import"

bool kit_takes(const char *word);

/**
 * Becomes the kit, with argv from 1 on. Returns only if there is no Python: the exit code, after
 * the error was reported.
 */
int kit_run(char **argv);

#endif
