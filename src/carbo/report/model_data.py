"""What the engine makes of a study: which variables matter, and how well it predicts values it has not seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from carbo.errors import CarboError
from carbo.numerics.types import Floats
from carbo.surrogate.relevance import Relevance

if TYPE_CHECKING:
    import optuna

    from carbo.integrations.optuna.sampler import CarboSampler

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
        optimizer, numbers = sampler.told(study)
        values = optimizer.history()[1]
        values = values[np.isfinite(values)]
        if len(values) < ENOUGH:
            return TOO_FEW
        if np.all(values == values[0]):
            return "All values are equal: nothing tells one setting from another."
        found, (means, sds) = optimizer.relevance(), optimizer.leave_one_out()
    except CarboError as error:
        return f"There is no model of this study: {error}."
    asked = {name: None for t in complete for name in t.params}
    outside = tuple(name for name in asked if name not in found.variables)
    return Fitted(found, _checks(study, numbers, means, sds), outside)


def _checks(study: optuna.Study, numbers: list[int], means: Floats, sds: Floats) -> tuple[Check, ...]:
    """Of trials that ran to their end: what is told of others is no observation."""
    from carbo.integrations.optuna.trials import verdict

    sign = 1.0 if study.direction.name == "MINIMIZE" else -1.0
    trials = {t.number: verdict(t) for t in study.get_trials(deepcopy=False) if t.state.name == "COMPLETE"}
    each = zip(numbers, means.tolist(), sds.tolist(), strict=True)
    known = ((number, trials.get(number), mean, sd) for number, mean, sd in each)
    return tuple(
        Check(number, found.value, sign * mean, sd)
        for number, found, mean, sd in known
        if found is not None and np.isfinite(found.value) and np.isfinite(mean)
    )
