"""The ask-and-tell optimiser. The only stateful class: data, pending rows, chains and a random generator.

Notation
    rows    (n, d) evaluated rows in the order told; values (n,) as told, NaN where the evaluation failed
    y       values of the evaluations that succeeded, warped and standardised (`values`)
"""

from __future__ import annotations

import copy
import dataclasses
import math
import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self, overload

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from carbo import chain as chains
from carbo import ensemble as ens
from carbo.chain import Chain, Tuning
from carbo.conditional import Data, Hyper
from carbo.errors import DataError, SettingsError, SpaceExhausted, StateError
from carbo.graph import Floats, Ints
from carbo.influence import Relevance, influence
from carbo.kernel import Kernel, Orders, Product, Scales
from carbo.posterior import Model, Sampling
from carbo.settings import STANDARD, Settings, preset
from carbo.space import Params, Space, row_key
from carbo.subset import Given, Shares, shares, spared
from carbo.suggest import Question, propose, unseen
from carbo.threads import limited
from carbo.values import Scale, standardise
from carbo.warping import Warping, looked

STATE_VERSION = 3
FAILURE_SAMPLES = 3
"""Posterior samples of the model of failures; its burn-in is as many sweeps as the objective's."""


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
    replicate   may an evaluated point be suggested again? Overrides the setting
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
        self._queue = self._initial(initial)
        self._view: tuple[tuple[int, int], ens.Ensemble, Scale] | None = None
        self._chain: Chain | None = None
        self._failure_chain: Chain | None = None
        self._warping = Warping()
        kernel = self._kernel()
        self._model = Model(kernel, self.settings.priors)
        self._failure_model = Model(kernel, STANDARD)

    def _kernel(self) -> Kernel:
        spectra = self.space.spectra(self.settings.graph_scale)
        if self.settings.kernel == "product":
            return Product(spectra)
        active = sum(s.size > 1 for s in spectra)
        return Orders(spectra, max(1, min(self.settings.highest_order, active)), self.settings.product_term)

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

    def _suggest(self, n: int) -> list[Ints]:
        pending, queue = dict(self._pending), list(self._queue)
        try:
            with limited(len(self._rows), self.settings.threads):
                return self._suggest_rows(n)
        except BaseException:
            self._pending, self._queue = pending, queue
            raise

    def _suggest_rows(self, n: int) -> list[Ints]:
        rows: list[Ints] = []
        asker: _Asker | None = None
        for _ in range(n):
            try:
                if (queued := self._next_queued()) is not None:
                    row = queued
                elif len(self._rows) + len(self._pending) < self.settings.initial or not self._succeeded.any():
                    row = unseen(self._rng, self.space, self._excluded())
                else:
                    asker = asker or self._asker()
                    row = asker.next()
            except SpaceExhausted:
                if not rows:
                    raise
                break
            self._pending[row_key(row)] = row
            rows.append(row)
        return rows

    def _next_queued(self) -> Ints | None:
        """The next initial point that is not excluded by now."""
        while self._queue:
            row = self._queue.pop(0)
            if row_key(row) not in self._excluded():
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
            points, values = _listed("points", params), _listed("values", value)
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
    def _succeeded(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        return np.isfinite(np.array(self._values, dtype=np.float64))

    def _excluded(self) -> set[bytes]:
        """Rows not to suggest: pending, failed, and evaluated unless replicates are wanted."""
        seen = {row_key(r) for r, ok in zip(self._rows, self._succeeded, strict=True)
                if not (ok and self.settings.replicate)}  # fmt: skip
        return seen | self._pending.keys()

    def _data(self) -> _View:
        """What the model is to see now, the warp looked at again where that is due."""
        ok = self._succeeded
        X, values = np.array(self._rows, dtype=np.intp)[ok], np.array(self._values)[ok]
        warping, chain, share = self._warping, self._chain, self._shares(X, values)
        if self.settings.warps:
            with limited(len(share.learn), self.settings.threads):
                warping, mode = looked(warping, X[share.learn], values[share.learn], self._model, len(values))
            if mode is not None and chain is not None:
                chain = chain._replace(hyper=mode)
        y, scale = standardise(values, warping.multiple)
        return _View(Data(X, y), share, scale, warping, chain)

    def _shares(self, X: Ints, values: Floats) -> Shares:
        settings = self.settings
        return shares(self._model.kernel.spectra, X, values, (settings.learn_from, settings.predict_from))

    def _fit(
        self, rng: np.random.Generator, chain: Chain | None, model: Model, given: Given, sampling: Sampling
    ) -> tuple[Chain, ens.Ensemble]:
        """The chain advanced by one draw, and the model that the draw's samples make."""
        with limited(len(given.learn.y), self.settings.threads):
            chain, hypers = chains.draw(rng, chain, model, given.learn, sampling)
        if self.settings.predict_from is not None:
            hypers = spared(hypers, len(given.predict.y))
        return chain, ens.build(model.kernel, hypers, given.predict)

    def _asker(self) -> _Asker:
        """Advances the chains by one draw and returns what can name rows, any number of them."""
        view = self._data()
        self._warping = view.warping
        self._chain, model = self._fit(self._rng, view.chain, self._model, view.given, self.settings.sampling)
        return _Asker(self, model, view.data, self._failures(self._rng))

    def _failures(self, rng: np.random.Generator) -> _Failures | None:
        ok = self._succeeded
        if ok.all():
            return None
        y, scale = standardise(1.0 - ok.astype(np.float64))
        X = np.array(self._rows, dtype=np.intp)
        given = self._shares(X, np.array(self._values)).of(Data(X, y))
        sampling = self.settings.sampling._replace(samples=FAILURE_SAMPLES)
        self._failure_chain, model = self._fit(rng, self._failure_chain, self._failure_model, given, sampling)
        return _Failures(model, scale)

    def _look(self) -> tuple[ens.Ensemble, Scale]:
        """The model as it stands, without moving the chain or the generator."""
        if not self._succeeded.any():
            raise DataError("the model: expected at least one successful evaluation, got none; tell some values first")
        key = len(self._rows), self._rng.bit_generator.state["state"]["state"]
        if self._view is not None and self._view[0] == key:
            return self._view[1], self._view[2]
        rng = copy.deepcopy(self._rng)
        with limited(len(self._rows), self.settings.threads):
            view = self._data()
            _, model = self._fit(rng, view.chain, self._model, view.given, self.settings.sampling)
        self._view = key, model, view.scale
        return model, view.scale

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
        model, scale = self._look()
        means, stds = scale.back(*model.predict(rows))
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
        model, scale = self._look()
        view = self._data()
        told = np.argsort(ens.telling(view.given.predict))
        mean, variance = model.left_out()
        means, sds = (np.full(len(view.data.y), np.nan) for _ in range(2))
        means[view.share.predict], sds[view.share.predict] = scale.back(mean[:, told], np.sqrt(variance[:, told]))
        return means, sds

    def relevance(self) -> Relevance:
        """Each variable's influence on the function as the posterior sees it, and of each order of interaction."""
        model, scale = self._look()
        return influence(np.random.default_rng(0), model, self.space, scale.value)

    # Saving

    def state(self) -> dict[str, Any]:
        """Everything, as JSON values; `from_state` gives an optimiser with the same next suggestions."""
        return {
            "version": STATE_VERSION,
            "space": self.space.fingerprint(),
            "settings": self.settings.to_dict(),
            "generator": _generator_state(self._rng),
            "rows": [row.tolist() for row in self._rows],
            "values": [v if math.isfinite(v) else None for v in self._values],
            "pending": [row.tolist() for row in self._pending.values()],
            "queue": [row.tolist() for row in self._queue],
            "chain": _chain_state(self._chain),
            "failure_chain": _chain_state(self._failure_chain),
            "warping": list(self._warping),
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
            restored = cls(space, settings=settings or Settings.from_dict(state["settings"]))
            restored._rng.bit_generator.state = _generator_from(state["generator"])
            restored._rows = _rows_from(space, state["rows"])
            restored._values = [math.nan if v is None else float(v) for v in state["values"]]
            if len(restored._rows) != len(restored._values):
                raise ValueError(f"{len(restored._rows)} rows and {len(restored._values)} values")
            restored._pending = {row_key(r): r for r in _rows_from(space, state["pending"])}
            restored._queue = _rows_from(space, state["queue"])
            restored._chain = _chain_from(state["chain"], restored._model)
            restored._failure_chain = _chain_from(state["failure_chain"], restored._failure_model)
            restored._warping = _warping_from(state["warping"])
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise StateError(
                f"state: expected what Optimizer.state() returns, got something damaged ({error})"
            ) from error
        return restored


class _View(NamedTuple):
    """Data as the model sees them, how they became so, and the chain that goes on from there."""

    data: Data
    share: Shares
    scale: Scale
    warping: Warping
    chain: Chain | None

    @property
    def given(self) -> Given:
        return self.share.of(self.data)


class _Failures(NamedTuple):
    """A Gaussian process on failure (1) and success (0), read as a probability (Rasmussen and Williams, 6.5)."""

    model: ens.Ensemble
    scale: Scale

    def log_success(self, rows: Ints) -> Floats:
        mu, sd = self.model.predict(rows)
        noise = np.exp([h.log_noise for h in self.model.hypers])[:, None]
        threshold = (0.5 - self.scale.centre) / self.scale.unit
        return np.asarray(np.log(np.maximum(ndtr((threshold - mu) / np.sqrt(sd**2 + noise)).mean(axis=0), 1e-300)))


class _Asker:
    """Names rows one after another, each given fantasies at all that are pending."""

    def __init__(self, owner: Optimizer, model: ens.Ensemble, data: Data, failures: _Failures | None) -> None:
        self._owner, self._plain = owner, model
        best = int(np.argmin(data.y))
        self._incumbent, self._vain = data.X[best], len(data.y) - 1 - best
        self._penalty: Callable[[Ints], Floats] | None = failures.log_success if failures is not None else None

    def next(self) -> Ints:
        owner = self._owner
        model = self._plain
        if owner._pending:
            model = model.extend(owner._rng, np.array(list(owner._pending.values())))
        question = Question(owner.space, owner.settings, model, owner._excluded(), self._incumbent, self._penalty,
                            self._stuck())  # fmt: skip
        return propose(owner._rng, question)

    def _stuck(self) -> bool:
        """Whether it is the turn of the incumbent's neighbours: every other time after `patience` vain evaluations."""
        patience, out = self._owner.settings.patience, len(self._owner._pending)
        return patience > 0 and self._vain >= patience and (self._vain + out - patience) % 2 == 0


def resolve(name: str, settings: Settings | Mapping[str, Any] | None, replicate: bool | None = None) -> Settings:
    """The settings that a preset's name, changes to it, and `replicate` come to."""
    chosen = preset(name)
    if isinstance(settings, Settings):
        chosen = settings
    elif isinstance(settings, Mapping):
        chosen = chosen.changed(settings)
    elif settings is not None:
        raise SettingsError(f"settings: expected a Settings or a mapping, got {type(settings).__name__}")
    return chosen if replicate is None else dataclasses.replace(chosen, replicate=replicate)


def generator(seed: int | None) -> np.random.Generator:
    """The random generator of a seed; None seeds it from the machine."""
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, numbers.Integral) or seed < 0):
        raise DataError(f"seed: expected a whole number >= 0, or None for a different run each time, got {seed!r}")
    return np.random.default_rng(None if seed is None else int(seed))


def as_value(value: Any) -> float:
    """A told value as a float, NaN for a failure. Raises DataError for what is no number."""
    if value is None:
        return math.nan
    if isinstance(value, np.ndarray) and value.size == 1:
        value = value.reshape(()).item()
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise DataError(
            f"value: expected a number, or None for a failed evaluation, got {value!r}, a {type(value).__name__}; "
            "convert it with float()"
        )
    try:
        number = float(value)
    except OverflowError:  # an integer beyond the range of a float: as good as infinite
        return math.nan
    return number if math.isfinite(number) else math.nan


def _listed(what: str, given: Any) -> list[Any]:
    try:
        if isinstance(given, Mapping):
            raise TypeError
        return list(given)
    except TypeError:
        raise DataError(
            f"tell: expected one dict of parameters and a number, or a list of each, got {given!r} for the {what}"
        ) from None


def _generator_state(rng: np.random.Generator) -> dict[str, Any]:
    """Its 128-bit integers as text, which every JSON reader keeps exactly."""
    state = dict(rng.bit_generator.state)
    return {**state, "state": {k: str(v) for k, v in state["state"].items()}}


def _generator_from(state: Mapping[str, Any]) -> dict[str, Any]:
    return {**state, "state": {k: int(v) for k, v in state["state"].items()}}


def _chain_state(chain: Chain | None) -> dict[str, Any] | None:
    if chain is None:
        return None
    hyper, tuning = chain
    return {
        "mean": hyper.mean,
        "log_noise": hyper.log_noise,
        "log_w": hyper.log_w.tolist(),
        "log_beta": hyper.scales.log_beta.tolist(),
        "log_relevance": hyper.scales.log_relevance.tolist(),
        "tuning": None if tuning is None else [tuning.step, tuning.centre.tolist(), tuning.variance.tolist()],
    }


def _rows_from(space: Space, rows: Any) -> list[Ints]:
    """Rows of a saved state, checked against the space."""
    array = np.array(rows).reshape(len(rows), space.dim)
    if array.size and (array.dtype.kind != "i" or np.any(array < 0) or np.any(array >= space.sizes)):
        raise ValueError("a row outside the space")
    return list(array.astype(np.intp))


def _warping_from(state: Sequence[Any]) -> Warping:
    multiple, due = state
    if multiple is not None and not float(multiple) > 0:
        raise ValueError(f"a warp with the multiple {multiple!r}")
    return Warping(None if multiple is None else float(multiple), int(due))


def _chain_from(state: Mapping[str, Any] | None, model: Model) -> Chain | None:
    if state is None:
        return None
    sizes = [len(state[key]) for key in ("log_w", "log_beta", "log_relevance")]
    if sizes != [model.kernel.size, len(model.kernel.spectra), len(model.kernel.spectra)]:
        raise ValueError("a chain of another kernel; restore it with the settings it was saved with")
    log_w, *scales = (np.array(state[key], dtype=np.float64) for key in ("log_w", "log_beta", "log_relevance"))
    hyper = Hyper(float(state["mean"]), float(state["log_noise"]), log_w, Scales(*scales))
    if state["tuning"] is None:
        return Chain(hyper)
    step, centre, variance = (np.array(value, dtype=np.float64) for value in state["tuning"])
    size = chains.layout(model.kernel).size
    if centre.shape != (size,) or variance.shape != (size,) or not np.all(variance > 0) or not step > 0:
        raise ValueError("a chain's tuning of another kernel")
    return Chain(hyper, Tuning(float(step), centre, variance))
