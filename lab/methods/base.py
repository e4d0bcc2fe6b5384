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
        """The value at a row (d,), one it asked for or an initial one; NaN, a failure, if it `learns_failures`."""

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
    learns_failures: bool = False
    """Told NaN where an evaluation failed; any other method is told a penalty, the worst value so far."""
    design: Callable[[Space, Ints, int], Ints] | None = None
    """(space, the problem's initial rows, run) to the rows that it starts from instead; None: from the problem's."""
    noisy: Method | None = None
    """What it is where values are noisy, which its user would know; None: the same."""

    def where(self, noisy: bool) -> Method:
        """What it is where values are noisy, or where they are not."""
        return self.noisy if noisy and self.noisy is not None else self

    def objection(self, space: Space) -> str:
        """Why it cannot take the space; empty where it can."""
        if self.binary_only and (space.sizes != 2).any():
            return "it takes binary variables only"
        if self.unconstrained_only and space.constraint is not None:
            return "it takes no constraint"
        return ""
