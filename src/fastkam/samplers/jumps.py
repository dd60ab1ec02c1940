"""Moves between separated modes, mixed into the steps of any sampler."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fastkam._core.linalg.decomposition import product
from fastkam.arguments import (
    check_array,
    check_covariances,
    check_flag,
    check_integer,
    check_number,
    real_array,
    shown,
)
from fastkam.samplers import modes
from fastkam.samplers.exchange import Coupled
from fastkam.samplers.sampler import (
    Composite,
    Sampler,
    check_part,
    covariance_in_units,
    full_factor,
    given,
)

if TYPE_CHECKING:
    from fastkam._core.engine.kernel import Kernel

MOVES = ("jump", "independent", "hop")
LEAST_PERIODS, MOST_PERIODS = 1, 100  # in a standard deviation of the density of the periods


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ModeJumping(Composite, name="jumps"):
    """A mixture of the steps of any sampler and of moves that may end in another mode.

    There are three kinds of moves. A "jump" is a random walk with long steps; "independent" draws
    from a mixture of Gaussians q, independently of the state; a "hop" maps the state's position in
    one component of q to the same position in another. q is given, or fitted to the states of
    warm-up, or both.

    Parameters
    ----------
    sampler : str or Sampler
        The sampler of all other steps. Parallel tempering, with few replicas and a wide reference,
        finds modes and tails that other samplers miss.
    moves : str or sequence of str
        One or more of "jump", "independent" and "hop".
    jump_probability : float, optional
        The probability that a step is one of these moves, each kind with the same probability. By
        default 0.2 at first; warm-up then learns it for each kind from its acceptance rate.
    jump_cov : float, array (d,) or array (d, d), optional
        Covariance of a jump, whose scale should be the distance between modes; 100 times the
        squared scales by default.
    means : array (K, d), optional
        Known or suspected positions of modes: the means of q's components. For a `Problem` they are
        unconstrained points, see `Problem.unconstrain`; so are the covariances.
    covs : float, array (K,), (K, d) or (K, d, d), optional
        Covariances of the components; by default the squared scales until q is fitted. The fit
        estimates them from the states, and uses the pooled covariance for components without
        states.
    weights : array (K,), optional
        Weights of the components, until q is fitted; equal by default.
    fit : bool
        Fit q to the states of warm-up. Modes in `means` that were not visited are kept.
    max_components : int
        Largest number of components of the fit, unless `means` determines it; AIC3 chooses the
        number. The components follow the shape of the density: several may share a mode.
    n_states : int
        Number of states of warm-up, evenly spaced, to which q is fitted.
    periods : array (m, 6), optional
        The coordinates that repeat, as those of a `Problem` with the transforms "periodic" and
        "reflect" do: for each its index, the start and the width of a window that has one image of
        each point, the period (twice the width if it is reflected), and the mean and the standard
        deviation, of at least a period, of the normal density by which the periodic density is
        multiplied. The components are in the window. See `Coordinates.periods`.

    Notes
    -----
    Hops are those of Tjelmeland and Hegstad (2001).

    References
    ----------
    Tjelmeland, H. and Hegstad, B. K. (2001). Mode jumping proposals in MCMC. Scandinavian Journal
    of Statistics 28, 205-223.

    Giordani, P. and Kohn, R. (2010). Adaptive independent Metropolis-Hastings by fast estimation of
    mixtures of normals. Journal of Computational and Graphical Statistics 19, 243-259.
    """

    sampler: Sampler | str = "ram"
    moves: str | Sequence[str] = MOVES
    jump_probability: float | None = None
    jump_cov: ArrayLike | None = None
    means: ArrayLike | None = None
    covs: ArrayLike | None = None
    weights: ArrayLike | None = None
    fit: bool = True
    max_components: int = 32
    n_states: int = 4000
    periods: ArrayLike | None = None
    KERNEL: ClassVar[str] = "jumps.ModeJumping"
    LENGTHS = ()
    POSITIONS = ("means",)

    def __post_init__(self) -> None:
        self.parts()
        kinds = self.kinds()
        if (not kinds or not all(isinstance(kind, str) for kind in kinds)
                or len(set(kinds)) < len(kinds) or not set(kinds) <= set(MOVES)):
            raise ValueError(f"moves must be some of {MOVES}, each once, not {shown(self.moves)}")
        if self.jump_probability is not None:
            check_number("jump_probability", self.jump_probability, above=0, below=1)
        check_flag("fit", self.fit)
        check_integer("max_components", self.max_components, least=1)
        check_integer("n_states", self.n_states, least=20)
        if self.means is None:
            for name in ("covs", "weights"):
                if getattr(self, name) is not None:
                    raise ValueError(f"{name} must come with means, not "
                                     f"{shown(getattr(self, name))}")
            if not self.fit and kinds != ("jump",):
                raise ValueError("fit must be True where no means are given, not "
                                 f"{shown(self.fit)}")

    def kinds(self) -> tuple[str, ...]:
        """The moves, as a tuple."""
        if isinstance(self.moves, str):
            return (self.moves,)
        return tuple(self.moves) if isinstance(self.moves, (list, tuple)) else ()

    @property
    def several_evaluations(self) -> bool:
        """Whether the sampler within makes several evaluations per step: a move makes one."""
        return self.parts()[0].several_evaluations

    def parts(self) -> list[Sampler]:
        return [check_part("sampler", self.sampler, allowed=Coupled)]

    @property
    def stat_names(self) -> tuple[str, ...]:
        return ("move", *self.parts()[0].stat_names)

    def given(self, d: int) -> modes.Mixture | None:
        """(weights, means, factors of the covariances) of the given components."""
        if self.means is None:
            return None
        shape = real_array("means", self.means).shape
        if len(shape) != 2 or 0 in shape:
            raise ValueError(f"means must have shape (K, {d}), not {shape}")
        K = shape[0]
        means = check_array("means", self.means, shape=(K, d))
        factors = check_covariances("covs", 1.0 if self.covs is None else self.covs, K, d)
        if factors.ndim == 2:
            factors = factors[:, :, None] * np.eye(d)
        if K == 1 and self.kinds() == ("hop",):
            raise ValueError("means must name two modes or more for hops between them, not "
                             f"{shown(self.means)}")
        weights = check_array(
            "weights", np.ones(K) if self.weights is None else self.weights, shape=(K,)
        )
        if not (weights > 0).all():
            raise ValueError(f"weights must be positive, not {weights.min()}")
        return weights, means, factors

    def repeating(self, d: int) -> NDArray[np.float64]:
        """The rows of `periods`, (m, 6)."""
        if self.periods is None:
            return np.empty((0, 6))
        shape = real_array("periods", self.periods).shape
        if len(shape) != 2 or shape[1] != 6:
            raise ValueError(f"periods must be an array (m, 6), not {shown(self.periods)}")
        rows = check_array("periods", self.periods, shape=shape)
        index, _, width, period, _, sd = rows.T
        if not np.isin(index, np.arange(d)).all() or len(np.unique(index)) < len(rows):
            raise ValueError(f"periods must begin with different indices below {d}, not "
                             f"{shown(index)}")
        known = (period == width) | (period == 2 * width)
        known &= (width > 0) & (sd >= LEAST_PERIODS * period) & (sd <= MOST_PERIODS * period)
        if not known.all():
            raise ValueError("periods must have positive widths, periods of the width or twice "
                             f"that, and standard deviations of {LEAST_PERIODS} to "
                             f"{MOST_PERIODS} periods, not {shown(self.periods)}")
        return rows

    @property
    def is_placed(self) -> bool:
        return super().is_placed or self.jump_cov is not None or self.periods is not None

    def in_units(self, scales: NDArray[np.float64]) -> ModeJumping:
        own = super().in_units(scales)
        if own is self:
            return self
        changed: dict[str, Any] = {}
        if self.jump_cov is not None:
            changed["jump_cov"] = covariance_in_units("jump_cov", self.jump_cov, scales)
        if self.covs is not None:
            covs = real_array("covs", self.covs)
            if covs.ndim < 2:  # a number for each component, or for all
                K = len(real_array("means", self.means))
                covs = np.broadcast_to(covs, (K,))[:, None] * np.ones(len(scales))
            changed["covs"] = np.array([covariance_in_units("covs", one, scales) for one in covs])
        if self.periods is not None:
            rows = self.repeating(len(scales))
            units = scales[rows[:, :1].astype(int)]
            changed["periods"] = np.hstack([rows[:, :1], rows[:, 1:] / units])
        return own.changed_to(**changed)

    def with_wide(self, mixture: modes.Mixture) -> modes.Mixture:
        """The given components with a wide one in front."""
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                return modes.with_wide(*mixture)
        except np.linalg.LinAlgError:
            raise ValueError("means and covs must have finite squares of distances, not "
                             f"{shown(self.means)} and {shown(self.covs)}") from None

    def build(self, x0: NDArray[np.float64]) -> Kernel:
        d, mixture = len(x0), self.given(len(x0))
        means = covs = None
        if mixture is not None:
            _, means, factors = mixture
            covs = None if self.covs is None else product(factors, factors.transpose(0, 2, 1))
        estimate = partial(modes.fit, most=self.max_components, means=means, covs=covs)
        components = len(means) if means is not None else max(
            1, min(self.max_components, int(self.n_states / modes.parameters(d))))
        fits = self.fit and self.kinds() != ("jump",)
        return self.kernel_class()(
            self.parts()[0].build(x0),
            probability=self.jump_probability,
            moves=self.kinds(),
            jump_factor=full_factor("jump_cov", given(self.jump_cov, 100.0), d),
            mixture=None if mixture is None else self.with_wide(mixture),
            components=components + 1,
            states=self.n_states + self.n_states % 2 if fits else 0,
            estimate=estimate,
            periods=np.ascontiguousarray(self.repeating(d)),
        )
