"""The bounded history of a chain, and the median distance of points drawn from it."""

import numpy as np


class History:
    """A history of at most `capacity` states, thinned by two when full."""

    def __init__(self, capacity):
        self.capacity = capacity
        self.clear()

    def clear(self):
        self.rows, self.order, self.stride, self.passed = [], [], 1, 0

    def add(self, x):
        """Whether x has entered."""
        self.passed += 1
        if self.passed < self.stride:
            return False
        self.passed = 0
        if len(self.rows) == self.capacity:
            self.rows = self.rows[1::2]
            self.order = list(range(len(self.rows)))
            self.passed = self.stride
            self.stride *= 2
            return False
        self.order.append(len(self.rows))
        self.rows.append(x)
        return True

    def choose(self, n, rng):
        """n states without replacement: the first n places of a shuffle that goes on and on."""
        order = self.order
        for i in range(n):
            j = i + int((len(order) - i) * rng.random())
            order[i], order[j] = order[j], order[i]
        return np.array([self.rows[i] for i in order[:n]])


def median_length(z, A, least=0.0):
    """Median of |A^-1 (z_i - z_j)| / sqrt 2 over pairs with i - j = a few shifts; None without one.

    Some 500 pairs: 500 // n shifts, at most n // 2, evenly spread over half the circle of indices;
    points not more than `least` apart do not count; of an even number the upper median.
    """
    n = len(z)
    shifts = min(max(1, 500 // n), n // 2)
    steps = [1 + (2 * k + 1) * n // (4 * shifts) for k in range(shifts)]
    D = np.array([z[i] - z[(i + step) % n] for step in steps for i in range(n)])
    r = np.linalg.norm(np.linalg.solve(A, D.reshape(-1, z.shape[1]).T), axis=0)
    r = np.sort(r[r > least])
    return r[len(r) // 2] / np.sqrt(2) if len(r) else None
