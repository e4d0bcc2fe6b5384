"""One finished run of a method on a problem, as one line of JSON.

Notation
    row     (d,) integers; written as one number in mixed radix (the first variable counts most), in hexadecimal of a
            fixed width, so that a run of 270 evaluations of 60 binary variables stays under 20 KB
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from carbo.graph import Floats, Ints


@dataclass(frozen=True)
class Record:
    """A run. `rows` are as the method saw them (of the relocated problem, if it was)."""

    problem: str
    instance: dict[str, Any]
    relocated: int | None
    """The seed of the relocation; None for the original problem."""
    method: str
    settings: dict[str, Any]
    run: int
    """The paper's run, 1..25: instance and initial points."""
    seed: int
    """The method's own."""
    initial: int
    """How many of the evaluations were initial points."""
    sizes: tuple[int, ...]
    """Number of values of each variable."""
    rows: Ints
    """(n, d), in the order evaluated."""
    values: Floats
    """(n,)"""
    seconds: Floats
    """(n - initial,): time of each suggestion, tell and ask together, evaluations left out."""
    versions: dict[str, str]
    revision: str
    machine: dict[str, Any]
    finished: str
    """UTC, ISO 8601."""

    @property
    def best(self) -> Floats:
        """(n,): smallest value so far."""
        return np.asarray(np.minimum.accumulate(self.values))
