/**
 * The state file and the name of an executor, as `run` uses them. It logs what was set aside.
 * Threads: before any other starts.
 */
#ifndef CLI_OWN_STATE_H
#define CLI_OWN_STATE_H

#include "state/folder.h"
#include "state/state.h"

/** As state_open(); waits for a killed predecessor, which may need time to leave the driver. */
MUST_CHECK enum err own_state_open(const char *path, struct state **ret, struct error *err);

/**
 * Makes the file of a device forget all messages (state_forget()), and nothing else. Errors: as
 * state_open().
 */
MUST_CHECK enum err own_state_forget(const char *folder, uint32_t device, struct error *err);

/** What identifies an executor to its group. It is kept next to the state file, so both are lost
 * with the disk. */
struct instance {
    char name[STATE_INSTANCE_SIZE];
    uint64_t owner;
};

MUST_CHECK enum err own_state_identify(
    const char *path, uint32_t device, struct instance *ret, struct error *err);

#endif
