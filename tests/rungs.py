"""Exact states for couplings of replicas, whose joint distribution tests compare."""

import numpy as np


def at_rungs(state, xs, log_pi, log_ref, grads=None, within=""):
    """Return the state of a replica exchange with its rungs at given points.

    Parameters
    ----------
    state : dict
        Of the kernel, for all else.
    xs : array (rungs, d)
    log_pi, log_ref : array (rungs,)
        log pi and the log density of the reference there.
    grads : array (rungs, d), optional
        The gradient of log pi there, where kernels need it.
    within : str
        What the fields of the exchange begin with: "inner." within mode jumping.
    """
    found = state | {f"{within}begun": np.array(1)}
    for r, x in enumerate(xs):
        known = {"x": x, "log_pi_x": log_pi[r], "log_ref_x": log_ref[r], "accepted": 0}
        if grads is not None:
            known["grad_pi_x"] = grads[r]
        found |= {f"{within}rung{r}.{name}": np.array(value) for name, value in known.items()}
    return found
