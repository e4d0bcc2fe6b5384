"""What a method of the laboratory is: something that names rows and is told their values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from carbo.numerics.types import Ints
from carbo.space.space import Space


class Strategy(Protocol):
    """One run of a method; it minimises. The runner tells it the initial points first, then asks and tells in turn."""

    def tell(self, row: Ints, value: float) -> None:
        """The value at a row (d,), one it asked for or an initial one."""

    def ask(self) -> Ints:
        """The next row (d,) to evaluate."""


Start = Callable[[Space, int, int], Strategy]
"""(space, seed, evaluations of the whole run, the initial ones included) to a fresh run of a method."""


@dataclass(frozen=True)
class Method:
    """A method by its name in the laboratory."""

    name: str
    title: str
    """As tables and figures print it."""
    start: Start
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Everything that sets it apart from another version of the same method, as JSON."""
    packages: tuple[str, ...] = ()
    """Distributions of the extra `bench` that it needs."""
    binary_only: bool = False
    valid_only: bool = False
    """Started with a space whose constraint leaves out the rows that a problem calls invalid."""
    unconstrained_only: bool = False
    initial: int | None = None
    """Number of the problem's initial points that the method starts from, the first ones; None: all of them."""
    when_noisy: Method | None = None
    """The method for problems with noisy values, which its users know to be noisy; None: the same method."""

    def version_for(self, noisy: bool) -> Method:
        """The method for problems with noisy values, or for problems whose values repeat."""
        return self.when_noisy if noisy and self.when_noisy is not None else self

    def objection(self, space: Space) -> str:
        """Why it cannot take the space; empty where it can."""
        if self.binary_only and (space.sizes != 2).any():
            return "it takes binary variables only"
        if self.unconstrained_only and space.constraint is not None:
            return "it takes no constraint"
        return ""
