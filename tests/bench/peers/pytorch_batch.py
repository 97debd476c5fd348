"""The main job as a user of PyTorch would run it: all trainings in one batch, ten kernels an epoch, float32.

Prints jobs/s for each N: the median, least and most of the rounds, after a warm-up. Start-up, the upload of the data and
the download of the weights are not counted.
usage: pytorch_batch.py [--jobs N ...] [--rounds R]"""

import argparse
import pathlib
import statistics
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "scripts/python"))

import sweep
import torch

MEAN_DECAY, SQUARE_DECAY, EPSILON = 0.9, 0.999, 1e-8


def train(x, y, rates, penalties, epochs):
    """weights[N, columns] of one training for each rate and penalty; x has a column of ones."""
    rows, columns = x.shape
    weights = torch.zeros(len(rates), columns, device="cuda")
    mean, square = torch.zeros_like(weights), torch.zeros_like(weights)
    penalised = torch.ones(columns, device="cuda")
    penalised[-1] = 0
    rates, penalties = rates[:, None], penalties[:, None]
    for epoch in range(1, epochs + 1):
        gradient = (torch.sigmoid(weights @ x.T) - y) @ x / rows + penalties * weights * penalised
        mean = MEAN_DECAY * mean + (1 - MEAN_DECAY) * gradient
        square = SQUARE_DECAY * square + (1 - SQUARE_DECAY) * gradient * gradient
        unbiased_mean = mean / (1 - MEAN_DECAY**epoch)
        unbiased_square = square / (1 - SQUARE_DECAY**epoch)
        weights = weights - rates * unbiased_mean / (unbiased_square.sqrt() + EPSILON)
    return weights


def seconds_of(count, x, y):
    rates = torch.tensor([1e-3 * 1.02 ** (number % 256) for number in range(count)], device="cuda")
    penalties = torch.tensor([1e-6 * 1.2 ** (number // 256 % 64) for number in range(count)], device="cuda")
    torch.cuda.synchronize()
    started = time.monotonic()
    train(x, y, rates, penalties, sweep.EPOCHS)
    torch.cuda.synchronize()
    return time.monotonic() - started


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, nargs="*", default=[4096, 16384])
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    dataset = sweep.read_dataset(ROOT / "config/examples/breast_cancer.csv")
    x = torch.tensor(dataset.x, device="cuda")
    x = torch.cat([x, torch.ones(len(x), 1, device="cuda")], 1)
    y = torch.tensor(dataset.y, device="cuda")
    for count in options.jobs:
        seconds_of(count, x, y)
        rates = sorted(count / seconds_of(count, x, y) for _ in range(options.rounds))
        print(f"PyTorch {torch.__version__}, {count} trainings in one batch: {statistics.median(rates):,.0f} jobs/s "
              f"({rates[0]:,.0f} .. {rates[-1]:,.0f})", flush=True)


if __name__ == "__main__":
    main()
