"""What a Problem can be known by without loading what makes one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fastkam.density.target import Target


class Described(ABC):
    """The base class of `Problem`, which loads much of scipy."""

    @abstractmethod
    def target(self, *, gradient: bool = False) -> Target:
        """The density of the unconstrained point."""

    @abstractmethod
    def unconstrain(self, x: Any) -> Any:
        """The unconstrained points of the user's."""
