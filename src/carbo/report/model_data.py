"""What the model says of a study: which variables matter, and how well it predicts values that it has not seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from carbo.errors import CarboError
from carbo.integrations.optuna.evaluations import evaluations
from carbo.numerics.types import Floats
from carbo.surrogate.relevance import Relevance
from carbo.tune.study_model import Lack, study_model

if TYPE_CHECKING:
    import optuna

    from carbo.integrations.optuna.sampler import CarboSampler

LACKS: dict[Lack, str] = {
    "few": "The model needs two evaluations with a value.",
    "equal": "All values are equal: nothing distinguishes one setting from another.",
}
WIDTH = 1.2816
"""Half the width of the interval that holds 80 % of a normal distribution, in standard deviations."""


class Check(NamedTuple):
    """An observation, and its prediction from all the others: mean and standard deviation, noise included."""

    number: int
    observed: float
    predicted: float
    sd: float

    @property
    def inside(self) -> bool:
        """Whether the observation lies in the interval of 80 %."""
        return abs(self.observed - self.predicted) <= WIDTH * self.sd


class Fitted(NamedTuple):
    """What the model says. outside: parameters that it does not know, because not every trial had them."""

    relevance: Relevance
    checks: tuple[Check, ...]
    outside: tuple[str, ...]


def fit_model(study: optuna.Study, sampler: CarboSampler) -> Fitted | str:
    """The model of a study, or why there is none."""
    try:
        model = study_model(sampler, study)
        if isinstance(model, str):
            return LACKS[model]
        found, (means, sds) = model.optimizer.relevance(), model.optimizer.leave_one_out()
    except CarboError as error:
        return f"There is no model of this study: {error}."
    trials = study.get_trials(deepcopy=False)
    names = dict.fromkeys(name for trial in trials if trial.state.name == "COMPLETE" for name in trial.params)
    outside = tuple(name for name in names if name not in found.variables)
    return Fitted(found, _checks(study, model.numbers, means, sds), outside)


def _checks(study: optuna.Study, numbers: list[int], means: Floats, sds: Floats) -> tuple[Check, ...]:
    """Predictions of trials that are done. The values that the engine has of other trials are no observations."""
    sign = 1.0 if study.direction.name == "MINIMIZE" else -1.0
    values = {each.number: each.value for each in evaluations(study.get_trials(deepcopy=False), tuned=False)}
    return tuple(
        Check(number, observed, sign * mean, sd)
        for number, mean, sd in zip(numbers, means.tolist(), sds.tolist(), strict=True)
        if (observed := values[number]) is not None and np.isfinite(mean)
    )
