"""Optuna's Gaussian process sampler: Matérn over Hamming distances, most probable hyperparameters, log EI."""

from __future__ import annotations

from functools import partial
from importlib import import_module

from carbo.space.space import Space
from lab.methods.base import Method, Strategy
from lab.methods.optuna_study import OptunaStudy
from lab.methods.third_party import within_constraint

NAME = "gp-optuna"


def start(space: Space, seed: int, budget: int) -> Strategy:  # noqa: ARG001
    """A run with Optuna's defaults."""
    from optuna.samplers import GPSampler

    import_module("torch")  # now: Optuna would do it in the first suggestion, which is timed
    return OptunaStudy(space, partial(GPSampler, seed=seed))


GP = Method(
    NAME,
    "Gaussian process (Optuna)",
    within_constraint(start),
    {"deterministic_objective": False},
    ("optuna", "torch"),
    learns_failures=True,
)
