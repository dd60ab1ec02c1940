"""Samplers, schedules and kernels of a user's own."""

from dataclasses import dataclass

import fastkam as fk


class InPoints(fk.KernelAdaptiveMetropolis):
    """KAM with n x n matrices for any number of points."""

    def few_points(self, d):
        return True


class RandomWalk(fk.RandomWalk):
    """Twice as bold as the built-in of this name."""

    def build(self, x0):
        if self.proposal_cov is None:
            return super().build(2 * x0)
        return fk.RandomWalk(proposal_cov=4.0).build(x0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Halving(fk.RobustAdaptiveMetropolis):
    """RAM with a further parameter, which is a parameter object."""

    gain: fk.schedules.Power

    def default_gain(self, d):
        return self.gain


class Decay(fk.schedules.Power):
    """A gain of another class."""


class Smooth(fk.kernels.Gaussian):
    """A kernel of another class."""

    @property
    def first_length(self):
        return 3.0


class Late(fk.schedules.Finite):
    """A schedule of another class."""

    def stop(self, tune):
        return tune // 2


def made_in_a_function(cov=4.0):
    """A class that no other process can find."""

    class Local(fk.RandomWalk):
        def build(self, x0):
            return fk.RandomWalk(proposal_cov=cov).build(x0)

    return Local


SAMPLERS = {
    "another name": InPoints(subsample=9, renewal=0.3),
    "a built-in's name": RandomWalk(proposal_cov=1.0),
    "a parameter of its own": Halving(gain=Decay(c=0.3)),
    "a kernel within": fk.KernelAdaptiveMetropolis(kernel=Smooth(2.0), subsample=9),
    "a subclass within": fk.ParallelTempering(n_replicas=3, sampler=InPoints(subsample=9)),
}
for _base in fk.samplers.SAMPLERS.values():     # MyRandomWalk, MyHMC, ...
    globals()[f"My{_base.__name__}"] = type(f"My{_base.__name__}", (_base,), {
        "__module__": __name__, "__qualname__": f"My{_base.__name__}"})
