"""Comparison of models by their evidence: Bayes factors and posterior probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fastkam.arguments import check_number, checked_names, near, shown
from fastkam.diagnostics.table import aligned
from fastkam.evidence.estimate import INTEGRAL, LIKELIHOOD, WIDTH, Evidence

Array = NDArray[np.float64]

MOST_UNCERTAIN = 0.05   # of a posterior probability, from its standard error


@dataclass(frozen=True)
class EvidenceComparison:
    """Comparison of models, the best first; prints as a table.

    Attributes
    ----------
    names : tuple of str
    log_evidence, error : ndarray, shape (n,)
        Log evidence of each model, and its standard error.
    log_bayes_factor, log_bayes_factor_error : ndarray, shape (n,)
        The log of the Bayes factor against the first model, 0 at most, and its standard error.
    prior, posterior : ndarray, shape (n,)
        Probabilities of the models, which sum to 1.
    posterior_error : ndarray, shape (n,)
        Standard error of the posterior probability, to first order in those of the evidence.
    notes : tuple of str
        Reasons to doubt the comparison; empty if there are none.
    """

    names: tuple[str, ...]
    log_evidence: Array
    error: Array
    log_bayes_factor: Array
    log_bayes_factor_error: Array
    prior: Array
    posterior: Array
    posterior_error: Array
    notes: tuple[str, ...] = ()

    COLUMNS = ("log_evidence", "error", "log_bayes_factor", "log_bayes_factor_error", "prior",
               "posterior", "posterior_error")

    def to_dict(self) -> dict[str, list[Any]]:
        """Return {"name": list of str} and each column as a list."""
        return {"name": list(self.names)} | {
            name: getattr(self, name).tolist() for name in self.COLUMNS}

    def __str__(self) -> str:
        head = ["", "log evidence", "log Bayes factor", "prior", "posterior"]
        rows = [[name, f"{value:.3f} +- {error:.2g}", f"{factor:.3f} +- {its:.2g}", f"{prior:.3g}",
                 f"{posterior:.3g} +- {of:.1g}"]
                for name, value, error, factor, its, prior, posterior, of in zip(
                    self.names, *(getattr(self, name) for name in self.COLUMNS), strict=True)]
        return "\n".join([aligned([head, *rows]), *(line for note in self.notes for line in wrap(
            note, WIDTH, initial_indent="- ", subsequent_indent="  "))])

    __repr__ = __str__


@checked_names
def compare_evidence(
    models: Mapping[str, Any], *, prior_odds: Mapping[str, float] | None = None
) -> EvidenceComparison:
    """Return log evidence, Bayes factors and posterior probabilities of models of the same data.

    Parameters
    ----------
    models : dict of str to Result, Evidence or pair (float, float)
        `Result.log_evidence` is called for each Result, without arguments. Each density must be a
        likelihood of the same data times a normalized prior. A pair is a log evidence that is known
        otherwise and its standard error: (-12.3, 0.0) for a model without parameters whose log
        likelihood is -12.3.
    prior_odds : dict of str to float, optional
        Prior weights of the models, by the same names, which need not sum to 1: with
        {"a": 2, "b": 1}, "a" is twice as probable. Equal by default.

    Returns
    -------
    EvidenceComparison
        Prints as a table.

    Raises
    ------
    TypeError, ValueError
        For a bad argument, and for a model whose evidence could not be estimated.

    References
    ----------
    Kass, R. E. and Raftery, A. E. (1995). Bayes factors. Journal of the American Statistical
    Association 90, 773-795.
    """
    if not isinstance(models, Mapping) or not models:
        raise TypeError('models must be a dict of results by name, {"a": result_a, "b": result_b}, '
                        f"not {shown(models)}")
    for name, model in models.items():
        if not isinstance(name, str):
            raise TypeError(f"models must have names that are str, not {shown(name)}")
        if not isinstance(model, (Evidence, tuple)) and not hasattr(model, "log_evidence"):
            raise TypeError(f"models[{name!r}] must be a Result, an Evidence or a tuple (log "
                            f"evidence, standard error), not {shown(model)}")
    weights = check_odds(prior_odds, list(models))
    given = {name: known(f"models[{name!r}]", model) for name, model in models.items()
             if isinstance(model, tuple)}
    found = {name: given[name] if name in given else model if isinstance(model, Evidence)
             else model.log_evidence() for name, model in models.items()}
    for name, one in found.items():
        if not np.isfinite([one.value, one.error]).all():
            raise ValueError(f"models[{name!r}] has no evidence: {' '.join(one.notes)}")
    return compared(found, weights / weights.sum())


def known(name: str, pair: tuple[Any, ...]) -> Evidence:
    """Return the evidence of a pair (value, standard error)."""
    if len(pair) != 2:
        raise ValueError(f"{name} must be a tuple (log evidence, standard error), not "
                         f"{shown(pair)}")
    value, error = pair
    return Evidence(check_number(f"the log evidence of {name}", value),
                    check_number(f"the standard error of {name}", error, least=0.0),
                    "given", kind=LIKELIHOOD)


def check_odds(odds: Any, names: list[str]) -> Array:
    """Return the prior weights in the order of the names, (n,)."""
    if odds is None:
        return np.ones(len(names))
    if not isinstance(odds, Mapping):
        raise TypeError(f"prior_odds must be a dict of weights by name, not {shown(odds)}")
    for name in odds:
        if name not in names:
            raise ValueError(f"prior_odds has {shown(name)}, which is not one of the models "
                             f"{names}{near(name, names) if isinstance(name, str) else ''}")
    if missing := [name for name in names if name not in odds]:
        raise ValueError(f"prior_odds must have a weight for each model, and {missing} have none")
    return np.array([check_number(f"prior_odds[{name!r}]", odds[name], above=0) for name in names])


def compared(found: dict[str, Evidence], prior: Array) -> EvidenceComparison:
    """Return the comparison of models, with their prior probabilities in the same order."""
    values = np.array([one.value for one in found.values()])
    errors = np.array([one.error for one in found.values()])
    order = np.argsort(-values, kind="stable")
    names, values, errors = [list(found)[i] for i in order], values[order], errors[order]
    prior = prior[order]
    logs = np.log(prior) + values
    posterior = np.exp(logs - logs.max())
    posterior /= posterior.sum()
    # d p_i / d log Z_j = p_i (delta_ij - p_j)
    slopes = posterior[:, None] * (np.eye(len(names)) - posterior)
    notes = [f"{name}: {note}" for name in names for note in found[name].notes]
    uncertain = np.sqrt(slopes**2 @ errors**2)
    if uncertain.max() > MOST_UNCERTAIN:
        notes.append(f"The posterior probabilities are known to +- {uncertain.max():.2g} only, and "
                     "the order of the models may be another: run longer, or ask for more "
                     "evaluations (result.log_evidence(evaluations=...)).")
    bare = [name for name in names if found[name].kind == INTEGRAL]
    if bare:
        notes.append(f"{', '.join(bare)}: not every parameter has a prior (prior=). The integral "
                     "is the evidence only if the density is the likelihood times a normalized "
                     "prior, with all constants.")
    return EvidenceComparison(
        names=tuple(names), log_evidence=values, error=errors,
        log_bayes_factor=values - values[0],
        log_bayes_factor_error=np.r_[0.0, np.hypot(errors[1:], errors[0])],
        prior=prior, posterior=posterior,
        posterior_error=uncertain, notes=tuple(notes))
