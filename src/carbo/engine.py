"""The engine suggests rows. It has no state: data and a belief come in, rows and the next belief go out.

Notation
    d       number of variables
    rows    (d,) each; pending rows (m, d)
"""

from __future__ import annotations

from collections.abc import Set
from typing import NamedTuple

import numpy as np

from carbo.acquisition.policy import Request, propose
from carbo.acquisition.stall import Stall
from carbo.acquisition.starts import unseen_row
from carbo.errors import SpaceExhausted
from carbo.numerics.threads import limit_threads
from carbo.numerics.types import Ints
from carbo.settings import Settings
from carbo.space.row_space import RowSpace, row_key, row_keys
from carbo.surrogate.surrogate import Belief, Observations, Posterior, Surrogate


class Suggestions(NamedTuple):
    """Rows to evaluate, the next belief, and whether the last row was evaluated before."""

    rows: list[Ints]
    belief: Belief
    repeated: bool


class Engine:
    """Suggests rows of a space. `surrogate` replaces the surrogate of the settings."""

    def __init__(self, space: RowSpace, settings: Settings, surrogate: Surrogate | None = None) -> None:
        self.space, self.settings = space, settings
        self.surrogate = Surrogate(space, settings) if surrogate is None else surrogate

    def ask(  # noqa: PLR0913
        self,
        rng: np.random.Generator,
        belief: Belief,
        observations: Observations,
        pending: Ints,
        n: int = 1,
        *,
        within: RowSpace | None = None,
        repeated: bool = False,
    ) -> Suggestions:
        """The next n rows; fewer if fewer are left. Raises SpaceExhausted if none is left.

        within      a subspace; all suggested rows lie in it
        repeated    whether the last suggestion repeated an evaluated row. With `settings.replicate` at most every
                    second suggestion may: a model that expects nothing better elsewhere would repeat one row for ever
        """
        asking = _Asking(self, rng, belief, observations, pending, within or self.space)
        with limit_threads(len(observations.values), self.settings.threads):
            asking.extend(n, repeated)
        return Suggestions(asking.rows, asking.belief, asking.repeated)

    def draw_posterior(self, rng: np.random.Generator, belief: Belief, observations: Observations) -> Posterior:
        """The objective's model after one more draw; nothing is suggested."""
        with limit_threads(len(observations.values), self.settings.threads):
            return self.surrogate.fit(rng, belief, observations)[1]


class _Asking:
    """One call of `ask`: the models are drawn once. Pending rows get values drawn from the posterior."""

    def __init__(
        self,
        engine: Engine,
        rng: np.random.Generator,
        belief: Belief,
        observations: Observations,
        pending: Ints,
        space: RowSpace,
    ) -> None:
        self._engine, self._rng, self._space = engine, rng, space
        self._observations, self._pending = observations, list(pending)
        self._keys, self._succeeded = row_keys(observations.X), observations.succeeded
        self._posterior: Posterior | None = None
        self.belief, self.rows, self.repeated = belief, list[Ints](), False

    def extend(self, n: int, repeated: bool) -> None:
        replicate, evaluated, self.repeated = self._engine.settings.replicate, set(self._keys), repeated
        for _ in range(n):
            try:
                row = self._row(again=replicate and not self.repeated)
            except SpaceExhausted:
                if not self.rows:
                    raise
                return
            self.repeated = replicate and row_key(row) in evaluated
            self._pending.append(row)
            self.rows.append(row)

    def _row(self, again: bool) -> Ints:
        """The next row: never a pending or failed row, and an evaluated row only if `again`.

        If no other row is left, an evaluated row comes again, provided that `settings.replicate` is True.
        """
        told = zip(self._keys, self._succeeded, strict=True)
        excluded = {key for key, ok in told if not (ok and again)} | {row_key(row) for row in self._pending}
        few = len(self._keys) + len(self._pending) < self._engine.settings.initial or not self._succeeded.any()
        try:
            return unseen_row(self._rng, self._space, excluded) if few else propose(self._rng, self._request(excluded))
        except SpaceExhausted:
            if again or not self._engine.settings.replicate:
                raise
        return self._row(again=True)

    def _request(self, excluded: Set[bytes]) -> Request:
        """The request for the next row. The models are drawn at the first call."""
        if self._posterior is None:
            self.belief, self._posterior = self._engine.surrogate.advance(self._rng, self.belief, self._observations)
            self._stall = Stall(self._space, self._engine.settings, self._observations, self._posterior)
        model, failures, data = self._posterior.model, self._posterior.failures, self._posterior.view.data
        if self._pending:
            model = model.extend(self._rng, np.array(self._pending))
        incumbent = self._space.project(data.X[int(np.argmin(data.y))])
        penalty = None if failures is None else failures.log_success
        override = self._stall.override(len(self._pending)) if self._space is self._engine.space else None
        return Request(self._space, self._engine.settings, model, excluded, incumbent, penalty, override)
