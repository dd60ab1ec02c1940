"""Operations of PyMC that PyTensor's numba backend would call Python for, compiled."""

from __future__ import annotations

from contextlib import suppress
from functools import cache

import numpy as np


@cache
def register() -> None:
    """Register the compiled forms with PyTensor, once; operations that PyMC lacks are left out."""
    from pytensor.link.numba.dispatch import basic

    # with a key, PyTensor keeps what is compiled on disk; older versions have none
    of_op = getattr(basic, "register_funcify_default_op_cache_key", basic.numba_funcify.register)
    with suppress(ImportError):
        from pymc.distributions.multivariate import PosDefMatrix

        @of_op(PosDefMatrix)  # of LKJCorr and Wishart
        def compiled(op, node=None, **options):
            test = basic.numba_njit(is_positive_definite)

            @basic.numba_njit
            def positive_definite(x):
                return np.asarray(test(x))

            return positive_definite


def is_positive_definite(x):
    """Whether the upper triangle of x (n, n) is that of a positive definite matrix."""
    n = len(x)
    L = np.zeros((n, n))
    for i in range(n):
        for j in range(i + 1):
            rest = x[j, i]
            for k in range(j):
                rest -= L[i, k] * L[j, k]
            if i > j:
                L[i, j] = rest / L[j, j]
            elif rest > 0:
                L[i, i] = np.sqrt(rest)
            else:  # NaN, too
                return False
    return True
