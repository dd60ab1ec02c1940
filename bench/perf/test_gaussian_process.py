"""An estimate of Gaussian-process classification, and the BLAS and LAPACK calls it makes.

`pytest bench/perf/test_gaussian_process.py -q` prints microseconds and their ratio, one thread, for
the data set glass where FASTKAM_DATA names its folder, and else for random inputs of its shape. The
calls are made through scipy, on matrices as they occur; what copying their inputs takes is
subtracted.
"""

import os

import numpy as np
import pytest
from scipy.linalg import blas, lapack
from scipy.special import expit
from threadpoolctl import threadpool_limits

from bench.perf.test_overhead import medians
from fastkam.targets import GaussianProcessClassification, glass_classification

N = 100


def problem():
    if os.environ.get("FASTKAM_DATA"):
        return glass_classification(n_importance=N)
    rng = np.random.default_rng(1)
    X = rng.standard_normal((214, 9))
    return GaussianProcessClassification(X, rng.random(214) < expit(1 + X[:, 0]), n_importance=N)


def newton(K, y):
    """The matrices B of Newton's method, until a step is below 1e-10 in the Hessian's metric."""
    f, a = np.zeros((2, len(y)))
    B = []
    while True:
        g, s = y * expit(-y * f), np.sqrt(expit(f) * expit(-f))
        B.append(np.asfortranarray(np.eye(len(y)) + s[:, None] * K * s))
        step = g - a - s * np.linalg.solve(B[-1], s * (K @ (g - a)))
        if (g - a) @ K @ step <= 1e-20:
            return B, s
        f, a = f + K @ step, a + step


@pytest.mark.parametrize("scale", [-1.0, 0.0, 1.0, 3.0])
def test_estimate(scale, report):
    t = problem()
    n = len(t.labels)
    theta, u = np.full(t.dim, scale), np.random.default_rng(2).standard_normal((N, n))
    K = np.exp(-0.5 * np.exp(-scale) * ((t.X[:, None] - t.X) ** 2).sum(axis=2))
    Bs, s = newton(K, t.labels)
    K, one, b, U = np.asfortranarray(K), np.eye(n), np.ones(n), np.asfortranarray(u.T)
    L = lapack.dpotrf(Bs[-1], lower=1)[0]
    S, prior = [np.asfortranarray(A + 1e-3 * one)
                for A in ((one - np.linalg.inv(Bs[-1])) / np.outer(s, s), K)]
    C, M = [lapack.dpotrf(A, lower=1)[0] for A in (S, prior)]

    def calls():
        for B in Bs:
            lapack.dpotrf(B, lower=1, clean=0)
            blas.dsymv(1.0, K, b, lower=1)
            lapack.dpotrs(L, b, lower=1)
            blas.dsymv(1.0, K, b, lower=1)
        lapack.dpotri(L, lower=1)
        lapack.dpotrf(S, lower=1, clean=0)
        lapack.dpotrf(prior, lower=1, clean=0)
        blas.dtrmm(1.0, C, U, lower=1)
        blas.dtrsm(1.0, M, U, lower=1)

    def copies():
        for A in (*Bs, L, S, prior, U, U):
            A.copy(order="F")

    with threadpool_limits(1, user_api="blas"):
        ours, approximation, bare, copied = 1e6 * medians(
            lambda: t.estimate(theta, u), lambda: t.laplace(theta), calls, copies)
    report(f"{n} points, {N} draws, log l^2 = {scale:+.0f}: estimate {ours:.0f} us, its {len(Bs)} "
           f"steps of Newton and {5 + 4 * len(Bs)} calls {bare - copied:.0f}: ratio "
           f"{ours / (bare - copied):.2f}; Laplace {approximation:.0f}")
