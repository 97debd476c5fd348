"""CMA-ES, an optimizer that this project did not write, whose population is evaluated by workers: each generation is one
map(), an array job whose instances are the candidates. It fits a logistic regression without any gradient, and does the same on the CPU with
NumPy beside it.

    pip install cma
    python3 config/examples/optimize.py [--driver cuda|cpu] [--generations N]
"""

import argparse
import pathlib

import cma
import gpu_worker as gw
import numpy as np

TABLE = pathlib.Path(__file__).with_name("breast_cancer.csv")
PENALTY = 0.01
POPULATION = 32
SEED = 7


def read_table():
    """30 columns of mean 0 and deviation 1, and labels."""
    table = np.loadtxt(TABLE, delimiter=",", skiprows=1)
    x, y = table[:, :-1], table[:, -1]
    return ((x - x.mean(axis=0)) / x.std(axis=0)).astype(np.float32), y.astype(np.float32)


def losses_on_cpu(x, y, candidates):
    """The loss of each row of weights, in float64; the last weight is the bias."""
    z = x.astype(float) @ candidates[:, :-1].T + candidates[:, -1]
    fit = np.mean(np.logaddexp(0.0, z) - y.astype(float)[:, None] * z, axis=0)
    return fit + PENALTY / 2 * np.sum(candidates[:, :-1] ** 2, axis=1)


def optimize(losses_of, dimensions, generations):
    """The best loss after so many generations."""
    options = {"seed": SEED, "popsize": POPULATION, "verbose": -9, "maxiter": generations}
    strategy = cma.CMAEvolutionStrategy(dimensions * [0.0], 0.3, options)
    for _ in range(generations):
        candidates = np.array(strategy.ask(), np.float32)
        strategy.tell([candidate.astype(float) for candidate in candidates], losses_of(candidates))
    return strategy.result.fbest


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--driver", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--generations", type=int, default=150)
    given = parser.parse_args()
    x, y = read_table()
    apart = []

    with gw.local(driver=given.driver) as client:
        loss_of = client.program("logreg_adam", "logreg_metrics").options(grid=[1])
        table = {"x": client.static(x), "y": client.static(y)}  # travels once

        def losses_on_workers(candidates):
            found = loss_of.map(**table, weights=gw.rows(candidates), metrics=2, l2=PENALTY, rows=len(x), features=x.shape[1])
            losses = found.result(timeout=120)["metrics"][:, 0].astype(float)
            apart.append(np.max(np.abs(losses - losses_on_cpu(x, y, candidates.astype(float)))))
            return losses

        best = optimize(losses_on_workers, x.shape[1] + 1, given.generations)
    same = optimize(lambda candidates: losses_on_cpu(x, y, candidates.astype(float)), x.shape[1] + 1, given.generations)
    print(f"{given.generations} generations of {POPULATION} candidates, each generation one job")
    print(f"loss on workers {best:.4f}, on the CPU with NumPy {same:.4f}")
    print("largest difference of a candidate's loss: " + ("below 1e-5" if max(apart) < 1e-5 else f"{max(apart):.1e}"))


if __name__ == "__main__":
    main()
