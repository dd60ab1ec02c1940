"""Adaptive MCMC at compiled speed: draws from a density that can be evaluated but not sampled.

    res = fastkam.sample(logp, x0, sampler="ram", draws=5000, tune=5000, chains=4, seed=1)
    print(res.summary())

Every public name is listed once, in ``__init__.pyi``, and imported when it is first used.
"""

import lazy_loader

_find, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name):
    """The public name, imported; an AttributeError that names one that is near."""
    try:
        return _find(name)
    except AttributeError as error:
        from difflib import get_close_matches

        known = {one.lower(): one for one in __all__}
        if name.startswith("plot"):
            known = {one.lower(): f"plots.{one}" for one in _find("plots").__all__}
        near = get_close_matches(name.lower(), known, 1)
        mend = f": did you mean {known[near[0]]!r}?" if near else ""
        if name.lower() in ("prior", "priors", "distributions", "normal", "uniform", "halfnormal"):
            mend = ": priors are distributions of scipy.stats, as prior={'a': stats.norm(0, 1)}"
        if not name.startswith("_") and hasattr(_find("Result"), name):
            mend = f": results have it, result.{name}"
        raise AttributeError(f"{error}{mend}", name=name) from None
