"""One call that minimises a function of discrete knobs: the shortest way. Takes some seconds."""

from __future__ import annotations

import math
from typing import Any

import carbo

SPACE = carbo.Space(
    {
        "depth": carbo.Integer(1, 8),
        "width": carbo.Ordinal([16, 32, 64, 128, 256]),  # in order: 32 is next to 64
        "activation": carbo.Categorical(["relu", "tanh", "gelu"]),  # no order
        "rate": carbo.Float(1e-4, 1e-1, points=13, log=True),  # numbers are searched on a grid
        "dropout": carbo.Binary(),
    }
)


def error(params: dict[str, Any]) -> float | None:
    """The error of a made-up network; yours takes minutes. None: it failed, and the model learns where."""
    if params["depth"] * params["width"] > 1200:
        return None  # out of memory
    gap = abs(params["depth"] - 5) + abs(params["width"] - 128) / 64
    slow = {"relu": 0.5, "tanh": 2.0, "gelu": 0.0}[params["activation"]]
    steep = abs(math.log10(params["rate"]) + 2.5)
    return float(gap + slow + steep + (0.0 if params["dropout"] else 1.0))


def main() -> None:
    known = {"depth": 2, "width": 64, "activation": "relu", "rate": 1e-3, "dropout": True}  # the settings in use today
    result = carbo.minimize(error, SPACE, budget=24, seed=0, initial=[known])
    print(f"{result.message}; best {result.fun:.3f}, found as number {result.func_vals.tolist().index(result.fun) + 1}")
    for name, value in result.x.items():
        print(f"  {name:<12}{value}")
    print(result.optimizer.relevance())  # which knobs matter


if __name__ == "__main__":
    main()
