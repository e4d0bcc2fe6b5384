"""Optuna's tree-structured Parzen estimator, multivariate: all variables in one kernel density."""

from __future__ import annotations

from functools import partial

from carbo.space.space import Space
from lab.methods.base import Method, Strategy
from lab.methods.optuna_study import OptunaStudy
from lab.methods.third_party import within_constraint

NAME = "tpe"


def start(space: Space, seed: int, budget: int) -> Strategy:  # noqa: ARG001
    """A run with Optuna's defaults, but multivariate."""
    from optuna.samplers import TPESampler

    return OptunaStudy(space, partial(TPESampler, seed=seed, multivariate=True))


TPE = Method(
    NAME,
    "TPE (Optuna, multivariate)",
    within_constraint(start),
    {"multivariate": True},
    ("optuna",),
    learns_failures=True,
)
