"""Adaptive MCMC at compiled speed: draws from a density that can be evaluated but not sampled.

    res = fastkam.sample(logp, x0, sampler="ram", draws=5000, tune=5000, chains=4, seed=1)
    print(res.summary())

Every public name is listed once, in ``__init__.pyi``, and imported when it is first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
