"""Optuna's distributions as carbo's variables, and the parameters that a study's trials have in common."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState

from carbo.errors import SpaceError
from carbo.integrations.columns import (
    STEPS,
    Column,
    Points,
    floats,
    integers,
    most_levels,
    multiples,
    of_variable,
    ruler,
)
from carbo.space.choices import is_label
from carbo.space.space import Constraint, Params, Space
from carbo.space.variables import DEFAULT_POINTS, Binary, Categorical, Float, Integer, Ordinal, Variable

Distributions = dict[str, BaseDistribution]

DYNAMIC = 3
"""Most distributions of one name. With more, its range seems to depend on other parameters, not on a user's edits."""


class Wishes(NamedTuple):
    """What the user says about parameters, by name. `variables` of a carbo.Space say all that there is to say."""

    points: Points = DEFAULT_POINTS
    ordinal: frozenset[str] = frozenset()
    graphs: Mapping[str, Any] = {}
    variables: Mapping[str, Variable] = {}


def column(name: str, distribution: BaseDistribution, wishes: Wishes) -> Column:
    """The column of a parameter. SpaceError for a distribution or a wish that makes no sense."""
    if name in wishes.variables:
        return of_variable(wishes.variables[name])
    if isinstance(distribution, CategoricalDistribution):
        choices = [c for i, c in enumerate(distribution.choices) if distribution.to_internal_repr(c) == i]
        labels = [c if is_label(c) else ("choice", i) for i, c in enumerate(choices)]
        return Column(_variable(name, labels, wishes, name in wishes.ordinal), choices)
    if not isinstance(distribution, IntDistribution | FloatDistribution):
        raise SpaceError(f"parameter {name!r}: expected a categorical, integer or float distribution, "
                         f"got {distribution!r}; sample it with another sampler")  # fmt: skip
    levels = _levels(distribution, most_levels(wishes.points, name, None if _is_continuous(distribution) else STEPS))
    marks = ruler(levels, distribution.log, distribution.low, distribution.high)
    return Column(_variable(name, levels, wishes, True), levels, marks)


def _variable(name: str, labels: Sequence[Any], wishes: Wishes, ordered: bool) -> Variable:
    if name in wishes.graphs:
        return Categorical(labels, graph=wishes.graphs[name])
    return Ordinal(labels) if ordered else Categorical(labels)


def _is_continuous(distribution: IntDistribution | FloatDistribution) -> bool:
    """Whether a distribution has no steps that a grid could follow: floats without a step, logarithmic integers."""
    return distribution.log or distribution.step is None


def _levels(distribution: IntDistribution | FloatDistribution, most: int) -> Sequence[int | float]:
    low, high = distribution.low, distribution.high
    if isinstance(distribution, FloatDistribution):
        if distribution.step is None:
            return floats(low, high, distribution.log, most)
        counts = integers(0, round((high - low) / distribution.step), False, most)
        return [min(float(v), high) for v in multiples(distribution.step, counts, low)]
    if distribution.log:
        return integers(int(low), int(high), True, most)
    step = distribution.step
    return [int(low) + step * k for k in integers(0, (int(high) - int(low)) // step, False, most)]


# ---------------------------------------------------------------- spaces


def distributions(space: Space) -> Distributions:
    """A carbo.Space as Optuna's distributions, which know nothing of graphs."""
    return {name: _distribution(variable) for name, variable in space.variables.items()}


def _distribution(variable: Variable) -> BaseDistribution:
    if isinstance(variable, Integer):
        arguments = variable.arguments
        return IntDistribution(variable.choices[0], variable.choices[-1], arguments["log"], arguments["step"])
    if isinstance(variable, Float):
        return FloatDistribution(variable.choices[0], variable.choices[-1], variable.arguments["log"])
    assert isinstance(variable, Binary | Categorical | Ordinal)
    return CategoricalDistribution(variable.choices)


def build(columns: Mapping[str, Column], constraint: Constraint | None, missing: Callable[[str], None] | None) -> Space:
    """The engine's space. The constraint sees the native values of the parameters.

    missing: called with the name of a parameter that the constraint asks for and the space does not have; the params
    then count as permitted. None: that is an error.
    """
    variables = {name: each.variable for name, each in columns.items()}
    if constraint is None:
        return Space(variables)
    odd = {name: dict(zip(each.variable.choices, each.values, strict=True))
           for name, each in columns.items() if each.relabelled}  # fmt: skip

    def permits(params: Params) -> bool:
        real = params | {name: values[params[name]] for name, values in odd.items()}
        return permitted(constraint, real, missing)

    return Space(variables, permits)


def permitted(constraint: Constraint, params: Params, missing: Callable[[str], None] | None) -> bool:
    """The constraint's verdict; see `build` for `missing`."""
    try:
        return bool(constraint(params))
    except KeyError as error:
        name = error.args[0] if error.args else None
        if missing is None or not isinstance(name, str) or name in params:
            raise
        missing(name)
        return True


class Common:
    """The parameters that every trial with a result asked for, each with its latest distribution.

    The latest is that of the trial with the highest number. A name with more than DYNAMIC distributions is left out.
    """

    def __init__(self) -> None:
        self.asked: set[str] = set()
        """Names that any finished trial asked for."""
        self._shared: set[str] | None = None
        self._latest: FrozenTrial | None = None
        self._variants: dict[str, list[BaseDistribution]] = {}

    def add(self, trial: FrozenTrial) -> None:
        """Take a finished trial into account."""
        self.asked |= trial.distributions.keys()
        if trial.state not in (TrialState.COMPLETE, TrialState.PRUNED):
            return
        names = set(trial.distributions)
        self._shared = names if self._shared is None else self._shared & names
        if self._latest is None or trial.number > self._latest.number:
            self._latest = trial
        for name, each in trial.distributions.items():
            known = self._variants.setdefault(name, [])
            if each not in known:
                known.append(each)

    def distributions(self) -> Distributions | None:
        """Distributions by name, in the order of names, x2 before x10. None while no trial has a result."""
        if self._shared is None or self._latest is None:
            return None
        names = sorted((name for name in self._shared if len(self._variants[name]) <= DYNAMIC), key=natural)
        return {name: self._latest.distributions[name] for name in names}


def provisional(trials: Sequence[FrozenTrial]) -> Distributions:
    """The distributions to use while no trial has a result: those of the trial that asked for most."""
    fullest = max(trials, key=lambda t: len(t.distributions), default=None)
    if fullest is None:
        return {}
    return {name: fullest.distributions[name] for name in sorted(fullest.distributions, key=natural)}


def natural(name: str) -> list[str | int]:
    """A sorting key that orders numbers in names by value. Variables next to each other may interact."""
    return [int(part) if i % 2 else part for i, part in enumerate(re.split(r"([0-9]+)", name))]
