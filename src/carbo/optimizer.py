"""The ask-and-tell optimiser. The only stateful class: data, pending rows, chains and a random generator.

Notation
    rows    (n, d) evaluated rows in the order told; values (n,) as told, NaN where the evaluation failed
"""

from __future__ import annotations

import copy
import math
import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple, Self, overload

import numpy as np
from numpy.typing import ArrayLike

from carbo.acquisition.policy import Question, propose, unseen
from carbo.acquisition.stall import CYCLE, RATE, Turn, expected, last_improvement
from carbo.checks import as_value, generator, listed, resolve
from carbo.errors import DataError, SettingsError, SpaceExhausted, StateError
from carbo.numerics.threads import limited
from carbo.numerics.types import Floats, Ints
from carbo.settings import Settings
from carbo.space.rows import row_key, row_keys
from carbo.space.space import Params, Space
from carbo.space.subspace import Pinned
from carbo.state import generator_from, generator_state, restore, rows_from, saved
from carbo.surrogate import ensemble as ens
from carbo.surrogate.relevance import Relevance, influence
from carbo.surrogate.surrogate import Beliefs, Failures, Told, View

STATE_VERSION = 5


class Best(NamedTuple):
    """The best evaluation so far."""

    params: Params
    value: float


class Optimizer:
    """Bayesian optimisation of a function of discrete variables, one suggestion at a time; it minimises.

    space       what may be suggested
    seed        same seed, same data, same suggestions
    preset      "default" (the best we know) or "paper" (COMBO as published)
    settings    a whole `Settings`, or a mapping of some of its fields to change in the preset
    initial     points to suggest first; random ones follow until `settings.initial` points are out
    replicate   may an evaluated point be suggested again, every other time at most? Overrides the setting
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
            raise DataError(f"space: expected a carbo.Space, got {type(space).__name__}; wrap the variables in one")
        self.space = space
        self.settings = resolve(preset, settings, replicate)
        self._rng = generator(seed)
        self._rows: list[Ints] = []
        self._values: list[float] = []
        self._pending: dict[bytes, Ints] = {}
        self._repeated = False  # whether the last point suggested had been evaluated before
        self.repeats_freely = False  # with `replicate`: any number of times running, not every other time at most
        self._queue = self._initial(initial)
        self._view: tuple[tuple[int, int], ens.Ensemble, View] | None = None
        self._beliefs = Beliefs(space, self.settings)

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

    # What has been seen

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def pending(self) -> list[Params]:
        """Points asked for and not yet told."""
        return [self.space.decode(row) for row in self._pending.values()]

    @property
    def best(self) -> Best | None:
        """The smallest value told and where; None while nothing has succeeded."""
        values = np.array(self._values)
        if not np.isfinite(values).any():
            return None
        i = int(np.nanargmin(values))
        return Best(self.space.decode(self._rows[i]), float(values[i]))

    def history(self) -> tuple[list[Params], Floats]:
        """Points and values in the order told; NaN where the evaluation failed."""
        return [self.space.decode(row) for row in self._rows], np.array(self._values, dtype=np.float64)

    # Ask and tell

    @overload
    def ask(self) -> Params: ...
    @overload
    def ask(self, n: int) -> list[Params]: ...
    def ask(self, n: int | None = None) -> Params | list[Params]:
        """The next point to evaluate, or a list of n different ones. They are pending until told.

        Raises SpaceExhausted when not even one is left; a list may be shorter than n only for that reason.
        """
        if n is None:
            return self.space.decode(self._suggest(1)[0])
        if isinstance(n, bool) or not isinstance(n, numbers.Integral) or n < 1:
            raise DataError(f"ask(n): expected a whole number >= 1, got {n!r}; ask() without n gives a single point")
        return [self.space.decode(row) for row in self._suggest(int(n))]

    def _ask_within(self, positions: Mapping[int, int]) -> Ints:
        """The next row among those with these positions by column; initial points aside. It is pending then.

        Raises NothingPermitted, or SpaceExhausted when none is left.
        """
        return self._suggest(1, Pinned(self.space, positions))[0]

    def _suggest(self, n: int, within: Space | None = None) -> list[Ints]:
        pending, queue, repeated = dict(self._pending), list(self._queue), self._repeated
        try:
            with limited(len(self._rows), self.settings.threads):
                return self._suggest_rows(n, within or self.space)
        except BaseException:
            self._pending, self._queue, self._repeated = pending, queue, repeated
            raise

    def _suggest_rows(self, n: int, space: Space) -> list[Ints]:
        rows: list[Ints] = []
        asker: _Asker | None = None
        for _ in range(n):
            try:
                if space is self.space and (queued := self._next_queued()) is not None:
                    row = queued
                elif len(self._rows) + len(self._pending) < self.settings.initial or not self._succeeded.any():
                    row = self._permitted(partial(unseen, self._rng, space))
                else:
                    asker = asker or self._asker(space)
                    row = self._permitted(asker.next)
            except SpaceExhausted:
                if not rows:
                    raise
                break
            self._repeated = self.settings.replicate and row_key(row) in set(map(row_key, self._rows))
            self._pending[row_key(row)] = row
            rows.append(row)
        return rows

    def _permitted(self, name: Callable[[set[bytes]], Ints]) -> Ints:
        """What `name` gives, told what is excluded; where no other row is left, a replicate, if these are wanted."""
        try:
            return name(self._excluded())
        except SpaceExhausted:
            if not self.settings.replicate:
                raise
            return name(self._excluded(again=True))

    def _next_queued(self) -> Ints | None:
        """The next initial point that is not excluded by now."""
        while self._queue:
            row = self._queue.pop(0)
            if row_key(row) not in self._excluded(again=self.settings.replicate):
                return row
        return None

    def tell(self, params: Mapping[str, Any] | Sequence[Mapping[str, Any]], value: Any) -> None:
        """Record one value, or a list of values for a list of points. Points need not have been asked for.

        None, NaN and infinities are failed evaluations: never suggested again, and the model learns to stay away.
        Raises DataError or SpaceError, and then records nothing.
        """
        if isinstance(params, Mapping):
            points, values = [params], [value]
        else:
            points, values = listed("points", params), listed("values", value)
            if len(points) != len(values):
                raise DataError(f"tell: expected as many values as points, got {len(values)} and {len(points)}")
        rows = [self.space.encode(p) for p in points]
        numbers_ = [as_value(v) for v in values]
        for row, number in zip(rows, numbers_, strict=True):
            self._rows.append(row)
            self._values.append(number)
            self._pending.pop(row_key(row), None)

    def forget(self, params: Mapping[str, Any]) -> None:
        """Drop a pending point that will never be told; it may be suggested again."""
        self._pending.pop(row_key(self.space.encode(params)), None)

    def replace_data(self, rows: ArrayLike, values: Iterable[Any], pending: ArrayLike = ()) -> None:
        """Take the evaluated rows (n, d), their n values as for `tell`, and the pending rows (m, d) for all there is.

        For data that live elsewhere, as in a study that several processes share. The generator, the chains and the
        initial points stay. Raises DataError or SpaceError, and then changes nothing.
        """
        evaluated, awaited = self.space._checked(rows), self.space._checked(pending)
        numbers_ = [as_value(v) for v in values]
        if len(evaluated) != len(numbers_):
            raise DataError(f"data: expected as many values as rows, got {len(numbers_)} and {len(evaluated)}")
        self._rows, self._values = list(evaluated.copy()), numbers_
        self._pending = {row_key(row): row for row in awaited.copy()}
        self._view = None

    def reseed(self, seed: int | Sequence[int]) -> None:
        """Go on with the generator of this seed, a whole number >= 0 or several of them."""
        self._rng = np.random.default_rng(seed)
        self._view = None

    # The model

    @property
    def _told(self) -> Told:
        rows = np.array(self._rows, dtype=np.intp).reshape(-1, self.space.dim)
        return Told(rows, np.array(self._values, dtype=np.float64))

    @property
    def _succeeded(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        return np.isfinite(np.array(self._values, dtype=np.float64))

    def _excluded(self, again: bool | None = None) -> set[bytes]:
        """Rows not to suggest: pending, failed, and evaluated, unless these may be evaluated again.

        With `replicate` they may every other time: a model that expects nothing better elsewhere would do nothing else.
        """
        if again is None:
            again = self.settings.replicate and (self.repeats_freely or not self._repeated)
        told = zip(self._rows, self._succeeded, strict=True)
        return {row_key(row) for row, ok in told if not (ok and again)} | self._pending.keys()

    def _asker(self, space: Space | None = None) -> _Asker:
        """Advances the chains by one draw and returns what can name rows (of a space within), any number of them."""
        told = self._told
        model, view = self._beliefs.advance(self._rng, told)
        return _Asker(self, space or self.space, model, view, self._beliefs.failures(self._rng, told))

    def _look(self) -> tuple[ens.Ensemble, View]:
        """The model as it stands, without moving the chain or the generator."""
        if not self._succeeded.any():
            raise DataError("the model: expected at least one successful evaluation, got none; tell some values first")
        key = len(self._rows), self._rng.bit_generator.state["state"]["state"]
        if self._view is not None and self._view[0] == key:
            return self._view[1], self._view[2]
        rng = copy.deepcopy(self._rng)
        with limited(len(self._rows), self.settings.threads):
            view = self._beliefs.view(self._told)
            _, model = self._beliefs.fit(rng, view)
        self._view = key, model, view
        return model, view

    @overload
    def predict(self, params: Mapping[str, Any]) -> tuple[float, float]: ...
    @overload
    def predict(self, params: Sequence[Mapping[str, Any]]) -> tuple[Floats, Floats]: ...
    def predict(
        self, params: Mapping[str, Any] | Sequence[Mapping[str, Any]]
    ) -> tuple[float, float] | tuple[Floats, Floats]:
        """Posterior mean and standard deviation of the function (noise left out), averaged over the samples."""
        single = isinstance(params, Mapping)
        rows = self.space.encode_many([params] if isinstance(params, Mapping) else params)
        model, view = self._look()
        means, stds = view.scale.back(*model.predict(rows))
        return (float(means[0]), float(stds[0])) if single else (means, stds)

    def recommend(self) -> Best:
        """The evaluated point with the smallest posterior mean, and that mean.

        For noisy functions, where `best` is the luckiest draw. Raises DataError while nothing has succeeded.
        """
        tried = np.array(self._rows)[self._succeeded]
        if not len(tried):
            raise DataError("recommend: expected at least one successful evaluation, got none; tell some values first")
        points = self.space.decode_many(np.unique(tried, axis=0))
        means, _ = self.predict(points)
        return Best(points[int(np.argmin(means))], float(means.min()))

    def leave_one_out(self) -> tuple[Floats, Floats]:
        """Mean and standard deviation of each value given all others, noise included, averaged over the samples.

        In the order told, failures left out; NaN for values that predictions are not made from, which there are when
        observations are very many. The hyperparameters are those of all values.
        """
        model, view = self._look()
        told = np.argsort(ens.telling(view.given.predict))
        mean, variance = model.left_out()
        means, sds = (np.full(len(view.data.y), np.nan) for _ in range(2))
        means[view.share.predict], sds[view.share.predict] = view.scale.back(mean[:, told], np.sqrt(variance[:, told]))
        return means, sds

    def relevance(self) -> Relevance:
        """Each variable's influence on the function as the posterior sees it, and of each order of interaction."""
        model, view = self._look()
        return influence(np.random.default_rng(0), model, self.space, view.scale.value)

    # Saving

    def state(self) -> dict[str, Any]:
        """Everything, as JSON values; `from_state` gives an optimiser with the same next suggestions."""
        return {
            "version": STATE_VERSION,
            "space": self.space.fingerprint(),
            "settings": self.settings.to_dict(),
            "generator": generator_state(self._rng),
            "rows": [row.tolist() for row in self._rows],
            "values": [v if math.isfinite(v) else None for v in self._values],
            "pending": [row.tolist() for row in self._pending.values()],
            "queue": [row.tolist() for row in self._queue],
            "repeated": self._repeated,
            **saved(self._beliefs),
        }

    @classmethod
    def from_state(cls, space: Space, state: Mapping[str, Any], settings: Settings | None = None) -> Self:
        """Restore what `state` saved, over the same space (a constraint is code and is given again with it).

        settings    only needed where they hold a function, which cannot be saved
        """
        if not isinstance(space, Space):
            raise DataError(f"space: expected a carbo.Space, got {type(space).__name__}; the space comes first")
        if not isinstance(state, Mapping) or state.get("version") != STATE_VERSION:
            version = state.get("version") if isinstance(state, Mapping) else type(state).__name__
            raise StateError(f"state: expected version {STATE_VERSION}, got {version!r}; was it saved by this carbo?")
        if state.get("space") != space.fingerprint():
            raise StateError("state: expected one saved over this space, got another's; "
                             "build the space with the same variables in the same order")  # fmt: skip
        try:
            # states saved before there was doubt go on without it
            restored = cls(space, settings=settings or Settings.from_dict({"doubt": 0.0, **state["settings"]}))
            restored._rng.bit_generator.state = generator_from(state["generator"])
            restored._rows = rows_from(space, state["rows"])
            restored._values = [math.nan if v is None else float(v) for v in state["values"]]
            if len(restored._rows) != len(restored._values):
                raise ValueError(f"{len(restored._rows)} rows and {len(restored._values)} values")
            restored._pending = {row_key(r): r for r in rows_from(space, state["pending"])}
            restored._queue = rows_from(space, state["queue"])
            restored._repeated = bool(state["repeated"])
            restore(restored._beliefs, state)
        except SettingsError as error:
            raise StateError(f"state: {error}") from error
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise StateError(
                f"state: expected what Optimizer.state() returns, got something damaged ({error})"
            ) from error
        return restored


class _Asker:
    """Names rows one after another, each given fantasies at all that are pending."""

    def __init__(
        self, owner: Optimizer, space: Space, model: ens.Ensemble, view: View, failures: Failures | None
    ) -> None:
        self._owner, self._space, self._plain, self._view = owner, space, model, view
        best = int(np.argmin(view.data.y))
        self._incumbent = space.held(view.data.X[best])
        self._vain = len(owner) - 1 - int(np.flatnonzero(owner._succeeded)[best])
        self._penalty: Callable[[Ints], Floats] | None = failures.log_success if failures is not None else None

    def next(self, excluded: set[bytes]) -> Ints:
        return propose(self._owner._rng, self.question(excluded))

    def question(self, excluded: set[bytes]) -> Question:
        """What the next row is to answer."""
        owner = self._owner
        model = self._plain
        if owner._pending:
            model = model.extend(owner._rng, np.array(list(owner._pending.values())))
        turn = self._turn() if self._space is owner.space else None
        return Question(self._space, owner.settings, model, excluded, self._incumbent, self._penalty, turn)

    def _turn(self) -> Turn | None:
        """What is to be suggested in place of the row of largest acquisition.

        In doubt, two of three times: a neighbour of the row where improvements ended or, where none is left, two
        changes of it. After `patience` vain evaluations, every other time: a neighbour of the best row.
        """
        patience, out = self._owner.settings.patience, len(self._owner._pending)
        if self._doubted is not None:
            return self._doubted if (len(self._owner) + out) % CYCLE else None
        stuck = patience > 0 and self._vain >= patience and (self._vain + out - patience) % 2 == 0
        return Turn(self._incumbent) if stuck else None

    @cached_property
    def _doubted(self) -> Turn | None:
        """Changes of the row where improvements ended, if the model expects `doubt` improvements where none came."""
        owner, data = self._owner, self._view.data
        doubt, last = owner.settings.doubt, last_improvement(data.y)
        small = owner.space.cardinality <= owner.settings.exhaustive
        vain = len(data.y) - 1 - last
        if doubt == 0 or small or vain <= doubt:  # so few cannot be expected to hold so many
            return None
        told = self._view.share.predict[ens.telling(self._view.given.predict)]
        if expected(self._plain, told, data.y, last) < max(doubt, RATE * vain):
            return None
        return Turn(np.asarray(data.X[last]), set(row_keys(data.X)))
