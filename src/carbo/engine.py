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
        replicate, rows = self.settings.replicate, list[Ints]()
        batch = _Batch(self.settings, rng, observations, pending, within or self.space, whole=within is None)
        with limit_threads(len(observations.values), self.settings.threads):
            for _ in range(n):
                if batch.needs_model:
                    belief, posterior = self.surrogate.advance(rng, belief, observations)
                    batch.take_model(posterior)
                try:
                    row = batch.next_row(again=replicate and not repeated)
                except SpaceExhausted:
                    if not rows:
                        raise
                    break
                repeated = replicate and row_key(row) in batch.evaluated
                rows.append(row)
        return Suggestions(rows, belief, repeated)

    def draw_posterior(self, rng: np.random.Generator, belief: Belief, observations: Observations) -> Posterior:
        """The objective's model after one more draw; nothing is suggested."""
        with limit_threads(len(observations.values), self.settings.threads):
            return self.surrogate.advance(rng, belief, observations, failures=False)[1]


class _Batch:
    """The rows of one call of `ask`: the models are drawn once. Pending rows get values drawn from the posterior.

    whole: whether `space` is the whole space, and not a part of it
    """

    def __init__(
        self,
        settings: Settings,
        rng: np.random.Generator,
        observations: Observations,
        pending: Ints,
        space: RowSpace,
        whole: bool,
    ) -> None:
        self._settings, self._rng, self._space, self._whole = settings, rng, space, whole
        self._observations, self._pending = observations, list(pending)
        self._keys, self._succeeded = row_keys(observations.X), observations.succeeded
        self.evaluated = set(self._keys)
        self._posterior: Posterior | None = None

    @property
    def _begins(self) -> bool:
        """Whether the next row is random: too few rows are out, or none has succeeded."""
        return len(self._keys) + len(self._pending) < self._settings.initial or not self._succeeded.any()

    @property
    def needs_model(self) -> bool:
        return self._posterior is None and not self._begins

    def take_model(self, posterior: Posterior) -> None:
        self._posterior = posterior
        self._stall = Stall(self._space, self._settings, self._observations, posterior)

    def next_row(self, again: bool) -> Ints:
        """The next row, pending from now on: never a pending or failed row, and an evaluated row only if `again`.

        If no other row is left, an evaluated row comes again, provided that `settings.replicate` is True.
        """
        told = zip(self._keys, self._succeeded, strict=True)
        excluded = {key for key, ok in told if not (ok and again)} | {row_key(row) for row in self._pending}
        try:
            if self._begins:
                row = unseen_row(self._rng, self._space, excluded)
            else:
                row = propose(self._rng, self._request(excluded))
        except SpaceExhausted:
            if again or not self._settings.replicate:
                raise
            return self.next_row(again=True)
        self._pending.append(row)
        return row

    def _request(self, excluded: Set[bytes]) -> Request:
        """The request for the next row."""
        assert self._posterior is not None
        model, view, failures = self._posterior
        if self._pending:
            model = model.extend(self._rng, np.array(self._pending))
        incumbent = self._space.project(view.best)
        penalty = None if failures is None else failures.log_success
        override = self._stall.override(len(self._pending)) if self._whole else None
        return Request(self._space, self._settings, model, excluded, incumbent, penalty, override)
