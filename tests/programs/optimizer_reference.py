"""Separable CMA-ES and differential evolution in float64 with NumPy, many searches at once: what the programs of these
names are compared with. Arrays begin with an axis of searches. Where random numbers come from is up to the caller."""

import numpy

OBJECTIVES = ["sphere", "rosenbrock", "rastrigin", "ellipsoid"]  # in the order of their numbers


def objective(name, x):
    """Of each point along the last axis."""
    if name == "sphere":
        return numpy.sum(x**2, axis=-1)
    if name == "rosenbrock":
        return numpy.sum(100 * (x[..., 1:] - x[..., :-1] ** 2) ** 2 + (1 - x[..., :-1]) ** 2, axis=-1)
    if name == "rastrigin":
        return 10 * x.shape[-1] + numpy.sum(x**2 - 10 * numpy.cos(2 * numpy.pi * x), axis=-1)
    return numpy.sum(10 ** numpy.linspace(0, 6, x.shape[-1]) * x**2, axis=-1)


def philox(key, counter, high):
    """Four words of Philox4x32-10, each as a uint64, for arrays of 64-bit keys and counters."""
    key, counter, high = (numpy.asarray(part, "u8") for part in numpy.broadcast_arrays(key, counter, high))
    mask, shift = numpy.uint64(0xFFFFFFFF), numpy.uint64(32)
    words = [counter & mask, counter >> shift, high & mask, high >> shift]
    keys = [key & mask, key >> shift]
    for _ in range(10):
        first, second = words[0] * numpy.uint64(0xD2511F53), words[2] * numpy.uint64(0xCD9E8D57)
        words = [(second >> shift) ^ words[1] ^ keys[0], second & mask,
                 (first >> shift) ^ words[3] ^ keys[1], first & mask]
        keys = [(keys[0] + numpy.uint64(0x9E3779B9)) & mask, (keys[1] + numpy.uint64(0xBB67AE85)) & mask]
    return words


def uniform(word):
    return (word >> numpy.uint64(8)) / 2.0**24


def normal(first, second):
    return numpy.sqrt(-2 * numpy.log(uniform(first) + 2.0**-24)) * numpy.cos(2 * numpy.pi * uniform(second))


class SepCma:
    """As the tutorial's table of parameters has it, with Ros and Hansen's factor for a diagonal covariance."""

    def __init__(self, name, mean, sigma, samples):
        self.name, self.mean, self.samples = name, numpy.array(mean, float), samples
        self.searches, self.n = n = self.mean.shape
        self.sigma = numpy.full(self.searches, float(sigma))
        self.variance = numpy.ones(n)
        self.path_sigma, self.path_c, self.round = numpy.zeros(n), numpy.zeros(n), 0
        n, self.mu = self.n, samples // 2
        weights = numpy.log((samples + 1) / 2) - numpy.log(numpy.arange(1, self.mu + 1))
        self.weights = weights / weights.sum()
        self.mu_eff = mu_eff = 1 / numpy.sum(self.weights**2)
        self.c_sigma = (mu_eff + 2) / (n + mu_eff + 5)
        self.d_sigma = 1 + 2 * max(0, numpy.sqrt((mu_eff - 1) / (n + 1)) - 1) + self.c_sigma
        self.c_c = (4 + mu_eff / n) / (n + 4 + 2 * mu_eff / n)
        self.c_1 = min(1, (n + 2) / 3 * 2 / ((n + 1.3) ** 2 + mu_eff))
        c_mu = 2 * (1 / 4 + mu_eff + 1 / mu_eff - 2) / ((n + 2) ** 2 + 2 * mu_eff / 2)
        self.c_mu = min(1 - self.c_1, (n + 2) / 3 * c_mu)
        self.chi = numpy.sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n**2))

    def step(self, normals):
        """One generation. `normals` has [search, sample, axis]; returns the best value of each search."""
        self.round += 1
        y = numpy.sqrt(self.variance)[:, None] * normals
        values = objective(self.name, self.mean[:, None] + self.sigma[:, None, None] * y)
        order = numpy.argsort(values, axis=1, kind="stable")[:, : self.mu, None]
        z, y = numpy.take_along_axis(normals, order, 1), numpy.take_along_axis(y, order, 1)
        z_w, y_w = (numpy.einsum("i,sik->sk", self.weights, steps) for steps in (z, y))
        self.mean += self.sigma[:, None] * y_w
        gain = numpy.sqrt(self.c_sigma * (2 - self.c_sigma) * self.mu_eff)
        self.path_sigma = (1 - self.c_sigma) * self.path_sigma + gain * z_w
        length = numpy.linalg.norm(self.path_sigma, axis=1)
        unseen = numpy.sqrt(1 - (1 - self.c_sigma) ** (2 * self.round))
        steady = (length / unseen < (1.4 + 2 / (self.n + 1)) * self.chi)[:, None]
        gain = steady * numpy.sqrt(self.c_c * (2 - self.c_c) * self.mu_eff)
        self.path_c = (1 - self.c_c) * self.path_c + gain * y_w
        lost = (1 - steady) * self.c_c * (2 - self.c_c)
        self.variance = ((1 - self.c_1 - self.c_mu) * self.variance + self.c_1 * (self.path_c**2 + lost * self.variance)
                         + self.c_mu * numpy.einsum("i,sik->sk", self.weights, y**2))
        self.sigma *= numpy.exp(self.c_sigma / self.d_sigma * (length / self.chi - 1))
        return values.min(axis=1)


class DifferentialEvolution:
    def __init__(self, name, points, scale, crossover):
        """`points` has [search, member, axis]."""
        self.name, self.points, self.scale, self.crossover = name, numpy.array(points, float), scale, crossover
        self.values = objective(name, self.points)

    def step(self, others, axis, uniforms):
        """One generation. `others` has three members for each, [search, member, 3]; `axis` is the one that the mutant
        gives in any case, [search, member]; `uniforms` has [search, member, axis]. Returns the best value of each."""
        base, plus, minus = (numpy.take_along_axis(self.points, others[..., i, None], 1) for i in range(3))
        taken = uniforms < self.crossover
        numpy.put_along_axis(taken, axis[..., None], True, 2)
        trials = numpy.where(taken, base + self.scale * (plus - minus), self.points)
        values = objective(self.name, trials)
        wins = values <= self.values
        self.points = numpy.where(wins[..., None], trials, self.points)
        self.values = numpy.where(wins, values, self.values)
        return self.values.min(axis=1)


def rounds_to(target, first, step, most):
    """The round in which each search has reached the target: 0 where it has not after `most`. `first` is the best value
    of each after round 1, and step() gives that of the next."""
    reached, best = numpy.where(first <= target, 1, 0), first
    for number in range(2, most + 1):
        if (reached > 0).all():
            break
        best = numpy.minimum(best, step())
        reached = numpy.where((reached == 0) & (best <= target), number, reached)
    return reached
