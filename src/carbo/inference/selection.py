"""Model selection: which warp of the values, and whether the kernel has windows. The likeliest choice is taken.

A window is a part of the kernel for variables next to each other in the space (`kernels.windows`). The evidence of a
warp is the posterior density at the mode, with y computed by this warp, times the slope of the warp. The slope turns
densities of y into densities of the told values, which can be compared between warps. Windows are tried after the warp
has been selected, with this warp. Each choice costs a climb to a mode, so selection runs again only after the data have
grown by a seventh.
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
"""Choices of the warp: multiples of its unit, weaker warps first; None is no warp."""
FEWEST = 10
"""Number of observations at which models other than the plain one are tried first."""
GROWTH = 8 / 7
"""Selection runs again when the number of observations has grown by this factor."""
MARGIN = 2.0
"""Log evidence by which a warp must beat no warp, and a kernel with windows the kernel without them. The margin stands
for terms that densities at a mode leave out: the constants of the priors and the widths of the posteriors. With two
windows these terms are 1.5.
"""


class Shape(NamedTuple):
    """The selected model.

    multiple    of the warp's unit; None: no warp
    due         number of observations at which selection runs again
    adjacent    whether the kernel has windows
    """

    multiple: float | None = None
    due: int = FEWEST
    adjacent: bool = False


class Models(NamedTuple):
    """The choices: the plain model, the model with windows or None, and the multiples of the warp."""

    plain: Model
    adjacent: Model | None = None
    multiples: Sequence[float | None] = (None,)

    def of(self, shape: Shape) -> Model:
        """The model that `shape` selects."""
        return self.adjacent if shape.adjacent and self.adjacent is not None else self.plain

    @property
    def alone(self) -> bool:
        """Whether there is only one choice."""
        return self.adjacent is None and len(self.multiples) == 1


def reselect(
    now: Shape, X: Ints, values: Floats, models: Models, observations: int | None = None
) -> tuple[Shape, Hyper | None]:
    """The next shape, and the mode of the posterior under it; the mode is None if model and warp did not change.

    observations: the number of all observations, if X and values are only some of them
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
    if mode is None:  # no covariance could be factored: the sampler will raise the error
        return now._replace(due=later.due), None
    return later, None if later._replace(due=now.due) == now else mode


def _mode(X: Ints, values: Floats, model: Model, multiple: float | None) -> tuple[float, Hyper | None]:
    """The log evidence of a model and a warp, and the mode; (-inf, None) if no covariance could be factored."""
    y, scale = standardise(values, multiple)
    try:
        log_density, hyper = chain.mode(model, Data(X, y))
    except NumericalError:
        return -float("inf"), None
    return log_density + scale.log_slope, hyper
