"""The search for a good cell with `carbo.minimize`: 31 binary variables and a known constraint."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import carbo

from .cell import NAMES, Ints, is_valid, reduced
from .shape import Images, ratio

Say = Callable[[str], None]


def row_of(params: dict[str, Any]) -> Ints:
    """The 31 bits, as integers (31,), of a point of the space."""
    return np.array([params[name] for name in NAMES], dtype=np.intp)


def space() -> carbo.Space:
    """All cells in which a path leads from IN to OUT."""
    return carbo.Space(
        {name: carbo.Binary() for name in NAMES},
        constraint=lambda params: is_valid(row_of(params)),
    )


def search(value: Callable[[Ints], float], budget: int, seed: int = 0, say: Say = print) -> Any:
    """Minimise `value`, a function of a row (31,), and say each evaluation in a line; returns minimize's result."""
    began = time.monotonic()

    def tell(result: Any) -> None:
        seconds = time.monotonic() - began
        say(f"{result.nfev:4} of {budget}: {result.func_vals[-1]:.4f}, best {result.fun:.4f}, {seconds:.0f} s")

    return carbo.minimize(lambda params: value(row_of(params)), space(), budget, seed=seed, callback=tell)


def described(result: Any, images: Images) -> str:
    """The best cell of a search, in three lines."""
    row = row_of(result.x)
    best = reduced(row)
    assert best is not None  # the constraint keeps invalid cells out
    return (
        f"best value of {result.nfev} evaluations: {result.fun:.4f}\n"
        f"its nodes: {', '.join(best.kinds) or 'none'}; {ratio(best, images):.0%} of the operations of the full cell\n"
        f"its bits: {''.join(map(str, row))}"
    )
