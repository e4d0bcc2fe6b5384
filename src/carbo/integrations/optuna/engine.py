"""carbo's optimiser over one search space of an Optuna study, its data taken from the study's trials."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from carbo.errors import NothingPermitted, SpaceExhausted
from carbo.integrations.columns import Column
from carbo.integrations.optuna.trials import Memory, claimed_row, claims_same, losses, settled
from carbo.numerics.types import Ints
from carbo.optimizer import Optimizer
from carbo.settings import Settings
from carbo.space.rows import row_key
from carbo.space.space import Params, Space
from carbo.space.subspace import Pinned


class Engine:
    """Suggests rows of one space for one study.

    exclusive   the space holds every parameter there is, so that no two trials need the same row. If not, parameters
                outside it tell trials apart: rows may repeat, and a failure does not rule its row out.
    Only the optimiser's chains outlive a suggestion; everything else is in the trials.
    """

    def __init__(self, columns: Mapping[str, Column], space: Space, settings: Settings, exclusive: bool) -> None:
        self.columns, self.space, self.exclusive = dict(columns), space, exclusive
        self.key = space.fingerprint()[:12]
        self._optimizer = Optimizer(space, settings=settings, replicate=None if exclusive else True)
        self._optimizer.repeats_freely = not exclusive
        self._rows: dict[int, Ints | None] = {}  # of finished trials, by number
        self.numbers: list[int] = []
        """Of the trials whose values are loaded, in that order."""

    def load(self, memory: Memory, direction: StudyDirection) -> None:
        """Take the data from what has been read of the study."""
        for number, verdict in memory.verdicts.items():
            if number not in self._rows:
                self._rows[number] = self._row(verdict.trial.params, self._other_branch(verdict.trial))
        used = [v for v in memory.finished() if self._rows[v.trial.number] is not None]
        rows = np.array([self._rows[v.trial.number] for v in used], dtype=np.intp)
        awaited = [row for trial in memory.unfinished if (row := self.row_under_way(trial)) is not None]
        values = losses(used, direction, self.exclusive)
        self._optimizer.replace_data(rows, values, np.array(awaited, dtype=np.intp))
        self.numbers = [v.trial.number for v, value in zip(used, values, strict=True) if not math.isnan(value)]

    def suggest_around(self, seed: Sequence[int], given: Mapping[str, Any]) -> tuple[Ints, bool]:
        """The next row with the nearest levels of the given parameters, and True; False where it comes again.

        The constraint is kept where that can be.
        """
        places = {i: each.position(given[name]) for i, (name, each) in enumerate(self.columns.items()) if name in given}
        pins = {i: position for i, position in places.items() if position is not None}
        self._optimizer.reseed(seed)
        try:
            return self._optimizer._ask_within(pins), True
        except SpaceExhausted:
            return self._again(np.random.default_rng(seed), pins), False
        except NothingPermitted:
            return self.overridden(self.suggest(seed), given), False

    def _again(self, rng: np.random.Generator, pins: Mapping[int, int]) -> Ints:
        """A permitted row with these positions, evaluated or under way: the best evaluated one, or any."""
        points, values = self._optimizer.history()
        rows, columns = self.space.encode_many(points), list(pins)
        there = np.all(rows[:, columns] == list(pins.values()), axis=1) & np.isfinite(values)
        there[there] = self.space.feasible(rows[there])
        if there.any():
            return np.asarray(rows[there][int(np.argmin(values[there]))])
        return np.asarray(Pinned(self.space, pins).random_rows(rng, 1)[0])

    def suggest(self, seed: Sequence[int]) -> Ints:
        """The next row. Raises SpaceExhausted when the space is exclusive and nothing new is left of it."""
        self._optimizer.reseed(seed)
        try:
            params = self._optimizer.ask()
        except SpaceExhausted:
            if self.exclusive:
                raise
            for awaited in self._optimizer.pending:
                self._optimizer.forget(awaited)
            params = self._optimizer.ask()
        return self.space.encode(params)

    def repeat(self, seed: Sequence[int]) -> tuple[Ints, bool]:
        """A row to give again, the best evaluated one that is not under way, and True; or any one, and False."""
        points, values = self._optimizer.history()
        pending = {row_key(self.space.encode(p)) for p in self._optimizer.pending}
        for i in np.argsort(values, kind="stable")[: int(np.isfinite(values).sum())]:
            row = self.space.encode(points[i])
            if row_key(row) not in pending:
                return row, True
        return np.asarray(self.space.random_rows(np.random.default_rng(seed), 1)[0]), False

    def view(self) -> Optimizer:
        """The optimiser with the data loaded last, apart from the one that suggests."""
        view = copy.copy(self._optimizer)
        view.reseed(0)
        return view

    # ---- rows and parameters

    def params(self, row: Ints) -> Params:
        """The native Python values of a row, all of them inside their distributions."""
        return {name: column.values[i] for (name, column), i in zip(self.columns.items(), row.tolist(), strict=True)}

    def overridden(self, row: Ints, given: Mapping[str, Any]) -> Ints:
        """The row with the given parameters' nearest levels in the place of its own."""
        out = row.copy()
        for i, (name, column) in enumerate(self.columns.items()):
            position = column.position(given[name]) if name in given else None
            out[i] = row[i] if position is None else position
        return out

    def row_under_way(self, trial: FrozenTrial) -> Ints | None:
        """Where an unfinished trial stands or will stand, as far as its parameters and its claim tell."""
        return self._row(settled(trial), claimed_row(trial, self.key))

    def settled(self, trial: FrozenTrial) -> bool:
        """Whether all of the parameters are what they are, so that the trial will not give its row up."""
        return self.columns.keys() <= settled(trial).keys()

    def rivals(self, trials: Iterable[FrozenTrial], row: Ints) -> list[FrozenTrial]:
        """Those of the trials that hold this row, or claim it, and were not yet known to when data were loaded."""
        return [t for t in trials if t.number not in self._rows and self._holds(t, row)]

    def _holds(self, trial: FrozenTrial, row: Ints) -> bool:
        held = self._row(trial.params) if trial.state.is_finished() else self.row_under_way(trial)
        return claims_same(trial, self.key, row) if held is None else bool(np.array_equal(held, row))

    def _other_branch(self, trial: FrozenTrial) -> Sequence[int] | None:
        """Positions, drawn at random, for what a failed trial on another branch of the objective did not ask for.

        That branch may never have succeeded: without its failures the model would go on trying it. They hold whatever
        the parameters that the trial did without. None for other trials, which may just have ended early.
        """
        asked = trial.params.keys()
        if trial.state != TrialState.FAIL or asked <= self.columns.keys() or asked.isdisjoint(self.columns):
            return None
        drawn: list[int] = np.random.default_rng(trial.number).integers(0, self.space.sizes).tolist()
        return drawn

    def _row(self, params: Mapping[str, Any], filling: Sequence[int] | None = None) -> Ints | None:
        """The row of the params, gaps filled from another row; None when a gap or a foreign value remains."""
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
