"""What the data ask for: a warp of the values, a kernel of even orders alone, and parts of the kernel for variables
next to each other. What makes the values likeliest is taken.

The evidence of a warp is the posterior density at its mode, with y as the warp makes it, times the slope of the warp:
densities of y become densities of the values as told, and so can be compared. Even orders alone are tried under the
warp so found, adjacent variables' parts under both, and even orders again where these are had. Even orders must also
beat the first order alone: values that are mostly noise speak for any kernel of few parts. Looking takes a climb for
each choice and is done again only after the data have grown by a seventh.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
"""Observations before anything but the plain model is thought of."""
GROWTH = 8 / 7
MARGIN = 2.0
"""Log evidence by which a warp has to beat no warp, even orders all orders, and adjacent variables' parts the kernel
without them. It stands for what the densities leave out, the priors' constants and the posteriors' widths: for two
parts one and a half nats; and for what is known before: few functions are even.
"""


class Form(NamedTuple):
    """In what the kernel differs from the plain one."""

    adjacent: bool = False
    """Adjacent variables have parts of their own."""
    even: bool = False
    """Even orders alone."""


class Shape(NamedTuple):
    """The multiple of the warp's unit, the number of observations at which to look again, and the kernel's form."""

    multiple: float | None = None
    due: int = FEWEST
    form: Form = Form()

    @property
    def departures(self) -> int:
        """How many of the choices are not the plain one."""
        return (self.multiple is not None) + sum(self.form)


class Models(NamedTuple):
    """The plain model, those of other forms that are to be thought of, and the warps that are."""

    plain: Model
    others: Mapping[Form, Model] = {}
    multiples: Sequence[float | None] = (None,)
    additive: Model | None = None
    """Of the first order alone, never in use: what even orders have to beat, if it is there."""

    def of(self, shape: Shape) -> Model:
        """The one that the shape calls for."""
        return self.others.get(shape.form, self.plain)

    @property
    def alone(self) -> bool:
        """Whether there is nothing to choose."""
        return not self.others and len(self.multiples) == 1


def looked(
    now: Shape, X: Ints, values: Floats, models: Models, observations: int | None = None
) -> tuple[Shape, Hyper | None]:
    """The shape to go on with, and where it is a new one, the mode of the posterior under it.

    observations: how many there are in all, where X and values are only some of them.
    """
    count = len(values) if observations is None else observations
    if count < now.due:
        return now, None
    later = Shape(None, int(GROWTH * count) + 1)
    best = _best(X, values, models, [later._replace(multiple=multiple) for multiple in models.multiples])
    tried = {best.shape.form}
    for trait in ("even", "adjacent", "even"):  # what is even may show only once parts in a row are told apart
        form = best.shape.form._replace(**{trait: True})
        if form in models.others and form not in tried:
            tried.add(form)
            other = _best(X, values, models, [best.shape._replace(form=form)])
            if other.score > best.score and not (trait == "even" and _additive(X, values, models, other)):
                best = other
    if best.mode is None:  # no covariance could be factored: the sampler will say so
        return now._replace(due=later.due), None
    return best.shape, None if best.shape._replace(due=now.due) == now else best.mode


class Look(NamedTuple):
    """A shape, its evidence less the margins, and the mode of the posterior under it; None where there is none."""

    shape: Shape
    score: float
    mode: Hyper | None


def _best(X: Ints, values: Floats, models: Models, shapes: Sequence[Shape]) -> Look:
    """The best of some shapes, the first of equals."""
    return max((_look(X, values, models.of(shape), shape) for shape in shapes), key=lambda look: look.score)


def _additive(X: Ints, values: Floats, models: Models, even: Look) -> bool:
    """Whether the first order alone does as well as even orders do."""
    if models.additive is None:
        return False
    return _look(X, values, models.additive, even.shape._replace(form=Form())).score >= even.score


def _look(X: Ints, values: Floats, model: Model, shape: Shape) -> Look:
    y, scale = standardise(values, shape.multiple)
    try:
        log_density, hyper = chain.mode(model, Data(X, y))
    except NumericalError:
        return Look(shape, -float("inf"), None)
    return Look(shape, log_density + scale.log_slope - MARGIN * shape.departures, hyper)
