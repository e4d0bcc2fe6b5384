"""Relevance of variables: Sobol' total effects of the posterior mean, for each posterior sample.

Notation
    f_s         posterior mean under sample s, on the scale of the values
    T_i         total effect of variable i: E[(f(x) - f(x with x_i redrawn))^2] / (2 Var f(x)), x uniform (Jansen 1999)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from carbo.numerics.types import Floats, Ints
from carbo.space.row_space import RowSpace
from carbo.surrogate.ensemble import Ensemble
from carbo.surrogate.neighbours import NeighbourPredictor


class Influence(NamedTuple):
    """A variable's share of the function's variation, 0 to 1: mean, 10 % and 90 % quantile over the posterior.

    The shares of variables that interact overlap, so all shares may add up to more than one.
    """

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Relevance:
    """The influence of each variable, largest first, and shares of the model's signal variance.

    orders      the share of each order of interaction, "1", "2", ...; None if the kernel has no orders
    adjacent    the share of the parts for variables next to each other, which `orders` counts too; None if the model
                has no such parts, because the data give no evidence for them
    """

    variables: dict[str, Influence]
    orders: dict[str, float] | None
    adjacent: float | None = None

    def __str__(self) -> str:
        width = max(len("variable"), *(len(name) for name in self.variables))
        lines = [f"{'variable':<{width}}  influence  (10% .. 90%)"]
        for name, share in self.variables.items():
            bar = "█" * round(30 * min(share.mean, 1.0))
            lines.append(f"{name:<{width}}  {share.mean:9.3f}  ({share.low:.3f} .. {share.high:.3f})  {bar}".rstrip())
        if self.orders is not None:
            shares = ", ".join(f"{order}: {share:.0%}" for order, share in self.orders.items())
            lines.append(f"variance by order of interaction: {shares}")
        if self.adjacent is not None:
            lines.append(f"of which between variables next to each other: {self.adjacent:.0%}")
        return "\n".join(lines)


def measure_relevance(
    rng: np.random.Generator,
    model: Ensemble,
    space: RowSpace,
    value: Callable[[Floats], Floats],
    count: int = 256,
    at_once: int = 32,
) -> Relevance:
    """The relevance of the variables under a conditioned model, estimated from `count` random rows.

    value       function from the model's predictions to the scale on which effects are measured
    at_once     number of variables that are redrawn at a time
    """
    base, other = space.random_rows(rng, count), space.random_rows(rng, count)
    f = value(model.mu(model.covariances(base)))
    effects, predictor = np.zeros((space.dim, model.size)), NeighbourPredictor(model)
    for start in range(0, space.dim, at_once):
        some = range(start, min(start + at_once, space.dim))
        for i, g in zip(some, redraw_means(predictor, base, other, some), strict=True):
            effects[i] = _total_effect(f, np.where(other[:, i] == base[:, i], f, value(g)))
    effects = np.minimum(effects, 1.0)  # an estimate may exceed 1, its target cannot
    low, high = np.quantile(effects, [0.1, 0.9], axis=1)
    order = np.argsort(-effects.mean(axis=1), kind="stable")
    shares = {space.names[i]: Influence(float(effects[i].mean()), float(low[i]), float(high[i])) for i in order}
    return Relevance(shares, *model.kernel.variance_shares(np.array(model.w)))


def redraw_means(predictor: NeighbourPredictor, base: Ints, other: Ints, which: Sequence[int]) -> Floats:
    """Posterior means (len(which), S, N) at base rows (N, d) with one of these variables taken from the other rows.

    The mean is undefined where a base row and the other row have the same value of this variable.
    """
    rows = np.tile(base, (len(which), 1, 1))
    for k, i in enumerate(which):
        rows[k, :, i] = other[:, i]
    owner = np.tile(np.arange(len(base)), len(which))
    mu = predictor.predict_neighbours(base, rows.reshape(-1, rows.shape[2]), owner).mu
    return mu.reshape(-1, len(which), len(base)).transpose(1, 0, 2)


def _total_effect(f: Floats, g: Floats) -> Floats:
    """The total effect T_i (S,) from means (S, N) at rows, f, and at the same rows with x_i redrawn, g."""
    variance = (
        np.maximum(f.var(axis=1) + g.var(axis=1), 1e-300) / 2.0
    )  # over both sets of rows: one of them may miss a spike
    return np.asarray(np.mean((f - g) ** 2, axis=1) / (2.0 * variance))
