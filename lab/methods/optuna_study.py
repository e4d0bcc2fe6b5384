"""An Optuna study, with any of its samplers, as a method: variables are distributions over positions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from carbo.numerics.types import Ints
from carbo.space.row_space import row_key
from carbo.space.space import Space
from lab.methods.third_party import is_ordered, quiet

if TYPE_CHECKING:
    from optuna import Trial
    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler


class OptunaStudy:
    """One run. Ordered variables are integers, all others categorical. Initial points are added as finished trials.

    Failures are learnt as Optuna's samplers document it: by a constraint, 1 where an evaluation failed and -1 where it
    did not. All trials of a study need it, so the first failure begins a new study of the same trials, with the same
    sampler. The value of a failure is the worst one told before; while there is none, failures wait.
    """

    def __init__(self, space: Space, make: Callable[[], BaseSampler]) -> None:
        import optuna

        self._names = space.names
        self._distributions = _distributions(space)
        with quiet("optuna"):
            self._study = optuna.create_study(sampler=make())
        self._asked: dict[bytes, Trial] = {}
        self._told: list[tuple[Ints, float]] = []
        self._constrained = False

    def tell(self, row: Ints, value: float) -> None:
        self._told.append((row.copy(), float(value)))
        failed = np.isnan([value for _, value in self._told])
        if failed.all():
            return
        with quiet("optuna"):
            if failed.any() and not self._constrained:
                self._begin_again()
            else:
                self._add(row, float(value))

    def _begin_again(self) -> None:
        import optuna

        self._constrained = True
        self._study = optuna.create_study(sampler=self._study.sampler)
        self._asked.clear()
        for row, value in self._told:
            self._add(row, value)

    def _add(self, row: Ints, value: float) -> None:
        from optuna.trial import create_trial

        constraint = {"failure": 1.0 if np.isnan(value) else -1.0} if self._constrained else {}
        number = float(np.fmax.reduce([each for _, each in self._told])) if np.isnan(value) else value
        trial = self._asked.pop(row_key(row), None)
        if trial is not None:
            for key, violation in constraint.items():
                trial.set_constraint(key, violation)
            self._study.tell(trial, number)
            return
        params = dict(zip(self._names, row.tolist(), strict=True))
        more: dict[str, Any] = {"constraints": constraint} if constraint else {}
        self._study.add_trial(create_trial(params=params, distributions=self._distributions, value=number, **more))

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
