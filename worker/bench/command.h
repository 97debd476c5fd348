/** gpu-worker bench: compares the worker with baselines, in the same process and in turns. */
#ifndef BENCH_COMMAND_H
#define BENCH_COMMAND_H

/** One of the subcommands (cli/cli.h). */
int command_bench(int argc, char **argv);

#endif
