/** The supervisor's options. They must outlive the supervisor. */
#ifndef SUPERVISE_OPTIONS_H
#define SUPERVISE_OPTIONS_H

#include "settings/settings.h"
#include "supervise/probe.h"

struct supervise_options {
    const struct settings *settings;
    const char *state_dir;
    const char
        *config; /* a path that executors can read, NULL: none; `reload` may change the text */
    /**
     * Called at SIGHUP: reads again what executors are started with. Running executors then reload
     * by themselves.
     */
    enum err (*reload)(void *context, struct error *err);
    void *context;
    const char *const *arguments; /* more arguments for each executor, ended by NULL */
    const struct probed_device *devices;
    size_t device_count;
    bool is_finite;           /* a run of files: an executor that ends itself ends the run */
    const char *final_reason; /* why a death ends the run; NULL: executors are started again */
};

#endif
