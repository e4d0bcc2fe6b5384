"""Hyperopt's tree-structured Parzen estimator, the TPE of the paper, which models each variable separately."""

from __future__ import annotations

from typing import Any

import numpy as np

from carbo.numerics.types import Ints
from carbo.space.space import Space
from lab.methods.base import Method
from lab.methods.third_party import is_ordered, quiet, within_constraint

NAME = "tpe-hyperopt"


class HyperoptTpe:
    """One run. Ordered variables are quantised uniform, all others categorical. Every value is a finished trial."""

    def __init__(self, space: Space, seed: int, budget: int) -> None:  # noqa: ARG002
        with quiet("hyperopt"):
            from hyperopt.base import Domain, Trials

            self._labels, parameters = _parameters(space)
            self._domain = Domain(_never_called, parameters)
            self._trials = Trials()
        self._rng = np.random.default_rng(seed)

    def tell(self, row: Ints, value: float) -> None:
        from hyperopt.base import JOB_STATE_DONE, STATUS_OK

        tid = len(self._trials.trials)
        misc = {
            "tid": tid,
            "cmd": self._domain.cmd,
            "workdir": self._domain.workdir,
            "idxs": {label: [tid] for label in self._labels},
            "vals": {label: [position] for label, position in zip(self._labels, row.tolist(), strict=True)},
        }
        result = {"status": STATUS_OK, "loss": float(value)}
        with quiet("hyperopt"):
            trial = self._trials.new_trial_docs([tid], [None], [result], [misc])[0]
            trial["state"] = JOB_STATE_DONE
            self._trials.insert_trial_docs([trial])
            self._trials.refresh()

    def ask(self) -> Ints:
        from hyperopt import tpe

        seed = int(self._rng.integers(2**31 - 1))
        with quiet("hyperopt"):
            trials = tpe.suggest([len(self._trials.trials)], self._domain, self._trials, seed, verbose=False)
        chosen = trials[0]["misc"]["vals"]
        return np.array([int(chosen[label][0]) for label in self._labels], dtype=np.intp)


def _parameters(space: Space) -> tuple[list[str], dict[str, Any]]:
    """Labels of the variables in their order, and hyperopt's search space over these labels."""
    from hyperopt import hp

    labels = [f"x{i}" for i in range(space.dim)]  # hyperopt orders labels in another way
    made = {
        label: hp.uniformint(label, 0, variable.size - 1)
        if is_ordered(variable.graph)
        else hp.choice(label, list(range(variable.size)))
        for label, variable in zip(labels, space.variables.values(), strict=True)
    }
    return labels, made


def _never_called(_params: object) -> float:
    raise AssertionError("the laboratory evaluates, not hyperopt")


TPE_HYPEROPT = Method(NAME, "TPE (hyperopt)", within_constraint(HyperoptTpe), packages=("hyperopt",))
