/**
 * Whether a worker can work as it is configured: its programs are there and whole, and its folders
 * can be used. What it finds keeps `run` from taking jobs, and `check` reports it.
 *
 * Threads: any.
 */
#ifndef EXECUTOR_FITNESS_H
#define EXECUTOR_FITNESS_H

#include "base/problems.h"
#include "program/program.h"
#include "settings/settings.h"

/** Loads the programs of `dir`, or as `settings` say where it is NULL. NULL: a problem says why. */
struct registry *fitness_load_programs(
    const struct settings *settings, const char *dir, struct problems *problems);

/** Adds the folders for blobs and state that cannot be used. Makes nothing. */
void fitness_check_folders(const struct settings *settings, struct problems *problems);

#endif
