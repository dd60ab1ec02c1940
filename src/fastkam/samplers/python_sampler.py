"""PythonSampler: the base class of samplers written in Python and NumPy."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, fields
from types import new_class
from typing import TYPE_CHECKING, Any, ClassVar, dataclass_transform

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastkam._core.engine.fields import Field
from fastkam._core.samplers.python_kernel import PythonKernel
from fastkam._core.samplers.python_points import Decision, Point, Proposal
from fastkam._core.samplers.python_steps import StepKernel
from fastkam.arguments import check_integer, shown
from fastkam.samplers.sampler import Sampler

if TYPE_CHECKING:
    from fastkam._core.engine.kernel import Kernel

MOST_WIDTH = 10**6  # points that a step evaluates at once
CHAIN_CLASS = "_chain_class"
METHODS = ("propose", "log_q", "step", "adapt", "freeze", "take")
# attributes that the engine sets
OWN = {"d", "t", "adapting", "end_of_adaptation", "keep", "E", "logp_x", "logp_y", "grad_x",
       "grad_y"}


@dataclass_transform(frozen_default=True, kw_only_default=True)
@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PythonSampler(Sampler):
    """Base class of samplers written in Python: define `propose` or `step`, and `adapt`.

    A subclass becomes a frozen dataclass of its annotated attributes, the parameters, without a
    decorator. Its methods are called on a copy that belongs to one chain, and has the parameters
    and the fields as attributes. FIELDS declares all state that is kept from one step to the next:
    checkpoints, shared adaptation, ``result.adaptation`` and statistics are made from it.

        class AdaptiveScaling(fk.PythonSampler):
            target_acceptance: float = 0.234
            FIELDS = {"log_s": Field("log of the scale", shared=True, learned=True, stat="log_s")}

            def start(self, x0):
                self.log_s = 0.0

            def propose(self, x, rng):
                return x + np.exp(self.log_s) * rng.standard_normal(self.d)

            def adapt(self, x, y, alpha, accepted, gain, rng):
                self.log_s += gain * (alpha - self.target_acceptance)

    Attributes
    ----------
    FIELDS : dict of str to Field
        Class attribute, the table of the state. `Field` takes the meaning, and whether the field is
        `shared` by chains that adapt together, is recorded through warm-up (`learned`), or is a
        number recorded with each draw under the name `stat`. Numbers are floats, or integers with
        ``dtype="i8"``; arrays keep the shape that `start` gives them. With a range, such as
        ``least=0, most="n"`` with n another field, a file with a value outside it is refused.
    GRADIENT : bool
        Class attribute: whether the gradient of the log density is needed.
    WIDTH : int
        Class attribute: number of points, of a list that `step` yields, that are evaluated at once.
    d : int
        Dimension of the point.
    t : int
        Number of steps made.
    adapting : bool
        Whether this step ends with `adapt`.
    end_of_adaptation : float
        The `t` at which adaptation ends; inf for never.
    logp_x, logp_y : float
        Log density at x and at y.
    grad_x, grad_y : ndarray, shape (d,)
        Gradient at x and at y, if the class has GRADIENT.
    E : float
        ``-log U`` of the decision: y is accepted if E exceeds -log of the ratio. A `step` of
        several decisions may set it to a new standard exponential variate.
    keep : bool
        Whether the state after this step is a draw; True unless the step sets it.
    """

    FIELDS: ClassVar[dict[str, Field]] = {}
    GRADIENT: ClassVar[bool] = False
    WIDTH: ClassVar[int] = 1

    def __init_subclass__(cls, *, living: bool = False, **options: Any) -> None:
        if not living:  # the class of a chain's copy is no class of parameters
            super().__init_subclass__(**options)
            dataclass(frozen=True, kw_only=True, eq=False)(cls)

    # ---- methods that a subclass defines ----

    def start(self, x0: NDArray[np.float64]) -> None:
        """Set every field, for a chain that starts at `x0` (d,)."""

    def propose(self, x: NDArray[np.float64], rng: np.random.Generator) -> ArrayLike:
        """Return the proposal (d,); all random numbers are drawn from `rng`."""
        raise NotImplementedError

    def log_q(self, x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
        """Return log q(x|y) - log q(y|x), q the proposal's density; 0 if it is symmetric.

        It is called only if the density at y is not 0. With -inf the proposal is rejected; NaN and
        +inf end the run with an error.
        """
        return 0.0

    def step(
        self, x: NDArray[np.float64], rng: np.random.Generator
    ) -> Generator[ArrayLike, Any, Proposal | Decision]:
        """Make a step of several evaluations; it replaces `propose` and `log_q`.

        This is a generator: it yields a point (d,), or a list of points, and receives a `Point` for
        each, with ``.x``, ``.logp`` and ``.grad``. It returns a `Proposal`, which the engine
        accepts or rejects, or a `Decision`. The engine may run it again with the same random
        numbers and points: it must not change anything except attributes.
        """
        raise NotImplementedError

    def adapt(
        self,
        x: NDArray[np.float64],
        y: NDArray[np.float64],
        alpha: float,
        accepted: bool,
        gain: float,
        rng: np.random.Generator,
    ) -> None:
        """Adapt after a proposal y from x; called at the steps that the schedule selects."""

    def freeze(self) -> None:
        """Prepare for the end of adaptation, after which every step leaves the target invariant."""

    def take(self, other: Any) -> None:
        """Take over what `other`, a chain that shares its adaptation with this one, has learned.

        The shared fields are copied by the engine; this is for other attributes made from them.
        """

    # ---- methods that the engine calls ----

    @property
    def needs_gradient(self) -> bool:
        return bool(self.GRADIENT)

    @property
    def several_evaluations(self) -> bool:
        return self.method("step") is not None

    @property
    def needs_gil(self) -> bool:
        return True

    @property
    def stat_names(self) -> tuple[str, ...]:
        return tuple(field.stat for field in self.FIELDS.values() if field.stat)

    def check_share(self) -> None:
        if not any(field.shared for field in self.FIELDS.values()):
            raise ValueError(f"share must be False for {type(self).__name__}, not True: no row of "
                             "its FIELDS says shared=True")

    @classmethod
    def kernel_class(cls) -> Any:
        return PythonKernel

    def method(self, name: str) -> Callable[..., Any] | None:
        """The method of that name, where the class defines it."""
        defined = getattr(type(self), name) is not getattr(PythonSampler, name)
        return getattr(self, name) if defined else None

    def build(self, x0: NDArray[np.float64]) -> Kernel:
        name = type(self).__name__
        if self.method("propose") is None and self.method("step") is None:
            raise TypeError(f"{name} must define propose, or step")
        check_fields(self)
        own = object.__new__(chain_class(type(self)))
        own.__dict__.update(self.__dict__)
        kernel = StepKernel if self.several_evaluations else PythonKernel
        return kernel(own, x0, self.FIELDS, gradient=self.needs_gradient, width=self.WIDTH,
                      **{name: own.method(name) for name in METHODS})


def check_fields(sampler: PythonSampler) -> None:
    """Refuse FIELDS that cannot be stored, and a WIDTH that is no number of points."""
    who = f"{type(sampler).__name__}.FIELDS"
    check_integer(f"{type(sampler).__name__}.WIDTH", sampler.WIDTH, least=1, most=MOST_WIDTH)
    parameters = {field.name for field in fields(sampler)}
    for name, field in sampler.FIELDS.items():
        if not isinstance(field, Field):
            raise TypeError(f"{who} must have a fastkam.samplers.Field for {name!r}, not {field!r}")
        if not name.isidentifier():
            raise ValueError(f"{who} must name attributes, not {shown(name)}")
        if name in parameters:
            raise ValueError(f"{who} names {name!r}, which is a parameter: those do not change")
        if name in OWN or hasattr(PythonSampler, name):
            raise ValueError(f"{who} names {name!r}, which is an attribute of every PythonSampler: "
                             "choose another name")
        for bound in (field.above, field.least, field.below, field.most):
            if isinstance(bound, str) and bound != "d" and bound not in sampler.FIELDS:
                raise ValueError(f"{who} bounds {name!r} by {bound!r}, which must be 'd' or the "
                                 "name of another number")


def chain_class(cls: type[PythonSampler]) -> type[PythonSampler]:
    """The class of a sampler's copies that belong to one chain, whose attributes can be set.

    It is stored with the sampler's class, and is not registered as a class of parameters.
    """
    if CHAIN_CLASS not in vars(cls):
        parameters = {field.name for field in fields(cls)}

        def set_attribute(self: Any, name: str, value: Any) -> None:
            if name in parameters:
                raise AttributeError(f"{cls.__name__}.{name} is a parameter: keep what changes "
                                     "from step to step in a field of another name")
            object.__setattr__(self, name, value)

        space = {"__setattr__": set_attribute, "__delattr__": object.__delattr__,
                 "__module__": cls.__module__, "__qualname__": cls.__qualname__,
                 "__doc__": cls.__doc__}
        made = new_class(cls.__name__, (cls,), {"living": True}, lambda body: body.update(space))
        setattr(cls, CHAIN_CLASS, made)
    found: type[PythonSampler] = vars(cls)[CHAIN_CLASS]
    return found


__all__ = ["Decision", "Field", "Point", "Proposal", "PythonSampler"]
