"""All that a page shows, as plain values."""

from __future__ import annotations

import datetime
import platform
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy

import carbo
from carbo.integrations.optuna.evaluations import Evaluation
from carbo.report.definition import Definition, command_of, definition
from carbo.report.findings import trail
from carbo.report.model_data import Fitted, fit_model
from carbo.report.trials import mask

if TYPE_CHECKING:
    from carbo.tune.reading import OpenStudy

LEFT_OUT = "The model was left out of this page (--no-model)."


@dataclass(frozen=True)
class Report:
    """A study, ready to be drawn.

    evaluations     all trials, by number
    model           what the model says, or why there is none
    tuned           whether `carbo tune` made the study
    """

    name: str
    definition: Definition
    evaluations: tuple[Evaluation, ...]
    model: Fitted | str
    tuned: bool
    best_command: str | None
    versions: dict[str, str]
    made: datetime.datetime

    @property
    def direction(self) -> str:
        return self.definition.direction


def gather(source: OpenStudy, model: bool = True) -> Report:
    """Read the study and, if `model`, fit the model to it."""
    import optuna

    rows = tuple(mask(row) for row in source.evaluations())
    what = definition(source)
    found = trail(rows, what.direction)
    best = found[-1][0] if found else None
    return Report(
        name=source.name,
        definition=what,
        evaluations=rows,
        model=fit_model(source.study, source.sampler) if model else LEFT_OUT,
        tuned=source.described is not None,
        best_command=command_of(source.described, best.params, best.number) if best else None,
        versions={
            "carbo": carbo.__version__,
            "Optuna": optuna.__version__,
            "Python": platform.python_version(),
            "NumPy": np.__version__,
            "SciPy": scipy.__version__,
        },
        made=datetime.datetime.now().astimezone(),
    )
