"""Kernels and their gradients, from their definitions."""

import numpy as np
from scipy.special import gamma, kv


def kernel(k, length, y, z):
    """k(y, z_i), (n,), at the points z (n, d)."""
    name = type(k).__name__
    r = np.sqrt(((z - y) ** 2).sum(axis=1))
    if name == "Linear":
        return z @ y
    if name == "Gaussian":
        return np.exp(-(r**2) / (2 * length**2))
    v = k.order
    u = np.sqrt(2 * v) * r / length
    far = np.where(u > 0, u, 1.0)
    return np.where(u > 0, 2 ** (1 - v) / gamma(v) * far**v * kv(v, far), 1.0)


def gradient(k, length, y, z):
    """grad_y k(y, z_i), (n, d)."""
    name = type(k).__name__
    D = z - y
    r = np.sqrt((D**2).sum(axis=1))
    if name == "Linear":
        return z
    if name == "Gaussian":
        return (np.exp(-(r**2) / (2 * length**2)) / length**2)[:, None] * D
    return matern_slope(k.order, length, r)[:, None] * D


def matern_slope(v, length, r):
    """c_v (2 v / l^2) u^(v-1) K_(v-1)(u), u = sqrt(2 v) r / l; at r = 0 the gradient is 0."""
    u = np.sqrt(2 * v) * r / length
    far = np.where(u > 0, u, 1.0)
    slope = 2 ** (1 - v) / gamma(v) * (2 * v / length**2) * far ** (v - 1) * kv(v - 1, far)
    return np.where(u > 0, slope, 0.0)
