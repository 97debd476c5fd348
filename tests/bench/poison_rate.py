"""What poisonous jobs cost the rate of a device, without a spare and with one, in turns with rounds that have none. Beside
the whole time, the time up to each death is left out: that in which the driver, or the watchdog, tells of the fault and
the process goes. Every job must be answered as it should be.
usage: poison_rate.py BUILD_FOLDER [--driver cpu|cuda] [--count N] [--poison N] [--launches N ...] [--rounds N]"""

import argparse
import bisect
import pathlib
import statistics
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "containment"))
from containment_test import letters_of, run_worker
from poison import Mixture

import gpu_worker as gw


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--driver", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--poison", type=int, default=20)
    parser.add_argument("--launches", type=int, nargs="+", default=[200], help="of each job that is not poisonous")
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


def until_deaths(log, grown):
    """For each death, the seconds from the last result before it to when the supervisor knew of it."""
    deaths = [at for at, line in log if "the executor died" in line]
    lasts = [bisect.bisect(grown, death) for death in deaths]
    return [death - grown[last - 1] for death, last in zip(deaths, lasts) if 0 < last < len(grown)]


def run(arguments, launches, seed, poison, spare):
    """Jobs a second by the whole time, and without the times up to deaths; how many deaths there were."""
    mixture = Mixture(arguments.count, poison, arguments.driver, seed, with_arrays=False)
    with tempfile.TemporaryDirectory(prefix="gpu-worker-poison-rate-") as name:
        folder = pathlib.Path(name)
        _, log, grown = run_worker(folder, arguments, mixture.long_jobs(launches), executors={"spare": spare})
        wrong = mixture.check(
            list(gw.read_results(folder / "results")), letters_of(folder, "gpu-worker-job-id", "dlq.error.code"))
    if any(wrong.values()):
        sys.exit(f"poison_rate: seed {seed}: {wrong}")
    seconds, waits = grown[-1] - grown[0], until_deaths(log, grown)
    return mixture.count / seconds, mixture.count / (seconds - sum(waits)), len(waits)


def print_row(name, rounds, without):
    rates, rests, deaths = zip(*rounds)
    print(f"  {name:<22} {statistics.median(deaths):3.0f} deaths, jobs/s: {spread(rates, without)}; without the times up to "
          f"deaths: {spread(rests, without)}", flush=True)


def spread(rates, without):
    middle = statistics.median(rates)
    return f"{middle:.0f} ({min(rates):.0f} to {max(rates):.0f}), {middle / without * 100:.1f} %"


def main():
    arguments = parse_arguments()
    kinds = {"without poison": (0, False), "with poison": (arguments.poison, False),
             "with poison and spare": (arguments.poison, True)}
    for launches in arguments.launches:
        found = {name: [] for name in kinds}
        for seed in range(arguments.rounds):
            print(f"{arguments.driver} driver, {arguments.count} jobs of {launches + 1} launches, {arguments.poison} poisonous, "
                  f"{seed + 1} rounds in turns, medians:", flush=True)
            for name, (poison, spare) in kinds.items():
                found[name].append(run(arguments, launches, seed, poison, spare))
                print_row(name, found[name], statistics.median(rate for rate, _, _ in found["without poison"]))


if __name__ == "__main__":
    main()
