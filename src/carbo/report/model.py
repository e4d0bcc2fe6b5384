"""What the engine makes of a study: which variables matter, and how well it predicts values it has not seen.

Notation
    C       (n, n) covariance of the observations under one posterior sample, noise included; L its Cholesky factor
    alpha   (n,) C^-1 (y - mean)

Leaving observation i out changes nothing but its own row and column of C, so that its prediction has a closed form
(Rasmussen and Williams 2006, equation 5.12): mean y_i - alpha_i / [C^-1]_ii, variance 1 / [C^-1]_ii. The
hyperparameters are those of all observations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.linalg import lapack

from carbo.ensemble import Ensemble, telling
from carbo.errors import CarboError
from carbo.graph import Floats
from carbo.influence import Relevance

if TYPE_CHECKING:
    import optuna

    from carbo.optimizer import Optimizer
    from carbo.optuna_sampler import CarboSampler

ENOUGH = 2
"""Evaluations with a value before the model says anything, as for `carbo relevance`."""
TOO_FEW = "The model needs two evaluations with a value."
WIDTH = 1.2816
"""Standard deviations either side of the mean that hold 80 % of a normal distribution."""


class Check(NamedTuple):
    """An observation, and its prediction from all the others: mean and standard deviation, noise included."""

    number: int
    observed: float
    predicted: float
    sd: float

    @property
    def inside(self) -> bool:
        """Whether the interval of 80 % holds the observation."""
        return abs(self.observed - self.predicted) <= WIDTH * self.sd


class Fitted(NamedTuple):
    """The model's own words. `outside`: parameters that it does not know, for not every trial had them."""

    relevance: Relevance
    checks: tuple[Check, ...]
    outside: tuple[str, ...]


def fitted(study: optuna.Study, sampler: CarboSampler) -> Fitted | str:
    """The model of a study, or why there is none."""
    complete = [t for t in study.get_trials(deepcopy=False) if t.state.name == "COMPLETE"]
    if len(complete) < ENOUGH:
        return TOO_FEW
    try:
        optimizer = sampler.optimizer(study)
        values = optimizer.history()[1]
        values = values[np.isfinite(values)]
        if len(values) < ENOUGH:
            return TOO_FEW
        if np.all(values == values[0]):
            return "All values are equal: nothing tells one setting from another."
        found, (means, sds) = optimizer.relevance(), leave_one_out(optimizer)
    except CarboError as error:
        return f"There is no model of this study: {error}."
    asked = {name: None for t in complete for name in t.params}
    outside = tuple(name for name in asked if name not in found.variables)
    return Fitted(found, _checks(study, _numbers(sampler, optimizer), means, sds), outside)


def leave_one_out(optimizer: Optimizer) -> tuple[Floats, Floats]:
    """Mean and standard deviation of each value given all others, averaged over the posterior samples.

    In the order told, failures left out; on the optimiser's scale, where smaller is better. NaN for values that
    predictions are not made from, which there are when observations are very many.
    """
    model, scale = optimizer._look()
    view = optimizer._data()
    order = telling(view.given.predict)
    mean, variance = (np.empty((model.size, len(order))) for _ in range(2))
    for s in range(model.size):
        mean[s, order], variance[s, order] = _left_out(model, s)
    means, sds = (np.full(len(view.data.y), np.nan) for _ in range(2))
    means[view.share.predict], sds[view.share.predict] = scale.back(mean, np.sqrt(variance))
    return means, sds


def _left_out(model: Ensemble, s: int) -> tuple[Floats, Floats]:
    inverse, _ = lapack.dtrtri(model.gps[s].L, lower=1)
    precision = np.einsum("ij,ij->j", inverse, inverse)  # the diagonal of L^-T L^-1
    return model.values[s] - model.gps[s].alpha / precision, 1.0 / precision


def _numbers(sampler: CarboSampler, optimizer: Optimizer) -> list[int]:
    """The numbers of the trials that the optimiser was told with a value, in that order."""
    assert sampler._engine is not None
    rows = sampler._engine[1]._rows
    told = [v.trial.number for v in sampler._memory.finished() if rows[v.trial.number] is not None]
    return [number for number, ok in zip(told, optimizer._succeeded, strict=True) if ok]


def _checks(study: optuna.Study, numbers: list[int], means: Floats, sds: Floats) -> tuple[Check, ...]:
    """Of trials that ran to their end: what is told of others is no observation."""
    from carbo.optuna_trials import verdict

    sign = 1.0 if study.direction.name == "MINIMIZE" else -1.0
    trials = {t.number: verdict(t) for t in study.get_trials(deepcopy=False) if t.state.name == "COMPLETE"}
    each = zip(numbers, means.tolist(), sds.tolist(), strict=True)
    known = ((number, trials.get(number), mean, sd) for number, mean, sd in each)
    return tuple(
        Check(number, found.value, sign * mean, sd)
        for number, found, mean, sd in known
        if found is not None and np.isfinite(found.value) and np.isfinite(mean)
    )
