"""What the model says of a study, and when it has seen enough values to say anything."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

import numpy as np

from carbo.integrations.optuna.evaluations import evaluations

if TYPE_CHECKING:
    import optuna

    from carbo.integrations.optuna.sampler import CarboSampler, StudyModel
    from carbo.surrogate.relevance import Relevance

FEW = 10
"""Values below which the model mostly says what it assumed before. The live page waits for them, the report warns."""

Lack = Literal["few", "equal"]
"""Why values say nothing about settings: there are less than two, or all are equal."""


def lack_of(values: Iterable[float]) -> Lack | None:
    """What these values lack; None if two of them differ, which is enough for the model."""
    known = list(values)
    if len(known) < 2:
        return "few"
    return "equal" if len(set(known)) == 1 else None


def study_model(sampler: CarboSampler, study: optuna.Study) -> StudyModel | Lack:
    """The engine with the data of a study, or what the study's values lack."""
    trials = evaluations(study.get_trials(deepcopy=False), tuned=False)
    lack = lack_of(row.value for row in trials if row.value is not None)
    if lack is not None:
        return lack
    model = sampler.told(study)
    values = model.optimizer.history()[1]  # without trials outside the space
    return lack_of(values[np.isfinite(values)].tolist()) or model


def relevance(sampler: CarboSampler, study: optuna.Study) -> Relevance | None:
    """Which variables matter in a study; None while its values say nothing."""
    model = study_model(sampler, study)
    return None if isinstance(model, str) else model.optimizer.relevance()
