"""SMAC3's hyperparameter optimisation facade: a random forest, log EI, local search, random points in between."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from carbo.numerics.types import Ints
from carbo.space.space import Space
from lab.methods.base import Method
from lab.methods.third_party import is_ordered, quiet, within_constraint

if TYPE_CHECKING:
    from ConfigSpace import ConfigurationSpace

NAME = "smac"


class Smac:
    """One run. Ordered variables are integers, all others categorical. Values count as free of noise.

    SMAC's own initial design is empty, because the run is told its initial points. Where SMAC finds no new point, rows
    are random.
    """

    def __init__(self, space: Space, seed: int, budget: int) -> None:
        with quiet("smac"):
            from smac import HyperparameterOptimizationFacade as Facade
            from smac import Scenario

            self._space, self._rng = space, np.random.default_rng(seed)
            self._configurations = configurations(space)
            self._trial_seed: int | None = 0  # the same for all trials; SMAC may draw another one when it is asked
            with tempfile.TemporaryDirectory() as folder:  # SMAC writes files when it is made, but not on save=False
                scenario = Scenario(self._configurations, output_directory=Path(folder), deterministic=True,
                                    n_trials=budget, seed=seed)  # fmt: skip
                design = Facade.get_initial_design(scenario, n_configs=0)
                self._facade = Facade(scenario, initial_design=design, logging_level=False)

    def tell(self, row: Ints, value: float) -> None:
        from ConfigSpace import Configuration
        from smac.runhistory import TrialInfo, TrialValue

        with quiet("smac"):
            values = dict(zip(_labels(self._space), row.tolist(), strict=True))
            info = TrialInfo(Configuration(self._configurations, values=values), seed=self._trial_seed)
            self._facade.tell(info, TrialValue(float(value)), save=False)

    def ask(self) -> Ints:
        import joblib
        from smac.main.exceptions import ConfigurationSpaceExhaustedException

        # One thread, like every method here. The forest of ten trees is the same, and more threads would mostly wait.
        with quiet("smac"), joblib.parallel_config(backend="sequential"):
            try:
                asked = self._facade.ask()
            except (ConfigurationSpaceExhaustedException, StopIteration):  # StopIteration when it is asked again
                return np.asarray(self._space.random_rows(self._rng, 1)[0])
        self._trial_seed = asked.seed
        return np.array([asked.config[label] for label in _labels(self._space)], dtype=np.intp)


def _labels(space: Space) -> list[str]:
    return [f"x{i}" for i in range(space.dim)]  # ConfigSpace refuses some names


def configurations(space: Space) -> ConfigurationSpace:
    """ConfigSpace's description of the space, parameters x0, x1, ... over positions."""
    from ConfigSpace import CategoricalHyperparameter, ConfigurationSpace, UniformIntegerHyperparameter

    made = [
        UniformIntegerHyperparameter(label, 0, variable.size - 1)
        if is_ordered(variable.graph)
        else CategoricalHyperparameter(label, list(range(variable.size)))
        for label, variable in zip(_labels(space), space.variables.values(), strict=True)
    ]
    described = ConfigurationSpace()
    described.add(made)
    return described


SMAC = Method(
    NAME,
    "SMAC3",
    within_constraint(Smac),
    {"facade": "HyperparameterOptimizationFacade", "deterministic": True},
    ("smac",),
)
