"""carbo as an Optuna sampler, for Optuna 4.8 and later.

All that a suggestion depends on is in the study's trials, so any number of processes may share a storage. A sampler
remembers only what it has read, and the state of its Markov chains.

Two workers never get the same point. A worker writes its point into its trial (a *claim*), then reads all trials again,
and keeps the point only if no other trial has it or claims it. If two workers write the same point, the one that reads
last sees the other, whatever the order, so at most one of them keeps the point. The other withdraws and asks again.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import secrets
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any, NamedTuple

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from carbo.checks import generator, resolve
from carbo.errors import DataError, SpaceError, SpaceExhausted
from carbo.integrations.columns import Column, Points
from carbo.integrations.optuna.arguments import (
    constraint_values,
    read_constraint,
    read_function,
    read_sampler,
    read_space,
    read_wishes,
    refuse_many,
    with_startup,
)
from carbo.integrations.optuna.claims import REPEAT, claim_text, withdraw, write_claim
from carbo.integrations.optuna.engine import StudyEngine
from carbo.integrations.optuna.evaluations import CONSTRAINTS, fixed_params
from carbo.integrations.optuna.memory import Memory
from carbo.integrations.optuna.private import read_trials, write_attribute
from carbo.integrations.optuna.space import Distributions, build, column, permitted, provisional
from carbo.numerics.types import Ints
from carbo.optimizer import Optimizer
from carbo.settings import Settings
from carbo.space.choices import listing
from carbo.space.space import Constraint, Params, Space
from carbo.space.variables import DEFAULT_POINTS

PAUSES = (0.0, 0.002, 0.005, 0.01, 0.02, 0.05)
"""Seconds that the trial with the lower number waits for the other trial to withdraw, before it withdraws itself."""

_logger = logging.getLogger("optuna.carbo")  # a child of Optuna's logger, whose verbosity and format the user sets


class StudyModel(NamedTuple):
    """The engine with the data of a study."""

    optimizer: Optimizer
    numbers: list[int]
    """Numbers of the trials whose values the engine has, in the order of its history."""


class CarboSampler(BaseSampler):
    """Bayesian optimisation of discrete parameters for one objective; numeric parameters are searched on a grid.

    search_space        the parameters: a `carbo.Space`, or Optuna distributions by name. With it, even the first
                        trials keep the constraint and have different points. Without it, the parameters are those
                        that all trials so far asked for, and others are sampled independently
    constraint          params -> bool; params for which it is False are never suggested
    ordinal             names of categorical parameters whose choices are in order
    graphs              which choices are alike, by name: a weight matrix, "path", "cycle" or a networkx graph
    points              number of levels of floats without a step and of logarithmic integers; a mapping gives the
                        number by name, for any numeric parameter
    preset, settings, replicate     as for `carbo.Optimizer`; with replicate=True points may be evaluated again
    n_startup_trials    number of random points before the model is asked; by default the setting `initial`
    seed                same seed and same trials give the same suggestions; each trial has its own random numbers
    independent_sampler     for parameters outside the common space; by default uniform on the grid
    warn_independent_sampling   whether to log that, once for each parameter
    constraints_func    trial -> numbers, for constraints that are known after the evaluation, as in Optuna 4; the
                        trial is feasible if none is above zero. `trial.set_constraint` of Optuna 5 needs no argument

    When all permitted points have been evaluated or are under way, the study stops, and the current trial gets an old
    point again. With replicate=True the study goes on.
    """

    def __init__(  # noqa: PLR0913
        self,
        *,
        search_space: Space | Mapping[str, BaseDistribution] | None = None,
        constraint: Constraint | None = None,
        ordinal: Iterable[str] = (),
        graphs: Mapping[str, Any] | None = None,
        points: Points = DEFAULT_POINTS,
        preset: str = "default",
        settings: Settings | Mapping[str, Any] | None = None,
        replicate: bool | None = None,
        n_startup_trials: int | None = None,
        seed: int | None = None,
        independent_sampler: BaseSampler | None = None,
        warn_independent_sampling: bool = True,
        constraints_func: Callable[[FrozenTrial], Sequence[float]] | None = None,
    ) -> None:
        self._wishes = read_wishes(points, ordinal, graphs, search_space)
        self._given = read_space(search_space)
        self._constraint = read_constraint(constraint, search_space)
        self._settings = with_startup(resolve(preset, settings, replicate), n_startup_trials)
        generator(seed)  # checks it
        self._entropy = secrets.randbits(128) if seed is None else int(seed)
        self._independent = read_sampler(independent_sampler)
        self._warn_independent = warn_independent_sampling
        self._constraints_func = read_function(constraints_func)
        self._warned: set[str] = set()
        self._exhausted = False
        self._memory = Memory()
        self._read_for: int | None = None
        """The trial whose search space was inferred last. Its suggestion does not read the storage again."""
        self._engine: tuple[tuple[Distributions, bool], StudyEngine] | None = None
        self._lock = threading.RLock()
        if self._given is not None:
            self._check(self._given)

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in vars(self).items() if key != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._lock = threading.RLock()

    # ---- for users

    @property
    def distributions(self) -> Distributions | None:
        """The search space that was passed, as `study.ask` takes it; None if there was none."""
        return None if self._given is None else dict(self._given)

    @property
    def exhausted(self) -> bool:
        """Whether the last suggestion was a repeat because nothing new was left."""
        return self._exhausted

    def optimizer(self, study: Study) -> Optimizer:
        """The engine with the data of all trials, for example for its `predict` or `relevance`.

        It minimises. If the study maximises, values have the opposite sign.
        DataError if no trial has a result and no search space was passed.
        """
        return self.told(study).optimizer

    def told(self, study: Study) -> StudyModel:
        """The engine as `optimizer` returns it, and the numbers of the trials in it."""
        refuse_many(study)
        with self._lock:
            self._read(study)
            space = self._given if self._given is not None else self._memory.common.distributions()
            if not space:
                raise DataError("study: expected a finished trial, got none; the parameters are not known without one")
            engine = self._engine_for(space)
            engine.load(self._memory, study.direction)
            return StudyModel(engine.optimizer(), engine.numbers)

    # ---- for Optuna

    def reseed_rng(self) -> None:
        self._entropy = secrets.randbits(128)
        if self._independent is not None:
            self._independent.reseed_rng()

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        if self._independent is not None:
            self._independent.before_trial(study, trial)

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> Distributions:
        if self._given is not None:
            return dict(self._given)
        with self._lock:
            trials = self._read(study, trial)
            self._read_for = trial.number
            common = self._memory.common.distributions()
            return provisional(trials) if common is None else common

    def sample_relative(self, study: Study, trial: FrozenTrial, search_space: Distributions) -> Params:
        refuse_many(study)
        fixed = fixed_params(trial)
        if search_space.keys() <= fixed.keys():  # also if the space is empty
            return {}
        with self._lock:
            began, self._exhausted = time.perf_counter(), False
            for attempt in itertools.count():
                if self._read_for != trial.number:
                    self._read(study, trial)
                self._read_for = None
                engine = self._engine_for(search_space)
                engine.load(self._memory, study.direction)
                seed = [self._entropy, trial.number, attempt]
                try:
                    row, free = engine.suggest_around(seed, fixed) if fixed else (engine.suggest(seed), True)
                except SpaceExhausted:
                    if not self._everything_known():
                        return {}
                    self._stop(study, trial, engine)
                    row, free = engine.repeat(seed)
                write_claim(study, trial, claim_text(engine.key, row), time.perf_counter() - began)
                # a row that need not be new, or cannot be, is kept in any case
                if not (engine.exclusive and free) or self._keeps(study, trial, engine, row):
                    return engine.params(row)
        raise AssertionError("unreachable")

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        refuse_many(study)
        if self._warn_independent and self._memory.finished:
            self._warn_once(f"independent {param_name}", (
                f"The parameter {param_name!r} of trial {trial.number} is sampled independently, without the model: "
                "not every trial so far asked for it, or its range keeps changing. Pass search_space= if every trial "
                "asks for it, or warn_independent_sampling=False if this is intended."
            ))  # fmt: skip
        if self._independent is not None:
            return self._independent.sample_independent(study, trial, param_name, param_distribution)
        values = column(param_name, param_distribution, self._wishes._replace(variables={})).values
        rng = np.random.default_rng([self._entropy, trial.number, zlib.crc32(param_name.encode())])
        drawn = [values[i] for i in rng.permutation(len(values))]
        return next((v for v in drawn if self._permits({**trial.params, param_name: v})), drawn[0])

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        if self._constraints_func is not None and state in (TrialState.COMPLETE, TrialState.PRUNED):
            violations = None
            try:
                violations = constraint_values(self._constraints_func(trial))
            finally:
                write_attribute(study, trial, CONSTRAINTS, violations)
        if "fixed_params" not in trial.system_attrs and not self._permits(trial.params):
            self._warn_once("constraint", (
                f"Trial {trial.number} breaks the constraint, because some of its parameters were sampled "
                + ("by another sampler. Enqueue the fixed parameters instead: the others are suggested to go with them."
                   if self._given is not None else
                   "independently. Pass search_space= so that all parameters are known from the first trial on.")
            ))  # fmt: skip
        if self._independent is not None:
            self._independent.after_trial(study, trial, state, values)

    # ---- one suggestion

    def _read(self, study: Study, trial: FrozenTrial | None = None) -> list[FrozenTrial]:
        """Read all trials, except the one that is being sampled."""
        trials = read_trials(study)
        if not self._memory.is_memory_of(trials):
            self._memory, self._engine = Memory(), None
        others = [t for t in trials if trial is None or t.number != trial.number]
        self._memory.read(others)
        return others

    def _engine_for(self, search_space: Mapping[str, BaseDistribution]) -> StudyEngine:
        """The engine of this space. A new one if the space has changed, or whether it holds all parameters."""
        asked = self._memory.common.asked
        names = self._given.keys() if self._given is not None else asked | search_space.keys()
        key = dict(search_space), names == search_space.keys()
        if self._engine is None or self._engine[0] != key:
            if self._everything_known():
                for message in self._unknown_names(asked | search_space.keys()):
                    self._warn_once(message, message)
            columns = self._columns(search_space)
            space = build(columns, self._constraint, None if self._given == key[0] else self._missing)
            self._engine = key, StudyEngine(columns, space, self._settings, exclusive=key[1])
        return self._engine[1]

    def _columns(self, search_space: Mapping[str, BaseDistribution]) -> dict[str, Column]:
        return {name: column(name, each, self._wishes) for name, each in search_space.items()}

    def _keeps(self, study: Study, trial: FrozenTrial, engine: StudyEngine, row: Ints) -> bool:
        """Whether a trial may keep the row that it claims; if not, it withdraws. See the head of this file."""
        for pause in PAUSES:
            time.sleep(pause)
            rivals = engine.rivals(self._read(study, trial), row)
            if not rivals:
                return True
            if any(r.number < trial.number or r.state != TrialState.RUNNING or engine.is_fixed(r) for r in rivals):
                break  # these will not withdraw
        withdraw(study, trial)
        return False

    def _everything_known(self) -> bool:
        """Whether the space is known for certain. Trials without a result may have asked for a part of it only."""
        return self._given is not None or self._memory.common.distributions() is not None

    def _stop(self, study: Study, trial: FrozenTrial, engine: StudyEngine) -> None:
        """No new point is left: mark the trial as a repeat, and stop the study unless repeats are wanted."""
        self._exhausted = True
        write_attribute(study, trial, REPEAT, True)
        if self._settings.replicate:
            return
        self._warn_once("exhausted", (
            f"Of {engine.space.cardinality} combinations {engine.space.rows.exhaustion} or is under way: the study "
            f"stops, and trial {trial.number} repeats a point. replicate=True goes on with repeats."
        ))  # fmt: skip
        with contextlib.suppress(RuntimeError):  # outside study.optimize there is nothing to stop
            study.stop()

    # ---- the constraint and warnings

    def _permits(self, params: Params) -> bool:
        """The constraint's verdict on params, of which some may be missing; True if it cannot say."""
        if self._constraint is None:
            return True
        try:
            return permitted(self._constraint, params, lambda _: None)
        except Exception:  # noqa: BLE001 - written for complete params; the engine's space reports real faults
            return True

    def _missing(self, name: str) -> None:
        self._warn_once(f"missing {name}", (
            f"The constraint asks for the parameter {name!r}, which is not in the common search space: it cannot be "
            "kept in all trials. Pass search_space= if every trial has that parameter."
        ))  # fmt: skip

    def _check(self, space: Distributions) -> None:
        """SpaceError for a wrong space, constraint or wish, before any trial has run."""
        for message in self._unknown_names(space.keys()):
            raise SpaceError(message)
        build(self._columns(space), self._constraint, None)

    def _unknown_names(self, names: Set[str]) -> list[str]:
        """Messages about wishes for parameters that are not among these names."""
        points = self._wishes.points if isinstance(self._wishes.points, Mapping) else {}
        wishes = {"ordinal": self._wishes.ordinal, "graphs": self._wishes.graphs, "points": points}
        return [
            f"{what}: expected names of parameters, got {name!r}; there are {listing([repr(n) for n in sorted(names)])}"
            for what, named in wishes.items()
            for name in sorted(set(named) - names)
        ]

    def _warn_once(self, key: str, message: str) -> None:
        if key not in self._warned:
            self._warned.add(key)
            _logger.warning(message)
