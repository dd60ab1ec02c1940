"""Densities that can only be estimated, and their targets."""

from __future__ import annotations

import inspect
from typing import Any

from fastkam._core.density.estimator import ForeignEstimator, PythonEstimator
from fastkam._core.density.foreign import CapsuleTarget, CFunctionTarget
from fastkam._core.density.target import Target
from fastkam.arguments import check_flag, check_integer, check_number, shown
from fastkam.density.pointers import is_numba_dispatcher, is_pointer
from fastkam.density.recipe import TargetRecipe
from fastkam.problem.call import UserFunction, noise_of


class Estimator:
    """An estimated density; `Target.from_estimator` describes the arguments.

    It is accepted wherever a Python function is: by `fastkam.sample`, and as the likelihood of a
    `fastkam.Problem`. These supply the dimension of its point.
    """

    def __init__(
        self,
        f: Any,
        n_aux: Any = None,
        *,
        vectorized: Any = False,
        correlation: Any = 0.0,
        blocks: Any = 1,
        user_data: Any = None,
        thread_safe: Any = True,
    ) -> None:
        self.f, self.user_data, self.thread_safe = f, user_data, thread_safe
        self.vectorized = check_flag("vectorized", vectorized)
        self.correlation = check_number("correlation", correlation, least=0, below=1)
        self.blocks = check_integer("blocks", blocks, least=1)
        self.n_aux = None if n_aux is None else check_integer("n_aux", n_aux, least=1)
        if self.correlation > 0 and self.blocks > 1:
            raise ValueError(f"correlation and blocks exclude each other, not {shown(correlation)} "
                             f"and {shown(blocks)}")
        if isinstance(f, TargetRecipe):
            raise TypeError("f must be an estimator, and a recipe make the whole target, not "
                            f"{shown(f)}")
        if self.is_foreign or self.is_compiled:
            self.check_compiled()
        else:
            self.check_python()

    @property
    def is_foreign(self) -> bool:
        """Whether f is an object with a target."""
        return hasattr(self.f, "__fk_target__")

    @property
    def is_compiled(self) -> bool:
        """Whether f is a compiled function."""
        return is_pointer(self.f) or (is_numba_dispatcher(self.f) and not self.vectorized)

    def check_compiled(self) -> None:
        """Refuse arguments that do not suit a compiled function or an object with one."""
        if self.vectorized:
            raise TypeError(f"vectorized=True is for Python functions, not for {shown(self.f)}")
        if self.n_aux is None and not self.is_foreign:
            raise ValueError(f"n_aux must be given for a compiled estimator: {shown(self.f)}")

    def check_python(self) -> None:
        """Refuse arguments that do not suit a Python function."""
        if not callable(self.f):
            raise TypeError(f"f must be a function or a pointer, not {shown(self.f)}")
        if self.user_data is not None:
            raise TypeError(f"user_data is for pointers, not for {shown(self.f)}")
        if self.n_aux is not None:
            self.check_blocks(self.n_aux)
        elif self.correlation > 0 or self.blocks > 1:
            raise ValueError(f"correlation={self.correlation}, blocks={self.blocks} need n_aux: "
                             "what f(x, rng) draws cannot be drawn in part")
        elif self.vectorized:
            raise ValueError("n_aux must be given with vectorized=True, not None: the noise of "
                             "each row comes from its chain's own generator")

    def check_blocks(self, n_aux: int) -> None:
        if self.blocks > n_aux:
            raise ValueError(f"blocks must be at most n_aux = {n_aux}, not {self.blocks}")

    def calling(self, f: UserFunction) -> Estimator:
        """The same with a function that calls f with further arguments or parameters by name."""
        return Estimator(f, self.n_aux, vectorized=self.vectorized, correlation=self.correlation,
                         blocks=self.blocks)

    def target(self, dim: int) -> Target:
        """The target of points of that dimension."""
        made: Target
        if self.is_foreign:
            made = self.f if isinstance(self.f, Target) else CapsuleTarget(self.f)
            self.check_foreign(made, dim)
        elif is_pointer(self.f):
            made = CFunctionTarget(self.f, dim, self.user_data, self.thread_safe, self.n_aux or 0)
        elif self.is_compiled:
            from fastkam.density.numba import NumbaEstimator

            made = NumbaEstimator(self.f, dim, self.n_aux)
        else:
            return PythonEstimator(self.of_two_arguments(), dim, self.n_aux,
                                   vectorized=self.vectorized, correlation=self.correlation,
                                   blocks=self.blocks)
        self.check_blocks(made.n_aux)
        return ForeignEstimator(made, correlation=self.correlation, blocks=self.blocks)

    def check_foreign(self, made: Target, dim: int) -> None:
        """Refuse a foreign target that has no estimates, or other sizes."""
        if "noisy" not in made.abilities:
            raise ValueError(f"f must have the ability noisy, and {shown(self.f)} has only "
                             f"{made.abilities}")
        if made.dim != dim:
            raise ValueError(f"dim is {dim}, but {shown(self.f)} has dimension {made.dim}")
        if self.n_aux is not None and self.n_aux != made.n_aux:
            raise ValueError(f"n_aux is {self.n_aux}, but {shown(self.f)} takes {made.n_aux} "
                             "numbers")

    def of_two_arguments(self) -> Any:
        """The Python function as one of a point and its noise, whichever argument takes the noise.

        TypeError if its signature shows that there is none.
        """
        try:
            signature = inspect.signature(self.f, follow_wrapped=False)
        except (TypeError, ValueError):  # built-in functions may have none
            return self.f
        noise, _ = noise_of(self.f, None, {})
        function = self.f
        if noise is not None and list(signature.parameters)[1:2] != [noise]:
            function = UserFunction(self.f, noise=noise)
            signature = signature.replace(parameters=[
                one for name, one in signature.parameters.items() if name != noise])
        try:
            signature.bind(*(None, None)[: 1 + (function is self.f)])
        except TypeError:
            takes = ("f(X, U), points (k, d) and their noise (k, n_aux)" if self.vectorized else
                     "f(x, rng), a point (d,) and a generator" if self.n_aux is None else
                     "f(x, u), a point (d,) and its noise (n_aux,)")
            name = getattr(self.f, "__name__", repr(self.f))
            raise TypeError(
                f"f must be a function {takes}, not {name}{inspect.signature(self.f)}; without dim "
                "it may take parameters by name, where prior= is given or x0 is a dict, and data "
                "from args= or kwargs=") from None
        return function

    def __repr__(self) -> str:
        return f"<estimator {getattr(self.f, '__name__', shown(self.f))}>"
