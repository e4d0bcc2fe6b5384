"""The ask-and-tell optimiser: the engine with params as dicts, checks, a queue of initial points, and JSON.

Notation
    rows    (n, d) evaluated rows in the order they were told; values (n,) as told, NaN for a failed evaluation
"""

from __future__ import annotations

import math
import numbers
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self, overload

import numpy as np
from numpy.typing import ArrayLike

from carbo.checks import as_list, as_value, generator, resolve
from carbo.engine import Engine
from carbo.errors import DataError, SettingsError, SpaceExhausted, StateError
from carbo.numerics.types import Floats, Ints
from carbo.settings import Settings
from carbo.space.row_space import row_key
from carbo.space.space import Params, Space
from carbo.state import belief_from, belief_state, generator_from, generator_state, rows_from
from carbo.surrogate.relevance import Relevance, measure_relevance
from carbo.surrogate.surrogate import Belief, Observations, Posterior

STATE_VERSION = 5
"""The format of `Optimizer.state`. Other versions are refused."""


class Snapshot(NamedTuple):
    """The data and the belief at one moment. `generator`: state of the random generator after the last suggestion."""

    observations: Observations
    belief: Belief
    generator: Mapping[str, Any]


class Best(NamedTuple):
    """A point and its value."""

    params: Params
    value: float


class Optimizer:
    """Bayesian optimisation of a function of discrete variables, by `ask` and `tell`. The optimiser minimises.

    space       the search space
    seed        a whole number; the same seed and the same data give the same suggestions. None: different each time
    preset      "default" (the best settings we know) or "paper" (COMBO as published)
    settings    a `carbo.Settings`, or a dict of the settings that differ from the preset
    initial     points to suggest first. Random points follow, until `settings.initial` points have been suggested
    replicate   if True, at most every second suggestion may repeat an evaluated point: for noisy functions. If False,
                none may. None: as in the settings

    An optimiser may be used by several threads at once.
    """

    def __init__(
        self,
        space: Space,
        *,
        seed: int | None = None,
        preset: str = "default",
        settings: Settings | Mapping[str, Any] | None = None,
        initial: Iterable[Mapping[str, Any]] = (),
        replicate: bool | None = None,
    ) -> None:
        if not isinstance(space, Space):
            raise DataError(f"space: expected a carbo.Space, got {type(space).__name__}; wrap the variables in a Space")
        self.space = space
        self.settings = resolve(preset, settings, replicate)
        self._engine = Engine(space.rows, self.settings)
        self._rng = generator(seed)
        self._pending: dict[bytes, Ints] = {}
        self._repeated = False  # whether the last suggestion repeated an evaluated point
        self._queue = self._initial(initial)
        self._lock = threading.RLock()  # for methods that change the optimiser; readers take one snapshot
        none = Observations(np.empty((0, space.dim), dtype=np.intp), np.empty(0))
        self._now = Snapshot(none, Belief(), self._rng.bit_generator.state)
        self._cache: tuple[Snapshot, Posterior] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in vars(self).items() if key != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._lock = threading.RLock()

    def _initial(self, points: Iterable[Mapping[str, Any]]) -> list[Ints]:
        if isinstance(points, Mapping) or not isinstance(points, Iterable):
            raise DataError(f"initial: expected a list of points, each a dict, got {points!r}")
        rows = list(self.space.encode_many(points))
        for row, feasible in zip(rows, self.space.feasible(np.array(rows)), strict=True):
            if not feasible:
                raise DataError(
                    f"initial: expected points that the constraint permits, got {self.space.decode(row)}; leave it out"
                )
        return rows

    # Data

    def __len__(self) -> int:
        """The number of told values."""
        return len(self._now.observations.values)

    @property
    def observations(self) -> Observations:
        """Evaluated rows X (n, d) and values (n,) in the order they were told; NaN for a failed evaluation."""
        return self._now.observations

    @property
    def pending(self) -> list[Params]:
        """Suggested points whose values have not been told yet."""
        return [self.space.decode(row) for row in list(self._pending.values())]

    @property
    def best(self) -> Best | None:
        """The point with the smallest told value, and this value; None if no evaluation has succeeded."""
        X, values = self._now.observations
        if not np.isfinite(values).any():
            return None
        i = int(np.nanargmin(values))
        return Best(self.space.decode(X[i]), float(values[i]))

    def history(self) -> tuple[list[Params], Floats]:
        """Points and values in the order they were told; NaN for a failed evaluation."""
        X, values = self._now.observations
        return self.space.decode_many(X), values.copy()

    # Ask and tell

    @overload
    def ask(self) -> Params: ...
    @overload
    def ask(self, n: int) -> list[Params]: ...
    def ask(self, n: int | None = None) -> Params | list[Params]:
        """The next point to evaluate, or a list of n different points. A point is pending until its value is told.

        Raises SpaceExhausted if no point is left. If fewer than n are left, the list has fewer points.
        """
        if n is None:
            return self.space.decode(self._suggest(1)[0])
        if isinstance(n, bool) or not isinstance(n, numbers.Integral) or n < 1:
            raise DataError(f"ask(n): expected a whole number >= 1, got {n!r}; ask() without n gives a single point")
        return [self.space.decode(row) for row in self._suggest(int(n))]

    def _suggest(self, n: int) -> list[Ints]:
        """The next rows: initial points first, then rows of the engine. After an error nothing has changed."""
        with self._lock:
            rows, queue = self._next_initial(n)
            observations, belief, repeated = self._now.observations, self._now.belief, self._repeated
            if rows:
                repeated = self.settings.replicate and row_key(rows[-1]) in set(map(row_key, observations.X))
            if len(rows) < n:
                pending = np.array([*self._pending.values(), *rows], dtype=np.intp).reshape(-1, self.space.dim)
                try:
                    answer = self._engine.ask(
                        self._rng, belief, observations, pending, n - len(rows), repeated=repeated
                    )
                except SpaceExhausted:
                    if not rows:
                        raise
                else:
                    rows, belief, repeated = rows + answer.rows, answer.belief, answer.repeated
            self._queue, self._repeated = queue, repeated
            self._pending = {**self._pending, **{row_key(row): row for row in rows}}
            self._now = Snapshot(observations, belief, self._rng.bit_generator.state)
            return rows

    def _next_initial(self, n: int) -> tuple[list[Ints], list[Ints]]:
        """The next initial points, at most n, that are neither pending nor evaluated; and the rest of the queue."""
        if not self._queue:
            return [], []
        X, values = self._now.observations
        told = zip(X, np.isfinite(values), strict=True)
        excluded = {row_key(row) for row, ok in told if not (ok and self.settings.replicate)} | self._pending.keys()
        rows, queue = list[Ints](), list(self._queue)
        while queue and len(rows) < n:
            row = queue.pop(0)
            if row_key(row) not in excluded:
                excluded.add(row_key(row))
                rows.append(row)
        return rows, queue

    def tell(self, params: Mapping[str, Any] | Sequence[Mapping[str, Any]], value: Any) -> None:
        """Record the value of a point, or a list of values for a list of points.

        The points need not have been suggested. A value None, NaN or infinity is a failed evaluation: the point will
        not be suggested again, and the model learns where evaluations fail. If tell raises DataError or SpaceError,
        nothing has been recorded.
        """
        if isinstance(params, Mapping):
            points, values = [params], [value]
        else:
            points, values = as_list("points", params), as_list("values", value)
            if len(points) != len(values):
                raise DataError(f"tell: expected as many values as points, got {len(values)} and {len(points)}")
        rows = [self.space.encode(p) for p in points]
        numbers_ = [as_value(v) for v in values]
        if not rows:
            return
        with self._lock:
            X, told = self._now.observations
            keys = set(map(row_key, rows))
            self._pending = {key: row for key, row in self._pending.items() if key not in keys}
            observations = Observations(np.concatenate([X, np.array(rows)]), np.append(told, numbers_))
            self._now = self._now._replace(observations=observations)

    def forget(self, params: Mapping[str, Any]) -> None:
        """Drop a pending point whose value will never be told. The point may be suggested again."""
        key = row_key(self.space.encode(params))
        with self._lock:
            self._pending = {k: row for k, row in self._pending.items() if k != key}

    def replace_data(
        self, rows: ArrayLike, values: Iterable[Any], pending: ArrayLike = (), belief: Belief | None = None
    ) -> None:
        """Replace all data by evaluated rows (n, d), their n values as for `tell`, and pending rows (m, d).

        For programs that keep the data elsewhere, for example in a study that several processes share. The random
        generator and the queue of initial points stay, and also the belief, unless `belief` is given. If replace_data
        raises DataError or SpaceError, nothing has changed.
        """
        evaluated, awaited = self.space.rows.check(rows), self.space.rows.check(pending)
        numbers_ = [as_value(v) for v in values]
        if len(evaluated) != len(numbers_):
            raise DataError(f"data: expected as many values as rows, got {len(numbers_)} and {len(evaluated)}")
        with self._lock:
            self._pending = {row_key(row): row for row in awaited.copy()}
            observations = Observations(evaluated.copy(), np.array(numbers_, dtype=np.float64))
            self._now = self._now._replace(observations=observations, belief=belief or self._now.belief)

    # The model

    def _draw_posterior(self) -> Posterior:
        """The model of the current data. The belief and the generator do not change."""
        now, cached = self._now, self._cache
        if cached is not None and cached[0] is now:
            return cached[1]
        if not now.observations.succeeded.any():
            raise DataError("the model: expected at least one successful evaluation, got none; tell some values first")
        rng = np.random.default_rng(0)
        rng.bit_generator.state = now.generator
        posterior = self._engine.draw_posterior(rng, now.belief, now.observations)
        self._cache = now, posterior
        return posterior

    @overload
    def predict(self, params: Mapping[str, Any]) -> tuple[float, float]: ...
    @overload
    def predict(self, params: Sequence[Mapping[str, Any]]) -> tuple[Floats, Floats]: ...
    def predict(
        self, params: Mapping[str, Any] | Sequence[Mapping[str, Any]]
    ) -> tuple[float, float] | tuple[Floats, Floats]:
        """Predicted mean and standard deviation of the function at a point, or arrays of both for a list of points.

        The standard deviation is that of the function without noise. Raises DataError if no evaluation has succeeded.
        """
        single = isinstance(params, Mapping)
        rows = self.space.encode_many([params] if isinstance(params, Mapping) else params)
        means, stds = self._draw_posterior().predict(rows)
        return (float(means[0]), float(stds[0])) if single else (means, stds)

    def recommend(self) -> Best:
        """The evaluated point with the smallest predicted mean, and this mean.

        For noisy functions: there, `best` has the luckiest noise. Raises DataError if no evaluation has succeeded.
        """
        observations = self._now.observations
        tried = observations.X[observations.succeeded]
        if not len(tried):
            raise DataError("recommend: expected at least one successful evaluation, got none; tell some values first")
        points = self.space.decode_many(np.unique(tried, axis=0))
        means, _ = self.predict(points)
        return Best(points[int(np.argmin(means))], float(means.min()))

    def leave_one_out(self) -> tuple[Floats, Floats]:
        """Predictions of each told value from all other values: a check of how well the model predicts.

        Returns means and standard deviations (with noise) as two arrays, one entry for each successful evaluation in
        the order they were told. An entry is NaN if the model leaves the value out, because there are more values than
        `settings.predict_from`. The model's parameters are not learned again for each value.
        """
        return self._draw_posterior().leave_one_out()

    def relevance(self) -> Relevance:
        """How much each variable and each order of interaction matters to the function, according to the model."""
        posterior = self._draw_posterior()
        return measure_relevance(np.random.default_rng(0), posterior.model, self.space.rows, posterior.view.scale.value)

    # Saving

    def state(self) -> dict[str, Any]:
        """The whole optimiser as JSON values. `from_state` restores it, with the same next suggestions."""
        with self._lock:
            return self._state()

    def _state(self) -> dict[str, Any]:
        X, values = self._now.observations
        return {
            "version": STATE_VERSION,
            "space": self.space.fingerprint(),
            "settings": self.settings.to_dict(),
            "generator": generator_state(self._rng),
            "rows": X.tolist(),
            "values": [v if math.isfinite(v) else None for v in values.tolist()],
            "pending": [row.tolist() for row in self._pending.values()],
            "queue": [row.tolist() for row in self._queue],
            "repeated": self._repeated,
            **belief_state(self._now.belief),
        }

    @classmethod
    def from_state(cls, space: Space, state: Mapping[str, Any], settings: Settings | None = None) -> Self:
        """The optimiser that `state` saved.

        space       the same space as before, with the same constraint
        settings    only needed if the acquisition is a function, because functions cannot be saved
        """
        if not isinstance(space, Space):
            raise DataError(f"space: expected a carbo.Space, got {type(space).__name__}; the space comes first")
        if not isinstance(state, Mapping) or state.get("version") != STATE_VERSION:
            version = state.get("version") if isinstance(state, Mapping) else type(state).__name__
            raise StateError(
                f"state: expected version {STATE_VERSION}, got {version!r}; was it saved by this version of carbo?"
            )
        if state.get("space") != space.fingerprint():
            raise StateError("state: expected a state of this space, got the state of another; "
                             "build the space with the same variables in the same order")  # fmt: skip
        try:
            restored = cls(space, settings=settings or Settings.from_saved(state["settings"]))
            restored._restore(state)
        except SettingsError as error:
            raise StateError(f"state: {error}") from error
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise StateError(
                f"state: expected what Optimizer.state() returns, got a damaged state ({error})"
            ) from error
        return restored

    def _restore(self, state: Mapping[str, Any]) -> None:
        rows = np.array(rows_from(self.space, state["rows"]), dtype=np.intp).reshape(-1, self.space.dim)
        values = np.array([math.nan if v is None else float(v) for v in state["values"]], dtype=np.float64)
        if len(rows) != len(values):
            raise ValueError(f"{len(rows)} rows and {len(values)} values")
        self._rng.bit_generator.state = generator_from(state["generator"])
        self._pending = {row_key(r): r for r in rows_from(self.space, state["pending"])}
        self._queue = rows_from(self.space, state["queue"])
        self._repeated = bool(state["repeated"])
        belief = belief_from(state, self._engine.surrogate)
        self._now = Snapshot(Observations(rows, values), belief, self._rng.bit_generator.state)
