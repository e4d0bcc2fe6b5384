"""Ray Tune's search spaces as carbo's, and its nested configs as carbo's flat params."""

from __future__ import annotations

import copy
import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from carbo.errors import CarboError, SpaceError
from carbo.space.choices import is_label, listing, native, refuse
from carbo.space.space import Params, Space
from carbo.space.variables import DEFAULT_POINTS, Categorical, Float, Integer, Ordinal, Variable

STEPS = 201
"""Most levels of integers and quantised numbers without `points` of their own; longer ranges get this many."""

Points = int | Mapping[str, int]
Config = dict[str, Any]


def ray_tune(module: str) -> Any:
    """A module of Ray Tune. CarboError where it, or something that it needs, is not installed."""
    try:
        return import_module(f"ray.tune.{module}")
    except ImportError as error:
        raise CarboError(
            f"carbo.CarboSearcher needs Ray Tune, which is not installed ({error}): pip install 'carbo[ray]'"
        ) from None


sample = ray_tune("search.sample")
parse_spec_vars = ray_tune("search.variant_generator").parse_spec_vars


class Parameter(NamedTuple):
    """The engine's variable, the value that each of its positions stands for, and how numbers are compared.

    numeric: None where only the values themselves count; else whether the nearest one is found on a log scale.
    """

    variable: Variable
    values: Sequence[Any]
    numeric: bool | None = None

    def position(self, value: Any) -> int | None:
        """Where a value stands, of numbers within the range the nearest level; None for what is not there."""
        exact = next((i for i, each in enumerate(self.values) if _same(each, value)), None)
        if exact is not None or self.numeric is None or not _within(value, self.values):
            return exact
        scale = math.log if self.numeric else float
        place = scale(value)
        return min(range(len(self.values)), key=lambda i: abs(scale(self.values[i]) - place))


class Domain:
    """The engine's space under the names that Ray gives nested keys ("model/depth"), and the way from and to configs.

    constants: what a config holds beside the parameters.
    """

    def __init__(self, space: Space, parameters: Mapping[str, Parameter], constants: Config) -> None:
        self.space, self._parameters, self._constants = space, dict(parameters), constants
        nested: Config = {}
        for name in self._parameters:
            _place(nested, name, None)  # SpaceError now, for names that cannot be nested

    def config(self, params: Params) -> Config:
        """The nested config of the engine's params."""
        config = copy.deepcopy(self._constants)
        for name, label in params.items():
            each = self._parameters[name]
            position = each.variable.position(label)
            assert position is not None
            _place(config, name, each.values[position])
        return config

    def params(self, config: Mapping[str, Any]) -> Params:
        """The engine's params of a config, nested or flat; other keys are left aside. SpaceError for odd values."""
        return {name: self._label(name, each, config) for name, each in self._parameters.items()}

    def _label(self, name: str, each: Parameter, config: Mapping[str, Any]) -> Any:
        value = native(_found(config, name))
        position = each.position(value)
        if position is None:
            values = listing([repr(v) for v in each.values])
            refuse(name, f"one of {values}", repr(value), "leave that point out")
        return each.variable.choices[position]


def of_space(space: Space) -> Domain:
    """The domain of a carbo.Space."""
    return Domain(space, {name: _own(each) for name, each in space.variables.items()}, {})


def of_config(config: Mapping[str, Any], points: Points = DEFAULT_POINTS) -> Domain | None:
    """The domain of a Ray Tune config; None where it holds nothing to search. SpaceError for what carbo cannot."""
    _, searched, grids = parse_spec_vars(dict(config))
    for path, _ in grids:
        refuse(_name(path), "a range or a choice", "grid_search", "use tune.choice: no point is tried twice")
    parameters = {_name(path): parameter(_name(path), each, points) for path, each in searched}
    if isinstance(points, Mapping) and (odd := sorted(set(points) - set(parameters))):
        raise SpaceError(f"points: expected names out of {listing(sorted(parameters))}, got {odd[0]!r}; correct it")
    if not parameters:
        return None
    space = Space({name: each.variable for name, each in parameters.items()})
    return Domain(space, parameters, _constants(config))


def parameter(name: str, domain: Any, points: Points = DEFAULT_POINTS) -> Parameter:
    """The parameter of one of Ray Tune's domains."""
    sampler = domain.get_sampler()
    step = sampler.q if isinstance(sampler, sample.Quantized) else None
    sampler = sampler.sampler if isinstance(sampler, sample.Quantized) else sampler
    log = isinstance(sampler, sample.LogUniform)
    if isinstance(domain, sample.Categorical):
        return _choices(name, domain.categories)
    if not isinstance(domain, sample.Integer | sample.Float) or isinstance(sampler, sample.Normal):
        refuse(name, "a choice or a bounded range", type(domain).__name__, "give it bounds, or list its values")
    if isinstance(domain, sample.Float) and step is None:
        made = Float(domain.lower, domain.upper, _most(points, name), log)
        return Parameter(made, made.domain(name).choices, log)
    most = _most(points, name, None if log else STEPS)
    if isinstance(domain, sample.Integer) and step in (None, 1):  # only then is the upper bound not included
        levels: list[Any] = _levels(domain.lower, domain.upper - 1, log, most)
    else:
        assert step is not None
        levels = _multiples(domain, step, log, most)
    if not levels:
        refuse(name, "a range with a value in it", domain.domain_str, "widen it")
    return Parameter(Ordinal(levels), levels, log)


# ---------------------------------------------------------------- levels of numbers


def _most(points: Points, name: str, usual: int | None = None) -> int:
    """The most levels of a parameter; `usual` where the user has not named it."""
    if isinstance(points, Mapping):
        return points.get(name, usual or DEFAULT_POINTS)
    return usual or points


def _multiples(domain: Any, step: float, log: bool, most: int) -> list[Any]:
    """The multiples of step within the bounds, as ints for whole domains; floats without dust (0.3, not 0.30...04)."""
    slack = 1e-9
    first, last = math.ceil(domain.lower / step - slack), math.floor(domain.upper / step + slack)
    unit = Decimal(str(step))
    return [domain.cast(k * unit) for k in _levels(first, last, log, most)]


def _levels(low: int, high: int, log: bool, most: int) -> list[int]:
    """At most `most` whole numbers from low to high, both included, evenly spread (log: in the logarithm)."""
    if low >= high or most == 1:
        return [low][: high - low + 1]
    if log:
        return sorted({low, high, *np.rint(np.geomspace(low, high, most)[1:-1]).astype(int).tolist()})
    count = min(most, high - low + 1)
    return [low + i * (high - low) // (count - 1) for i in range(count)]


# ---------------------------------------------------------------- choices and names


def _choices(name: str, categories: Iterable[Any]) -> Parameter:
    values: list[Any] = []
    for value in map(native, categories):
        if any(parse_spec_vars({"value": value})[1:]):
            refuse(name, "plain values as choices", "a choice that holds a search space", "list the combinations")
        if not any(_same(value, each) for each in values):  # Ray's users write a value twice to make it likelier
            values.append(value)
    labels = [value if is_label(value) else ("choice", i, repr(value)) for i, value in enumerate(values)]
    return Parameter(Categorical(labels), values)


def _own(variable: Variable) -> Parameter:
    numeric = variable.arguments["log"] if isinstance(variable, Float | Integer) else None
    return Parameter(variable, variable.choices, numeric)


def _same(one: Any, two: Any) -> bool:
    """Equality as one truth value, True and 1 told apart."""
    if one is two:
        return True
    if isinstance(one, bool) != isinstance(two, bool):
        return False
    try:
        return bool(one == two or (one != one and two != two))  # noqa: PLR0124
    except (TypeError, ValueError):  # arrays
        return False


def _within(value: Any, levels: Sequence[Any]) -> bool:
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    return real and bool(levels[0] <= value <= levels[-1])


def _name(path: Sequence[Any]) -> str:
    if not all(isinstance(key, str) and "/" not in key for key in path):
        shown = "/".join(map(str, path))
        refuse(shown, "keys without '/' and no lists around it", repr(path), "rename the key, or search a plain dict")
    return "/".join(path)


def _constants(config: Mapping[str, Any]) -> Config:
    return {key: _constants(value) if isinstance(value, Mapping) else value
            for key, value in config.items() if not isinstance(value, sample.Domain)}  # fmt: skip


def _place(config: Config, name: str, value: Any) -> None:
    *parents, last = name.split("/")
    inside: Any = config
    for key in parents:
        inside = inside.setdefault(key, {}) if isinstance(inside, dict) else None
    if not isinstance(inside, dict) or last in inside:
        refuse(name, "a name that can be nested", "a value where a dict has to be", "rename one of the two")
    inside[last] = value


def _found(config: Mapping[str, Any], name: str) -> Any:
    if name in config:
        return config[name]
    inside: Any = config
    for key in name.split("/"):
        if not isinstance(inside, Mapping) or key not in inside:
            refuse(name, "a value for it", "none", "name every parameter")
        inside = inside[key]
    return inside
