"""Compares how fast the worker is with what was recorded, by ratios alone: worker to baseline, of the same run on the CPU
driver. Fails where one is less than half of what was recorded. A busy machine makes single rounds slow on either side, so
the best of several rounds counts, and what is too slow gets more rounds.
usage: guard.py BINARY RECORDED.json            compares
       guard.py BINARY RECORDED.json --record   writes the medians of three runs"""

import json
import pathlib
import statistics
import subprocess
import sys

BENCHES = {"engine": "ratio_percent", "state": "ratio_percent", "arrays": "times_single"}
OPTIONS = ["--driver", "cpu", "--rounds", "3", "--ms", "30", "--instances", "256", "--json"]
SLOWER = 2
TRIES = 6
RUNS = 3


def measure(binary, which):
    """The least, the median and the most of the ratio, by work."""
    done = subprocess.run([binary, "bench", which, *OPTIONS], capture_output=True, text=True, timeout=600)
    if (done.returncode, done.stderr) != (0, ""):
        sys.exit(f"guard: bench {which} failed: {done.stderr}")
    rows = map(json.loads, done.stdout.splitlines())
    return {row["work"]: row[BENCHES[which]] for row in rows if BENCHES[which] in row}


def record(binary, path):
    recorded = {}
    for which in BENCHES:
        runs = [measure(binary, which) for _ in range(RUNS)]
        recorded[which] = {work: statistics.median(run[work]["median"] for run in runs) for work in runs[0]}
    path.write_text(json.dumps(recorded, indent=2) + "\n")


def compare(binary, recorded):
    """What is still too slow after all tries, a line each."""
    slow = []
    for which, ratios in recorded.items():
        best = dict.fromkeys(ratios, 0.0)
        for _ in range(TRIES):
            for work, ratio in measure(binary, which).items():
                if work not in ratios:
                    sys.exit(f"guard: nothing is recorded of {which}, {work}; record it")
                best[work] = max(best[work], ratio["most"])
            if all(best[work] * SLOWER >= ratios[work] for work in ratios):
                break
        for work, ratio in ratios.items():
            print(f"{which}, {work}: {best[work]:g}, recorded {ratio:g}")
            if best[work] * SLOWER < ratio:
                slow.append(f"{which}, {work}: {BENCHES[which]} is {best[work]:g}, less than half of the recorded {ratio:g}")
    return slow


def main():
    binary, path, *rest = sys.argv[1:]
    if rest == ["--record"]:
        record(binary, pathlib.Path(path))
        return
    slow = compare(binary, json.loads(pathlib.Path(path).read_text()))
    if slow:
        sys.exit("guard: slower than recorded:\n" + "\n".join(slow))


if __name__ == "__main__":
    main()
