"""Arguments of the Optuna sampler: read, checked, and refused with an error that says what is expected."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.study import Study

from carbo.errors import SettingsError, SpaceError
from carbo.integrations.optuna.space import Distributions, Wishes, distributions
from carbo.settings import Settings
from carbo.space.space import Constraint, Space


def refuse_many(study: Study) -> None:
    if len(study.directions) != 1:
        raise ValueError(f"CarboSampler: expected a study of one objective, got {len(study.directions)}; "
                         "use a multi-objective sampler, or combine the objectives into one number")  # fmt: skip


def read_space(search_space: Any) -> Distributions | None:
    """Optuna's distributions by name; None if no space was given."""
    if search_space is None:
        return None
    if isinstance(search_space, Space):
        return distributions(search_space)
    if not isinstance(search_space, Mapping) or not search_space:
        raise SpaceError(f"search_space: expected a carbo.Space, or distributions by name, got {search_space!r}")
    for name, each in search_space.items():
        if not isinstance(name, str) or not isinstance(each, BaseDistribution):
            raise SpaceError(f"search_space: expected an Optuna distribution for {name!r}, got {each!r}; "
                             "for example optuna.distributions.IntDistribution(1, 8)")  # fmt: skip
    return dict(search_space)


def read_constraint(constraint: Any, space: Any) -> Constraint | None:
    """The constraint: that of the space, or the argument. Both together are refused."""
    if constraint is not None and not callable(constraint):
        raise SpaceError(f"constraint: expected a function of params that returns True or False, got {constraint!r}")
    inside = space.constraint if isinstance(space, Space) else None
    if inside is not None and constraint is not None:
        raise SpaceError("constraint: expected one, got the space's and another; leave one out")
    return constraint if inside is None else inside


def read_function(function: Any) -> Any:
    if function is not None and not callable(function):
        raise SettingsError(f"constraints_func: expected a function of a trial that returns numbers, got {function!r}")
    return function


def read_sampler(sampler: Any) -> BaseSampler | None:
    if sampler is not None and not isinstance(sampler, BaseSampler):
        raise SettingsError(f"independent_sampler: expected an Optuna sampler, got {sampler!r}; "
                            "for example optuna.samplers.RandomSampler()")  # fmt: skip
    return sampler


def read_wishes(points: Any, ordinal: Any, graphs: Any, space: Any) -> Wishes:
    """What the user says about parameters by name. A carbo.Space says all of it itself."""
    wishes = Wishes(_points(points), _names(ordinal), _graphs(graphs))
    if not isinstance(space, Space):
        return wishes
    if wishes != Wishes():
        raise SpaceError("search_space: expected a carbo.Space to describe its variables, got ordinal=, graphs= "
                         "or points= beside it; use Ordinal, Categorical(graph=), Float(points=) inside")  # fmt: skip
    return wishes._replace(variables=space.variables)


def _points(points: Any) -> int | Mapping[str, int]:
    for each in points.values() if isinstance(points, Mapping) else [points]:
        if isinstance(each, bool) or not isinstance(each, numbers.Integral) or each < 1:
            raise SpaceError(f"points: expected whole numbers >= 1, got {each!r}; 51 is usual")
    return dict(points) if isinstance(points, Mapping) else int(points)


def _names(ordinal: Any) -> frozenset[str]:
    names = None if isinstance(ordinal, str) or not isinstance(ordinal, Iterable) else list(ordinal)
    if names is None or not all(isinstance(name, str) for name in names):
        raise SpaceError(f"ordinal: expected a list of parameter names, got {ordinal!r}")
    return frozenset(names)


def _graphs(graphs: Any) -> dict[str, Any]:
    if graphs is not None and not isinstance(graphs, Mapping):
        raise SpaceError(f"graphs: expected graphs by parameter name, got {type(graphs).__name__}")
    return dict(graphs or {})


def with_startup(settings: Settings, n_startup_trials: Any) -> Settings:
    """The settings with that many random points first; unchanged for None."""
    if n_startup_trials is None:
        return settings
    if isinstance(n_startup_trials, bool) or not isinstance(n_startup_trials, numbers.Integral) or n_startup_trials < 0:
        raise SettingsError(f"n_startup_trials: expected a whole number >= 0, got {n_startup_trials!r}")
    return settings.changed({"initial": max(1, int(n_startup_trials))})


def constraint_values(values: Any) -> list[float]:
    """What `constraints_func` returned, as floats. ValueError for NaN."""
    found = [float(v) for v in values]
    if any(math.isnan(v) for v in found):
        raise ValueError(f"constraints_func: expected numbers, got {found}; a violated constraint is above zero")
    return found
