"""The interface of the laboratory's methods: a method suggests rows and is told their values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from carbo.numerics.types import Ints
from carbo.space.space import Space


class Strategy(Protocol):
    """One run of a method, which minimises. It is told the initial points first; then it is asked and told in turn."""

    def tell(self, row: Ints, value: float) -> None:
        """Take the value at a row (d,): an initial one, or one that `ask` returned. NaN: a failure."""

    def ask(self) -> Ints:
        """Return the next row (d,) to evaluate."""


Start = Callable[[Space, int, int], Strategy]
"""A function from (space, seed, number of evaluations, the initial ones included) to a new run of a method."""


@dataclass(frozen=True)
class Method:
    """A method of the laboratory."""

    name: str
    title: str
    """The name in tables and figures."""
    start: Start
    settings: Mapping[str, Any] = field(default_factory=dict)
    """All settings that distinguish this version of the method from others, as JSON values."""
    packages: tuple[str, ...] = ()
    """Packages of the extra `bench` that it needs."""
    binary_only: bool = False
    valid_only: bool = False
    """Whether invalid rows of a problem are hidden from it, by a constraint of its space."""
    unconstrained_only: bool = False
    learns_failures: bool = False
    """Whether the method is told NaN for a failure. Any other method is told a penalty: the worst value so far."""
    initial: int | None = None
    """Number of the problem's initial points that the method starts from, the first ones; None: all of them."""
    when_noisy: Method | None = None
    """The method for problems with noisy values, which its users know to be noisy; None: the same method."""

    def version_for(self, noisy: bool) -> Method:
        """The method for problems with noisy values, or for problems whose values repeat."""
        return self.when_noisy if noisy and self.when_noisy is not None else self

    def objection(self, space: Space) -> str:
        """The reason why the method cannot take the space; empty where it can."""
        if self.binary_only and (space.sizes != 2).any():
            return "it takes binary variables only"
        if self.unconstrained_only and space.constraint is not None:
            return "it takes no constraint"
        return ""
