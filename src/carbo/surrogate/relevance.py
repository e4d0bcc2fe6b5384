"""Which variables matter: Sobol' total effects of the posterior mean, one a posterior sample.

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
from carbo.surrogate.neighbours import Neighbours

BASE_ROWS = 256
AT_ONCE = 32
"""Variables that are redrawn at a time."""


class Influence(NamedTuple):
    """Posterior mean and 10% and 90% quantiles of a variable's total effect: its share of the variation, 0 to 1.

    Shares of variables that interact overlap, so they may add up to more than one.
    """

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Relevance:
    """Influence by variable, largest first, and the share of the model's signal variance at each order of interaction.

    `orders` maps "1", "2", ... (and "all" for the full product) to shares; None where the kernel has no orders.
    `adjacent` is the share of parts that only variables next to each other have, each counted at its order too; None
    where the model has none, because the data did not ask for them.
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


def influence(
    rng: np.random.Generator, model: Ensemble, space: RowSpace, value: Callable[[Floats], Floats]
) -> Relevance:
    """The relevance report of a conditioned model; `value` undoes the warp of what it predicts."""
    base, other = space.random_rows(rng, BASE_ROWS), space.random_rows(rng, BASE_ROWS)
    f = value(model.mu(model.covariances(base)))
    effects, quick = np.zeros((space.dim, model.size)), Neighbours(model)
    for start in range(0, space.dim, AT_ONCE):
        some = range(start, min(start + AT_ONCE, space.dim))
        for i, g in zip(some, redrawn(quick, base, other, some), strict=True):
            effects[i] = _effect(f, np.where(other[:, i] == base[:, i], f, value(g)))
    effects = np.minimum(effects, 1.0)  # an estimate from BASE_ROWS rows can exceed what it estimates
    low, high = np.quantile(effects, [0.1, 0.9], axis=1)
    order = np.argsort(-effects.mean(axis=1), kind="stable")
    shares = {space.names[i]: Influence(float(effects[i].mean()), float(low[i]), float(high[i])) for i in order}
    return Relevance(shares, *model.kernel.shares(np.array(model.w)))


def redrawn(model: Neighbours, base: Ints, other: Ints, which: Sequence[int]) -> Floats:
    """(len(which), S, N) means at base rows (N, d), one of these variables at a time as in the other rows.

    Where the two rows agree in it, the mean is undefined.
    """
    rows = np.tile(base, (len(which), 1, 1))
    for k, i in enumerate(which):
        rows[k, :, i] = other[:, i]
    owner = np.tile(np.arange(len(base)), len(which))
    mu = model.around(base, rows.reshape(-1, rows.shape[2]), owner).mu
    return mu.reshape(-1, len(which), len(base)).transpose(1, 0, 2)


def _effect(f: Floats, g: Floats) -> Floats:
    """(S,) T_i from means (S, N) at rows and at the same rows with x_i redrawn."""
    variance = np.maximum(f.var(axis=1) + g.var(axis=1), 1e-300) / 2.0  # of both: one alone may miss a spike
    return np.asarray(np.mean((f - g) ** 2, axis=1) / (2.0 * variance))
