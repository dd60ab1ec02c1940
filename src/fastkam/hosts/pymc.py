"""PyMC: `sample`, in place of ``pm.sample``; `fastkam.hosts.pymc_step` has a step method.

Salvatier, J., Wiecki, T. V. and Fonnesbeck, C. (2016). Probabilistic programming in Python using
PyMC3. PeerJ Computer Science 2, e55.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import fastkam as fk
from fastkam.arguments import import_extra

import_extra("pymc", "pip install fastkam[pymc]")

import pymc


def sample(
    draws: int = 1000, *, tune: int | None = None, chains: int = 4, random_seed: Any = None,
    progressbar: bool | None = None, var_names: Sequence[str] | None = None,
    idata_kwargs: dict[str, Any] | None = None, discard_tuned_samples: bool = True,
    model: Any = None, **options: Any,
) -> Any:
    """Draw from a model with fastkam, with the arguments and the result of ``pm.sample``.

    Parameters
    ----------
    draws, tune, chains, random_seed, progressbar, var_names, discard_tuned_samples, model
        As in ``pm.sample``. By default `tune` is what the chosen sampler needs.
    idata_kwargs : dict, optional
        ``{"log_likelihood": True}`` adds the log likelihood of each observation.
    **options
        Further arguments of `fastkam.sample`, such as `sampler`.

    Returns
    -------
    InferenceData, or DataTree if ArviZ is of version 1 or later
        With the groups posterior, sample_stats, observed_data and, if there are any, constant_data;
        its ``attrs`` describe the run.

    Raises
    ------
    TypeError, ValueError
        As `fastkam.sample` and `fastkam.from_pymc`, which refuses discrete free variables: for
        these see `fastkam.hosts.pymc_step.AdaptiveStep`.
    """
    model = pymc.modelcontext(model)
    wanted = dict(idata_kwargs or {})
    likelihood = wanted.pop("log_likelihood", False)
    if wanted:
        raise ValueError(f"idata_kwargs may have 'log_likelihood' alone, not {sorted(wanted)}")
    names = {one.name for one in [*model.free_RVs, *model.deterministics]}
    if unknown := sorted(set(var_names or ()) - names):
        raise ValueError(f"var_names names {unknown}, and the model has {sorted(names)}")
    kept = [one.name for one in model.deterministics if var_names is None or one.name in var_names]
    result = fk.sample(
        fk.from_pymc(model, deterministics=kept, log_likelihood=likelihood), draws=draws, tune=tune,
        chains=chains, seed=random_seed, progress=progressbar,
        keep_warmup=not discard_tuned_samples, **options)
    found, data = result.to_arviz(), pymc.to_inference_data(prior={}, model=model)
    for group in ("observed_data", "constant_data"):
        if group in data.children if hasattr(data, "children") else hasattr(data, group):
            if hasattr(found, "add_groups"):
                found.add_groups({group: data[group]})
            else:
                found[group] = data[group]
    if var_names is not None:
        found.posterior = found.posterior[list(var_names)]
    return found
