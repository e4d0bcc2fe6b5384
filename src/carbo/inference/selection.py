"""What the data ask for: a warp of the values, and parts of the kernel for variables next to each other. What makes the
values likeliest is taken.

The evidence of a warp is the posterior density at its mode, with y as the warp makes it, times the slope of the warp:
densities of y become densities of the values as told, and so can be compared. Adjacent variables' parts are tried
under the warp so found. Looking takes a climb for each choice and is done again only after the data have grown by a
seventh.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from carbo.errors import NumericalError
from carbo.inference import chain
from carbo.inference.data import Data, Hyper, Model
from carbo.inference.outcome import standardise
from carbo.numerics.types import Floats, Ints

MULTIPLES: tuple[float | None, ...] = (None, 2.0, 0.5)
"""Of the warp's unit, weaker warps first; None is no warp."""
FEWEST = 10
"""Observations before anything but the plain model is thought of."""
GROWTH = 8 / 7
MARGIN = 2.0
"""Log evidence by which a warp has to beat no warp, and adjacent variables' parts the kernel without them. It stands
for what the densities leave out, the priors' constants and the posteriors' widths: for two parts one and a half nats.
"""


class Shape(NamedTuple):
    """The multiple of the warp's unit, the number of observations at which to look again, and which model."""

    multiple: float | None = None
    due: int = FEWEST
    adjacent: bool = False
    """Whether it is the model with adjacent variables' parts."""


class Models(NamedTuple):
    """The model, and the one with adjacent variables' parts if that is to be thought of; and the warps that are."""

    plain: Model
    adjacent: Model | None = None
    multiples: Sequence[float | None] = (None,)

    def of(self, shape: Shape) -> Model:
        """The one that the shape calls for."""
        return self.adjacent if shape.adjacent and self.adjacent is not None else self.plain

    @property
    def alone(self) -> bool:
        """Whether there is nothing to choose."""
        return self.adjacent is None and len(self.multiples) == 1


def reselect(
    now: Shape, X: Ints, values: Floats, models: Models, observations: int | None = None
) -> tuple[Shape, Hyper | None]:
    """The shape to go on with, and where it is a new one, the mode of the posterior under it.

    observations: how many there are in all, where X and values are only some of them.
    """
    count = len(values) if observations is None else observations
    if count < now.due:
        return now, None
    later = Shape(None, int(GROWTH * count) + 1)
    best, mode = -float("inf"), None
    for multiple in models.multiples:
        score, hyper = _mode(X, values, models.plain, multiple)
        score -= MARGIN * (multiple is not None)
        if score > best:
            best, mode, later = score, hyper, later._replace(multiple=multiple)
    if models.adjacent is not None:
        score, hyper = _mode(X, values, models.adjacent, later.multiple)
        if score - MARGIN * (1 + (later.multiple is not None)) > best:
            mode, later = hyper, later._replace(adjacent=True)
    if mode is None:  # no covariance could be factored: the sampler will say so
        return now._replace(due=later.due), None
    return later, None if later._replace(due=now.due) == now else mode


def _mode(X: Ints, values: Floats, model: Model, multiple: float | None) -> tuple[float, Hyper | None]:
    y, scale = standardise(values, multiple)
    try:
        log_density, hyper = chain.mode(model, Data(X, y))
    except NumericalError:
        return -float("inf"), None
    return log_density + scale.log_slope, hyper
