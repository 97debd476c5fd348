"""Draws what `gpu-worker bench ... --json` printed: for each file, and each unit that its figures have, a picture with a
bar for each figure of each row. A bar is the median; the thin line on it goes from the least to the most.

    gpu-worker bench engine --json > engine.json
    build/deps/plot/bin/python3 tests/bench/plot.py engine.json --out pictures    # scripts/setup plot installs it

usage: plot.py FILE.json... --out FOLDER"""

import argparse
import json
import pathlib
import sys

# How the name of a figure ends; what stands before it says whose figure it is.
UNITS = {
    "jobs_per_s": "jobs/s", "instances_per_s": "instances/s", "operations_per_s": "operations/s", "percent": "%",
    "us": "us", "ns": "ns", "mb_per_s": "MB/s", "cores": "cores", "switches": "switches a job",
    "single": "times single jobs",
}  # fmt: skip
COMMON_FACTS = {"bench", "driver", "processors", "rounds", "work"}
LOGARITHMIC_FROM = 100  # largest median to smallest: small bars could not be told apart otherwise
BAR_INCHES, EMPTY_INCHES, WIDTH_INCHES = 0.22, 1.2, 9
COLOURS = ["#8c96a3", "#2b6cb0", "#c05621", "#2f855a", "#6b46c1", "#b83280"]


def read_rows(path):
    """What one run printed, a row each line."""
    try:
        rows = [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
        names = {(row["bench"], row["work"]) for row in rows}
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.exit(f"plot: {path} is not what `gpu-worker bench --json` prints: {error!r}; record it again")
    if not names:
        sys.exit(f"plot: {path} has no rows; record it again")
    return rows


def figures_of(row):
    """(unit, whose, {"least", "median", "most"}) of each."""
    for name, value in row.items():
        if isinstance(value, dict):
            unit = next((unit for unit in UNITS if name == unit or name.endswith("_" + unit)), None)
            if unit is None:
                sys.exit(f"plot: no unit is known for {name}; add it to UNITS")
            yield unit, name.removesuffix(unit).strip("_").replace("_", " "), value


def label_of(row):
    facts = [f"{name} {value}" for name, value in row.items() if name not in COMMON_FACTS and not isinstance(value, dict)]
    return ", ".join([row["work"], *facts])


def bars_by_unit(rows):
    """{unit: [(row's label, whose, figure)]}, in the order of the rows."""
    bars = {}
    for row in rows:
        for unit, whose, figure in figures_of(row):
            bars.setdefault(unit, []).append((label_of(row), whose, figure))
    return bars


def draw_bars(axes, bars):
    """Bars of one row touch; rows have a gap between them, and a label each."""
    sides = list(dict.fromkeys(whose for _, whose, _ in bars))
    at, places = 0, {}
    for label, whose, spread in bars:
        at += 1 if label in places else 2
        places.setdefault(label, []).append(at)
        reach = [[spread["median"] - spread["least"]], [spread["most"] - spread["median"]]]
        axes.barh(at, spread["median"], xerr=reach, label=whose, color=COLOURS[sides.index(whose) % len(COLOURS)],
                  error_kw={"linewidth": 0.8})
        axes.annotate(f" {spread['median']:,g}", (max(spread["most"], 0), at), va="center", fontsize=8)
    axes.set_yticks([sum(each) / len(each) for each in places.values()], list(places))
    axes.invert_yaxis()
    return sides


def draw(title, unit, bars, path):
    from matplotlib import rcParams
    from matplotlib.figure import Figure

    # Text stays text, and the same figures give the same bytes.
    rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "gpu-worker", "font.size": 9})
    rows = len({label for label, _, _ in bars})
    figure = Figure(figsize=(WIDTH_INCHES, EMPTY_INCHES + BAR_INCHES * (len(bars) + rows)), layout="constrained")
    axes = figure.add_subplot()
    sides = draw_bars(axes, bars)
    medians = [spread["median"] for _, _, spread in bars if spread["median"] > 0]
    if medians and max(medians) >= LOGARITHMIC_FROM * min(medians):
        axes.set_xscale("log")
    axes.margins(x=0.12)
    axes.set_xlabel(UNITS[unit] if len(sides) > 1 else f"{sides[0]}, {UNITS[unit]}".removeprefix(", "))
    axes.set_title(title, loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    if len(sides) > 1:
        by_side = {name: handle for handle, name in zip(*axes.get_legend_handles_labels())}
        figure.legend(by_side.values(), by_side.keys(), loc="outside lower right", ncols=len(sides), frameon=False)
    figure.savefig(path, metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=pathlib.Path, nargs="+", metavar="FILE.json")
    parser.add_argument("--out", type=pathlib.Path, required=True, metavar="FOLDER")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for path in options.files:
        rows = read_rows(path)
        first = rows[0]
        title = f"bench {first['bench']}: driver {first['driver']}, {first['processors']} processors, {first['rounds']} rounds"
        for unit, bars in bars_by_unit(rows).items():
            picture = options.out / f"{path.stem}-{unit}.svg"
            draw(title, unit, bars, picture)
            print(picture)


if __name__ == "__main__":
    main()
