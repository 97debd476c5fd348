#!/usr/bin/env python3
"""Logistic regression by full-batch Adam in float64: what the program logreg_adam computes in float32.

logreg_reference.py CSV LEARNING_RATE L2 ITERATIONS  prints loss, accuracy and the weights' norm
"""

import sys

import numpy as np

MEAN_DECAY, SQUARE_DECAY, EPSILON = 0.9, 0.999, 1e-8


def load(path):
    """Standardised features and labels of a CSV: a line that names it, then rows that end in a 0/1 label."""
    table = np.loadtxt(path, delimiter=",", skiprows=1)
    x, y = table[:, :-1], table[:, -1]
    return (x - x.mean(axis=0)) / x.std(axis=0), y


def metrics(x, y, weights, l2):
    """Mean log loss with the penalty, share of rows predicted right, predictions."""
    z = x @ weights[:-1] + weights[-1]
    loss = np.mean(np.logaddexp(0.0, z) - y * z) + l2 / 2 * weights[:-1] @ weights[:-1]
    predictions = (z > 0).astype(np.uint8)
    return loss, np.mean(predictions == y), predictions


def train(x, y, learning_rate, l2, iterations):
    """Trains from zero: weights (the bias last), loss, accuracy, predictions. The bias is not penalised."""
    inputs = np.column_stack([x, np.ones(len(x))])
    penalised = np.append(np.ones(x.shape[1]), 0.0)
    weights, mean, square = np.zeros((3, inputs.shape[1]))
    for step in range(1, iterations + 1):
        residuals = 1.0 / (1.0 + np.exp(-(inputs @ weights))) - y
        gradient = inputs.T @ residuals / len(x) + l2 * penalised * weights
        mean = MEAN_DECAY * mean + (1 - MEAN_DECAY) * gradient
        square = SQUARE_DECAY * square + (1 - SQUARE_DECAY) * gradient**2
        unbiased_mean = mean / (1 - MEAN_DECAY**step)
        unbiased_square = square / (1 - SQUARE_DECAY**step)
        weights = weights - learning_rate * unbiased_mean / (np.sqrt(unbiased_square) + EPSILON)
    return (weights, *metrics(x, y, weights, l2))


def main(arguments):
    if len(arguments) != 4:
        sys.exit(__doc__)
    x, y = load(arguments[0])
    weights, loss, accuracy, _ = train(x, y, float(arguments[1]), float(arguments[2]), int(arguments[3]))
    print(f"loss {loss:.9f} accuracy {accuracy:.6f} weights {np.linalg.norm(weights):.9f}")


if __name__ == "__main__":
    main(sys.argv[1:])
