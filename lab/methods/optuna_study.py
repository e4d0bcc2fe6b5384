"""An Optuna study, with any of its samplers, as a method: variables are distributions over positions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from carbo.numerics.types import Ints
from carbo.space.rows import row_key
from carbo.space.space import Space
from lab.methods.third_party import is_ordered, quiet

if TYPE_CHECKING:
    from optuna import Trial
    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler


class OptunaStudy:
    """One run. Ordered variables are integers, all others categorical. Initial points are added as finished trials."""

    def __init__(self, space: Space, make: Callable[[], BaseSampler]) -> None:
        import optuna

        self._names = space.names
        self._distributions = _distributions(space)
        with quiet("optuna"):
            self._study = optuna.create_study(sampler=make())
        self._asked: dict[bytes, Trial] = {}

    def tell(self, row: Ints, value: float) -> None:
        from optuna.trial import create_trial

        with quiet("optuna"):
            trial = self._asked.pop(row_key(row), None)
            if trial is not None:
                self._study.tell(trial, float(value))
                return
            params = dict(zip(self._names, row.tolist(), strict=True))
            self._study.add_trial(create_trial(params=params, distributions=self._distributions, value=float(value)))

    def ask(self) -> Ints:
        with quiet("optuna"):
            trial = self._study.ask(self._distributions)
        row = np.array([trial.params[name] for name in self._names], dtype=np.intp)
        self._asked[row_key(row)] = trial
        return row


def _distributions(space: Space) -> dict[str, BaseDistribution]:
    from optuna.distributions import CategoricalDistribution, IntDistribution

    return {
        name: IntDistribution(0, variable.size - 1)
        if is_ordered(variable.graph)
        else CategoricalDistribution(tuple(range(variable.size)))
        for name, variable in space.variables.items()
    }
