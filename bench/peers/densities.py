"""The densities, in every form that a package asks for: DENSITIES[name][kind].

python    f(x) -> float                    many      f(X (k, d)) -> (k,)
gradient  f(x) -> (float, (d,))            jax       f(x), of jax.numpy
compiled  a target of fastkam, made by a call
"""

from types import SimpleNamespace

import numpy as np

B, V = 0.1, 100.0                   # the banana's bend, and the variance along it
SCALES = np.arange(1, 101) / 100    # of Neal's Gaussian


def jnp():
    import jax.numpy

    return jax.numpy


# ---- a normal, which costs next to nothing ----


def normal(x):
    return -0.5 * x.dot(x)


def normal_many(X):
    return -0.5 * np.einsum("ij,ij->i", X, X)


def normal_gradient(x):
    return -0.5 * x.dot(x), -x


# ---- the banana: E x = 0, var x_1 = 100, var x_2 = 201, the others' 1 ----


def banana(x):
    a, e = x[0], x[1] - B * (x[0] * x[0] - V)
    rest = x[2:]
    return -0.5 * (a * a / V + e * e + rest.dot(rest))


def banana_many(X):
    a, rest = X[:, 0], X[:, 2:]
    e = X[:, 1] - B * (a * a - V)
    return -0.5 * (a * a / V + e * e + np.einsum("ij,ij->i", rest, rest))


def banana_gradient(x):
    a, e = x[0], x[1] - B * (x[0] * x[0] - V)
    gradient = -x
    gradient[0] = -a / V + 2 * B * a * e
    gradient[1] = -e
    rest = x[2:]
    return -0.5 * (a * a / V + e * e + rest.dot(rest)), gradient


def banana_jax(x):
    e = x[1] - B * (x[0] ** 2 - V)
    return -0.5 * (x[0] ** 2 / V + e**2 + jnp().sum(x[2:] ** 2))


def banana_compiled():
    import fastkam

    return fastkam.targets.banana(b=B, V=V, d=8)


# ---- Neal's Gaussian, scales 0.01 to 1 ----


def neal_gradient(x):
    z = x / SCALES
    return -0.5 * z.dot(z), -z / SCALES


def neal_jax(x):
    return -0.5 * jnp().sum((x / SCALES) ** 2)


def neal_compiled():
    import fastkam

    return fastkam.targets.neal_gaussian()


DENSITIES = {
    "normal": SimpleNamespace(d=2, python=normal, many=normal_many, gradient=normal_gradient),
    "banana": SimpleNamespace(d=8, python=banana, many=banana_many, gradient=banana_gradient,
                              jax=banana_jax, compiled=banana_compiled),
    "neal": SimpleNamespace(d=100, gradient=neal_gradient, jax=neal_jax, compiled=neal_compiled),
}
