/** The exit codes of gpu-worker, for its callers and the supervisor. */
#ifndef BASE_EXIT_H
#define BASE_EXIT_H

/* X(symbol, exit code, when) */
#define CLI_EXIT_LIST(X)                                                                           \
    X(OK, 0, "done")                                                                               \
    X(FAILED, 1, "failed in a way that has no code of its own; the message says how")              \
    X(USAGE, 2, "wrong arguments on the command line")                                             \
    X(CONFIG, 3, "the configuration or a program is wrong; every problem is listed")               \
    X(DEVICE, 4, "no usable driver or device, or none that is healthy any more")                   \
    X(BROKER, 5, "the broker cannot be reached or refuses us")                                     \
    X(DRAIN, 6,                                                                                    \
        "stopped before all jobs were done: drain_timeout_ms was over, or a run of files "         \
        "was interrupted")                                                                         \
    X(JOBS_FAILED, 7, "run --jobs: all jobs are answered, and some of them with an error")

enum cli_exit {
#define X(symbol, code, when) CLI_##symbol = code,
    CLI_EXIT_LIST(X)
#undef X
};

#endif
