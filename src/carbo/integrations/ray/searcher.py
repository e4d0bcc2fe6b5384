"""carbo as a Ray Tune search algorithm."""

from __future__ import annotations

import json
import logging
import math
import numbers
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from carbo.checks import as_value, generator, resolve
from carbo.errors import DataError, SettingsError, SpaceError, SpaceExhausted, StateError
from carbo.integrations.columns import Points
from carbo.integrations.ray.space import Config, RaySpace, of_config, of_space, ray_tune
from carbo.optimizer import Optimizer
from carbo.settings import Settings
from carbo.space.space import Params, Space
from carbo.space.variables import DEFAULT_POINTS

Searcher: Any = ray_tune("search").Searcher
ResultGrid: Any = ray_tune("result_grid").ResultGrid
DEFAULT_METRIC: str = ray_tune("result").DEFAULT_METRIC

STATE_VERSION = 1
_logger = logging.getLogger(__name__)


class CarboSearcher(Searcher):  # type: ignore[misc]  # Any, so that types can be checked without Ray
    """Bayesian optimisation of discrete parameters for one metric; numeric parameters are searched on a grid.

    space       a `carbo.Space`, which may have a constraint and graphs; or a Ray Tune search space: a dict, possibly
                nested, of tune.choice, randint, uniform, loguniform and their relatives. By default the `param_space`
                of the Tuner. A name like "model/depth" is the config's ["model"]["depth"]
    metric, mode    what to optimise, and "min" or "max"; with a `param_space`, by default those of the TuneConfig
    points      number of levels of floats without steps; a mapping gives the number by name, for any numeric
                parameter of a Ray Tune search space
    preset, settings, replicate     as for `carbo.Optimizer`; with replicate=True configs may be suggested again
    seed        same seed and same results in the same order give the same suggestions
    points_to_evaluate  configs to try first
    max_concurrent      most trials under way; `suggest` waits beyond that. A ConcurrencyLimiter's number replaces it

    No config is suggested twice. When all permitted configs have been suggested, the search is finished. A trial that
    ends in an error, or without a finite metric, is a failure, and the model learns to avoid such configs. A trial
    that is stopped before it ran is forgotten. States are saved as JSON.
    """

    CKPT_FILE_TMPL = "searcher-state-{}.json"
    _metric: str | None
    _mode: str | None

    def __init__(  # noqa: PLR0913
        self,
        space: Space | Mapping[str, Any] | None = None,
        metric: str | None = None,
        mode: str | None = None,
        *,
        points: Points = DEFAULT_POINTS,
        preset: str = "default",
        settings: Settings | Mapping[str, Any] | None = None,
        replicate: bool | None = None,
        seed: int | None = None,
        points_to_evaluate: Iterable[Mapping[str, Any]] = (),
        max_concurrent: int | None = None,
    ) -> None:
        super().__init__(metric=_read_metric(metric), mode=_read_mode(mode))
        self._points = _read_points(points)
        self._settings = resolve(preset, settings, replicate)
        generator(seed)  # checks it
        self._seed = seed
        self._first = list(points_to_evaluate)
        self._max_concurrent = max_concurrent if max_concurrent is None else _whole("max_concurrent", max_concurrent)
        self._running: dict[str, Params] = {}
        self._finished: dict[str, int] = {}
        """The position of each trial's evaluation in the optimiser's history."""
        self._exhausted = False
        self._saved: Mapping[str, Any] | None = None
        """A restored state that waits until the space is known."""
        self._domain: RaySpace | None = None
        self._optimizer: Optimizer | None = None
        if space is not None:
            self._begin(_domain(space, self._points))

    def _begin(self, domain: RaySpace) -> None:
        first = [domain.params(config) for config in self._first]
        self._optimizer = Optimizer(domain.space, seed=self._seed, settings=self._settings, initial=first)
        self._domain = domain
        if self._saved is not None:
            self._apply(self._saved)
            self._saved = None

    @property
    def optimizer(self) -> Optimizer:
        """The engine, for its `predict` or `relevance`. It minimises: with mode "max", values have the other sign."""
        return self._ready()[1]

    # ---- for Ray

    def set_search_properties(self, metric: str | None, mode: str | None, config: Config, **_: Any) -> bool:
        self._metric = _agree_on("metric", self._metric, _read_metric(metric))
        self._mode = _agree_on("mode", self._mode, _read_mode(mode))
        found = of_config(config, self._points)
        if self._domain is None and found is not None:
            self._begin(found)
        return self._domain is not None and (found is None or found.space == self._domain.space)

    def set_max_concurrency(self, max_concurrent: int) -> bool:  # noqa: ARG002
        """Called by a ConcurrencyLimiter, whose limit replaces ours."""
        self._max_concurrent = None
        return False

    def suggest(self, trial_id: str) -> Any:
        """A config; None if Ray has to ask again later; FINISHED if no permitted config is left."""
        domain, optimizer = self._ready()
        if trial_id in self._running:
            return domain.config(self._running[trial_id])
        if self._max_concurrent is not None and len(self._running) >= self._max_concurrent:
            return None
        if not self._exhausted:
            try:
                self._running[trial_id] = optimizer.ask()
                return domain.config(self._running[trial_id])
            except SpaceExhausted:
                self._exhausted = True  # Ray may ask again; random numbers are drawn once
        later = optimizer.settings.replicate and self._running  # then configs under way may be suggested again
        return None if later else Searcher.FINISHED

    def on_trial_result(self, trial_id: str, result: Config) -> None:
        """Does nothing: only the last result of a trial counts."""

    def on_trial_complete(self, trial_id: str, result: Config | None = None, error: bool = False) -> None:
        _, optimizer = self._ready()
        if trial_id not in self._running:
            if result is not None and not error:
                self._rerun(trial_id, result)
            return
        if result is None and not error:  # stopped before it ran
            optimizer.forget(self._running.pop(trial_id))
            self._exhausted = False
            return
        optimizer.tell(self._running[trial_id], self._value(result, error))
        self._finished[trial_id] = len(optimizer) - 1
        del self._running[trial_id]
        self._exhausted = self._exhausted and not optimizer.settings.replicate

    def _rerun(self, trial_id: str, result: Config) -> None:
        """Take the value of a trial that had failed and was run again after a restore, maybe under a new name.

        The value replaces the failure. Other trials that were not suggested here are ignored.
        """
        optimizer = self.optimizer
        points, values = optimizer.history()
        at = self._finished.get(trial_id)
        if at is None:
            params = self._reported_params(result)
            failed = (i for i, point in enumerate(points) if point == params and math.isnan(values[i]))
            at = next(failed, None)
        if at is None:
            _logger.debug("the end of trial %s, which was not suggested here, is ignored", trial_id)
            return
        self._finished[trial_id] = at
        values[at] = as_value(self._value(result, error=False))
        encode = optimizer.space.encode_many
        optimizer.replace_data(encode(points), values.tolist(), encode(optimizer.pending))

    def _reported_params(self, result: Config) -> Params | None:
        """The params that a flat result names; None if it names none, or others than the space has."""
        config = {key.removeprefix("config/"): value for key, value in result.items() if key.startswith("config/")}
        try:
            return self._ready()[0].params(config)
        except SpaceError:
            return None

    def _value(self, result: Config | None, error: bool) -> Any:
        """The value for the engine: a number to minimise, or None for a failure."""
        metric = None if error or result is None else result.get(self._metric or DEFAULT_METRIC)
        return None if metric is None else self._sign() * as_value(metric)

    def _sign(self) -> int:
        return -1 if self._mode == "max" else 1

    # ---- evaluations from elsewhere

    def add_evaluated_point(
        self,
        parameters: Config,
        value: float | None,
        error: bool = False,
        pruned: bool = False,  # noqa: ARG002
        intermediate_values: list[float] | None = None,  # noqa: ARG002
    ) -> None:
        """Learn from a config that was evaluated elsewhere. A pruned trial counts with its value.

        A number between two levels counts as the nearer one. SpaceError for a config outside the space.
        """
        domain, optimizer = self._ready()
        number = as_value(None if error else value)
        optimizer.tell(domain.params(parameters), self._sign() * number)

    def add_evaluated_trials(self, trials_or_analysis: Any, metric: str) -> None:
        """Learn from the trials of another run, failures included: a ResultGrid, an ExperimentAnalysis or Trials."""
        if isinstance(trials_or_analysis, ResultGrid):
            for each in trials_or_analysis:
                self._add(each.config, each.metrics, metric, each.error is not None)
            return
        trials = getattr(trials_or_analysis, "trials", trials_or_analysis)
        for each in trials if isinstance(trials, list | tuple) else [trials]:
            if each.status in ("ERROR", "TERMINATED"):
                self._add(each.config, each.last_result, metric, each.status == "ERROR")

    def _add(self, config: Config | None, result: Config | None, metric: str, error: bool) -> None:
        value = (result or {}).get(metric)
        if config is not None and (error or value is not None):
            self.add_evaluated_point(config, value, error)

    # ---- saving

    def save(self, checkpoint_path: str) -> None:
        """Write the state, without the space and without functions, to a JSON file, in one step."""
        path = Path(checkpoint_path)
        draft = path.with_name(f"{path.name}.part")
        draft.write_text(json.dumps(self._state()), encoding="utf-8")
        os.replace(draft, path)

    def restore(self, checkpoint_path: str) -> None:
        """Continue from a saved file, over the same space. The next suggestions are the same as without the stop.

        If the space comes with the Tuner's `param_space`, the state waits for it. StateError for any other file.
        """
        try:
            state = json.loads(Path(checkpoint_path).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise StateError(
                f"{checkpoint_path}: expected a file that CarboSearcher.save wrote, got: {error}"
            ) from None
        if not isinstance(state, Mapping) or state.get("version") != STATE_VERSION or "optimizer" not in state:
            raise StateError(
                f"{checkpoint_path}: expected a file that this version of CarboSearcher wrote, got another's"
            )
        self._metric = _agree_on("metric", self._metric, state.get("metric"))
        self._mode = _agree_on("mode", self._mode, state.get("mode"))
        if self._optimizer is None:
            self._saved = state
        else:
            self._apply(state)

    def _state(self) -> Mapping[str, Any]:
        if self._optimizer is None:
            return self._saved or {"version": STATE_VERSION, "optimizer": None}
        encode = self._optimizer.space.encode
        return {
            "version": STATE_VERSION,
            "metric": self._metric,
            "mode": self._mode,
            "optimizer": self._optimizer.state(),
            "running": {trial_id: encode(params).tolist() for trial_id, params in self._running.items()},
            "finished": self._finished,
            "exhausted": self._exhausted,
        }

    def _apply(self, state: Mapping[str, Any]) -> None:
        if state["optimizer"] is None:
            return
        assert self._domain is not None
        space = self._domain.space
        optimizer = Optimizer.from_state(space, state["optimizer"], self._function_settings())
        try:
            running = {str(trial_id): space.decode(row) for trial_id, row in state["running"].items()}
            finished = {str(trial_id): int(at) for trial_id, at in state["finished"].items()}
            exhausted = bool(state["exhausted"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise StateError(
                f"state: expected what CarboSearcher.save writes, got something damaged ({error})"
            ) from None
        self._optimizer, self._running, self._finished, self._exhausted = optimizer, running, finished, exhausted

    def _function_settings(self) -> Settings | None:
        """Our settings if they have a function, which no file can hold; otherwise None."""
        return self._settings if callable(self._settings.acquisition) else None

    def _ready(self) -> tuple[RaySpace, Optimizer]:
        if self._domain is None or self._optimizer is None:
            raise SpaceError("CarboSearcher: expected a search space, got none; pass a carbo.Space or a dict of "
                             "tune.choice(...), or give the Tuner a param_space")  # fmt: skip
        if self._mode is None:
            raise SettingsError("CarboSearcher: expected a mode, got none; pass metric= and mode=, here or, with a "
                                "param_space, in the TuneConfig")  # fmt: skip
        self._metric = self._metric or DEFAULT_METRIC  # what a trainable reports that returns a number
        return self._domain, self._optimizer


def _domain(space: Any, points: Points) -> RaySpace:
    if isinstance(space, Space):
        if points != DEFAULT_POINTS:
            raise SpaceError(
                "points: expected none together with a carbo.Space, got points=; use Float(points=) in the space"
            )
        return of_space(space)
    domain = of_config(space, points) if isinstance(space, Mapping) else None
    if domain is None:
        raise SpaceError(
            f"space: expected a carbo.Space or a dict with tune.choice(...) or the like in it, got {space!r}"
        )
    return domain


def _read_mode(mode: Any) -> str | None:
    if mode not in (None, "min", "max"):
        raise SettingsError(f'mode: expected "min" or "max", got {mode!r}; one objective at a time')
    return None if mode is None else str(mode)


def _read_metric(metric: Any) -> str | None:
    if metric is not None and not isinstance(metric, str):
        raise SettingsError(f"metric: expected the name of one metric, got {metric!r}; combine several into one number")
    return metric


def _read_points(points: Any) -> Points:
    if isinstance(points, Mapping):
        return {str(name): _whole("points", each) for name, each in points.items()}
    return _whole("points", points)


def _whole(what: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
        raise DataError(f"{what}: expected a whole number >= 1, got {value!r}")
    return int(value)


def _agree_on(what: str, ours: str | None, other: str | None) -> str | None:
    """The one that is not None. SettingsError if there are two and they differ."""
    if ours is not None and other is not None and ours != other:
        raise SettingsError(f"{what}: expected one, got {ours!r} and {other!r}; leave one out")
    return other if ours is None else ours
