"""The posterior of Bayesian logistic regression, and the data sets it is tried on."""

from __future__ import annotations

import numpy as np

from fastkam._core.targets.logistic import LogisticDensity
from fastkam.arguments import check_array, check_flag, check_number, real_array
from fastkam.targets.builtin import BuiltIn, check_labels
from fastkam.targets.datasets import load_dataset


class LogisticRegression(BuiltIn, LogisticDensity):
    """Logistic regression with a Gaussian prior: the posterior of the weights w.

        log pi(w) = sum_i log sigma(t_i x_i'w) - |w|^2/(2 v) - d/2 log(2 pi v),   t_i = +-1

    Likelihood times prior with all constants; the evidence is not known. With gradient and
    Hessian-vector product. The mean and covariance are not known exactly: see `laplace`.

    Parameters
    ----------
    X : array (n, d)
        The design matrix as it is: `standardize` scales one and appends the intercept's column.
    y : array (n,)
        Labels, 0 and 1 or -1 and 1.
    prior_variance : float
        v.

    Raises
    ------
    TypeError, ValueError
        If shapes do not fit, a number is not finite, or a label is not valid.
    """

    def __init__(self, X, y, prior_variance=1.0):
        shape = real_array("X", X, copy=False).shape
        if len(shape) != 2 or 0 in shape:
            raise ValueError(f"X must have shape (n, d), not {shape}")
        self.X = check_array("X", X, shape=shape)
        y, self.labels = check_labels(y, shape[0])
        self.prior_variance = check_number("prior_variance", prior_variance, above=0)
        self.parameters = {"X": self.X, "y": y, "prior_variance": self.prior_variance}
        self.set_up(self.X, self.labels, self.prior_variance)

    def hessian(self, w):
        """The Hessian of log pi at w (d,), (d, d)."""
        p = 1 / (1 + np.exp(-np.clip(self.X @ w, -700, 700)))
        return -(self.X.T * (p * (1 - p))) @ self.X - np.eye(self.dim) / self.prior_variance

    def laplace(self, tolerance=1e-10):
        """The mode by Newton's method, and minus the inverse Hessian there.

        Parameters
        ----------
        tolerance : float
            Bound on the gradient times the step, below which the step is the last one.

        Returns
        -------
        mode : ndarray (d,)
        cov : ndarray (d, d)
            The covariance of the Gaussian approximation: not the posterior's.

        Notes
        -----
        log pi is concave; a step is halved until it ascends. Convergence is quadratic: the gain
        that the last step leaves is of the order of the square of `tolerance`.
        """
        w = np.zeros(self.dim)
        logp, grad = self.logp_grad(w)
        for _ in range(100):
            step = np.linalg.solve(self.hessian(w), -grad)
            if grad @ step < tolerance:
                w = w + step
                break
            while self.logp(w + step) < logp:
                step /= 2
            w = w + step
            logp, grad = self.logp_grad(w)
        cov = np.linalg.inv(-self.hessian(w))
        return w, (cov + cov.T) / 2


def standardize(X, *, intercept=False):
    """X (n, d) with each column centered and divided by its standard deviation (divisor n - 1).

    Parameters
    ----------
    X : array (n, d)
        Features.
    intercept : bool
        Append a column of ones, as the last.

    Returns
    -------
    ndarray (n, d) or (n, d + 1)

    Raises
    ------
    ValueError
        If a column is constant.
    """
    X, intercept = check_array("X", X), check_flag("intercept", intercept)
    if X.ndim != 2 or len(X) < 2 or X.shape[1] < 1:
        raise ValueError(f"X must have shape (n, d) with n > 1, not {X.shape}")
    constant = np.ptp(X, axis=0) == 0
    if constant.any():
        j = int(np.argmax(constant))
        raise ValueError(f"X must have no constant column, but column {j} is always {X[0, j]}")
    X = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    return np.column_stack([X, np.ones(len(X))]) if intercept else X


def logistic_regression(name, prior_variance=1.0):
    """The posterior on a data set of `load_dataset`, standardized, with the intercept last.

    Titsias and Dellaportas (2019) use australian, heart, pima, ripley, german and caravan, with a
    prior variance of 1.

    Parameters
    ----------
    name : str
        A name of `DATASETS`.
    prior_variance : float
        Variance of each weight's Gaussian prior, the intercept's too.

    Returns
    -------
    LogisticRegression

    Raises
    ------
    ValueError, FileNotFoundError
        As `load_dataset`.
    """
    X, y = load_dataset(name)
    target = LogisticRegression(standardize(X, intercept=True), y, prior_variance)
    return target.named(name)
