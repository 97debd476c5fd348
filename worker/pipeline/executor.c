#include "pipeline/executor.h"

#include "base/clock.h"
#include "base/heap.h"
#include "metrics/reporter.h"
#include "pipeline/intake.h"
#include "pipeline/lifecycle.h"

/* The first thing that went wrong is what the caller hears of. */
static enum err first_failure(
    struct stages *stages, enum err code, const struct error *failure, struct error *err) {
    if (stages_has_failed(stages)) {
        *err = stages->flight.failure;
        return err->code;
    }
    if (code != ERR_OK) *err = *failure;
    return code;
}

enum err executor_run(
    const struct executor_options *options, struct executor_summary *summary, struct error *err) {
    struct stages stages;
    struct error failure, stop_failure;
    heap_keep_freed();
    enum err code = lifecycle_start(&stages, options, &failure);
    uint64_t ready_ns = clock_ns();
    if (code == ERR_OK) code = intake_run(&stages, &failure);
    uint64_t drained_ns = clock_ns();
    /* After a drain that took too long, threads may hang in the driver: leave them to _exit(). */
    if (code == ERR_TIMEOUT) {
        reporter_tell_last(stages.reporter);
        state_end(stages.state); /* what still runs has not finished, and has killed no process */
        *err = failure;
        return code;
    }
    enum err stopped = lifecycle_stop(&stages, &stop_failure);
    if (code == ERR_OK && stopped != ERR_OK) {
        code = stopped;
        failure = stop_failure;
    }
    *summary = stages.flight.summary;
    summary->elapsed_ns = drained_ns - ready_ns;
    code = first_failure(&stages, code, &failure, err);
    if (!err_is_sticky(code)) state_end(stages.state);
    return code;
}
