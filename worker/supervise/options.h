/** What the supervisor is told. It outlives the supervisor. */
#ifndef SUPERVISE_OPTIONS_H
#define SUPERVISE_OPTIONS_H

#include "settings/settings.h"
#include "supervise/probe.h"

struct supervise_options {
    const struct settings *settings;
    const char *state_dir;
    const char *config; /* that executors can read, NULL: none; `reload` may change the text */
    /** At SIGHUP: reads again what executors are started with. They do so themselves then. */
    enum err (*reload)(void *context, struct error *err);
    void *context;
    const char *const *arguments; /* further arguments for each executor; NULL ends them */
    const struct probed_device *devices;
    size_t device_count;
    bool is_finite;           /* a run of files: an executor that ends itself ends the run */
    const char *final_reason; /* why a death ends everything; NULL: executors are started again */
};

#endif
