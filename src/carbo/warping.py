"""Which warp the values ask for: the one under which the model finds them likeliest.

The evidence of a warp is the posterior density at its mode, with y as the warp makes it, times the slope of the warp:
densities of y become densities of the values as told, and so can be compared. Looking costs about as much as half a
suggestion and is done again only after the data have grown by a seventh.
"""

from __future__ import annotations

from typing import NamedTuple

from carbo import chain
from carbo.conditional import Data, Hyper
from carbo.errors import NumericalError
from carbo.graph import Floats, Ints
from carbo.posterior import Model
from carbo.values import standardise

MULTIPLES: tuple[float | None, ...] = (None, 2.0, 0.5)
"""Of the warp's unit, weaker warps first; None is no warp."""
FEWEST = 10
"""Observations before anything but no warp is thought of."""
GROWTH = 8 / 7
MARGIN = 2.0
"""Log evidence by which a warp has to beat no warp."""


class Warping(NamedTuple):
    """The multiple of the warp's unit, and the number of observations at which it is to be looked at again."""

    multiple: float | None = None
    due: int = FEWEST


def looked(
    now: Warping, X: Ints, values: Floats, model: Model, observations: int | None = None
) -> tuple[Warping, Hyper | None]:
    """The warp to go on with, and where it is a new one, the mode of the posterior under it.

    observations: how many there are in all, where X and values are only some of them.
    """
    count = len(values) if observations is None else observations
    if count < now.due:
        return now, None
    modes = [_mode(X, values, model, multiple) for multiple in MULTIPLES]
    scores = [score - MARGIN * (multiple is not None) for (score, _), multiple in zip(modes, MULTIPLES, strict=True)]
    best = max(range(len(MULTIPLES)), key=lambda k: scores[k])
    later = Warping(MULTIPLES[best], int(GROWTH * count) + 1)
    return later, None if later.multiple == now.multiple else modes[best][1]


def _mode(X: Ints, values: Floats, model: Model, multiple: float | None) -> tuple[float, Hyper | None]:
    y, scale = standardise(values, multiple)
    try:
        log_density, hyper = chain.mode(model, Data(X, y))
    except NumericalError:
        return -float("inf"), None
    return log_density + scale.log_slope, hyper
