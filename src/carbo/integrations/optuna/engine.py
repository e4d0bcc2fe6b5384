"""carbo's optimiser over one search space of an Optuna study, its data taken from the study's trials."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from carbo.engine import Engine
from carbo.errors import NothingPermitted, SpaceExhausted
from carbo.integrations.columns import Column
from carbo.integrations.optuna.claims import claimed_row, claims_same
from carbo.integrations.optuna.evaluations import fixed_params
from carbo.integrations.optuna.memory import Memory, losses
from carbo.numerics.types import Ints
from carbo.optimizer import Optimizer
from carbo.settings import Settings
from carbo.space.row_space import RowSpace, row_key
from carbo.space.space import Params, Space
from carbo.surrogate.surrogate import Belief, Observations


class StudyEngine:
    """Suggests rows of one space for one study.

    exclusive   the space holds all parameters, so that no two trials need the same row. If not, parameters outside the
                space distinguish trials: rows may repeat, and a failure does not rule its row out.
    Only the optimiser's Markov chains outlive a suggestion. All else is in the trials.
    """

    def __init__(self, columns: Mapping[str, Column], space: Space, settings: Settings, exclusive: bool) -> None:
        self.columns, self.space, self.exclusive = dict(columns), space, exclusive
        self.key = space.fingerprint()[:12]
        self._engine = Engine(space.rows, settings if exclusive else replace(settings, replicate=True))
        self._belief, self._repeated = Belief(), False
        self._observations = Observations(np.empty((0, space.dim), dtype=np.intp), np.empty(0))
        self._pending = np.empty((0, space.dim), dtype=np.intp)
        self._rows: dict[int, Ints | None] = {}
        """Rows of finished trials by number; None for a trial outside the space."""
        self.numbers: list[int] = []
        """Numbers of the trials whose values the engine was given last, in that order."""

    def load(self, memory: Memory, direction: StudyDirection) -> None:
        """Take the data from what has been read of the study."""
        for number, each in memory.finished.items():
            if number not in self._rows:
                self._rows[number] = self._row(each.trial.params, self._other_branch(each.trial))
        inside = [each for each in memory.observations() if self._rows[each.number] is not None]
        values, shape = losses(inside, direction, self.exclusive), (-1, self.space.dim)
        rows = np.array([self._rows[each.number] for each in inside], dtype=np.intp).reshape(shape)
        self._observations = Observations(rows, np.array(values, dtype=np.float64))
        pending = {row_key(row): row for trial in memory.unfinished if (row := self.row_under_way(trial)) is not None}
        self._pending = np.array(list(pending.values()), dtype=np.intp).reshape(shape)
        self.numbers = [each.number for each, value in zip(inside, values, strict=True) if not math.isnan(value)]

    def suggest_around(self, seed: Sequence[int], fixed: Mapping[str, Any]) -> tuple[Ints, bool]:
        """The next row at the nearest levels of the fixed parameters, and True; False if it is no new row.

        The constraint is kept if any row with these levels keeps it.
        """
        places = {i: each.position(fixed[name]) for i, (name, each) in enumerate(self.columns.items()) if name in fixed}
        pins = {i: position for i, position in places.items() if position is not None}
        try:
            return self._ask(seed, self._pending, self.space.rows.within(pins)), True
        except SpaceExhausted:
            return self._old_row(np.random.default_rng(seed), pins), False
        except NothingPermitted:
            return self._override(self.suggest(seed), pins), False

    def _old_row(self, rng: np.random.Generator, pins: Mapping[int, int]) -> Ints:
        """A permitted row at these positions, evaluated or under way: the best evaluated one, or a random one."""
        rows, values = self._observations
        usable = np.all(rows[:, list(pins)] == list(pins.values()), axis=1) & np.isfinite(values)
        usable[usable] = self.space.feasible(rows[usable])
        if usable.any():
            return np.asarray(rows[usable][int(np.argmin(values[usable]))])
        return np.asarray(self.space.rows.within(pins).random_rows(rng, 1)[0])

    @staticmethod
    def _override(row: Ints, pins: Mapping[int, int]) -> Ints:
        """The row with these positions in place of its own."""
        out = row.copy()
        out[list(pins)] = list(pins.values())
        return out

    def suggest(self, seed: Sequence[int]) -> Ints:
        """The next row. SpaceExhausted if rows must not repeat and none is left."""
        try:
            return self._ask(seed, self._pending)
        except SpaceExhausted:
            if self.exclusive:
                raise
            return self._ask(seed, self._pending[:0])

    def _ask(self, seed: Sequence[int], pending: Ints, within: RowSpace | None = None) -> Ints:
        repeated = self._repeated and self.exclusive  # elsewhere rows repeat freely
        answer = self._engine.ask(
            np.random.default_rng(seed), self._belief, self._observations, pending, within=within, repeated=repeated
        )
        self._belief, self._repeated = answer.belief, answer.repeated
        return answer.rows[0]

    def repeat(self, seed: Sequence[int]) -> tuple[Ints, bool]:
        """An old row: the best evaluated one that is not under way, and True; if there is none, any row, and False."""
        rows, values = self._observations
        pending = set(map(row_key, self._pending))
        for i in np.argsort(values, kind="stable")[: int(np.isfinite(values).sum())]:
            if row_key(rows[i]) not in pending:
                return np.asarray(rows[i]), True
        return np.asarray(self.space.random_rows(np.random.default_rng(seed), 1)[0]), False

    def optimizer(self) -> Optimizer:
        """An optimiser with the data loaded last. What is done to it does not change later suggestions."""
        optimizer = Optimizer(self.space, seed=0, settings=self._engine.settings)
        optimizer.replace_data(*self._observations, self._pending, self._belief)
        return optimizer

    # ---- rows and parameters

    def params(self, row: Ints) -> Params:
        """The native Python values of a row, all of them inside their distributions."""
        return {name: column.values[i] for (name, column), i in zip(self.columns.items(), row.tolist(), strict=True)}

    def row_under_way(self, trial: FrozenTrial) -> Ints | None:
        """The row that an unfinished trial has or will have, as far as its parameters and its claim tell."""
        return self._row(fixed_params(trial), claimed_row(trial, self.key))

    def is_fixed(self, trial: FrozenTrial) -> bool:
        """Whether all parameters of a trial are fixed, so that it will not give its row up."""
        return self.columns.keys() <= fixed_params(trial).keys()

    def rivals(self, trials: Iterable[FrozenTrial], row: Ints) -> list[FrozenTrial]:
        """Those of the trials that have this row or claim it, and had not finished when data were loaded."""
        return [t for t in trials if t.number not in self._rows and self._has(t, row)]

    def _has(self, trial: FrozenTrial, row: Ints) -> bool:
        own = self._row(trial.params) if trial.state.is_finished() else self.row_under_way(trial)
        return claims_same(trial, self.key, row) if own is None else bool(np.array_equal(own, row))

    def _other_branch(self, trial: FrozenTrial) -> Sequence[int] | None:
        """Random positions for the parameters that a failed trial on another branch of the objective did not ask for.

        Without its failures the model would go on trying a branch that never succeeds. The failure holds for any value
        of the missing parameters, so random ones do. None for other trials, which may just have ended early.
        """
        asked = trial.params.keys()
        if trial.state != TrialState.FAIL or asked <= self.columns.keys() or asked.isdisjoint(self.columns):
            return None
        drawn: list[int] = np.random.default_rng(trial.number).integers(0, self.space.sizes).tolist()
        return drawn

    def _row(self, params: Mapping[str, Any], filling: Sequence[int] | None = None) -> Ints | None:
        """The row of the params, gaps filled from another row. None if a gap is left, or a value outside the space."""
        out = []
        for i, (name, column) in enumerate(self.columns.items()):
            if name in params:
                position = column.position(params[name])
            else:
                position = None if filling is None or len(filling) != len(self.columns) else filling[i]
            if position is None:
                return None
            out.append(position)
        return np.array(out, dtype=np.intp)
