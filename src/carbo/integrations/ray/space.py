"""Ray Tune's search spaces as carbo's, and its nested configs as carbo's flat params."""

from __future__ import annotations

import copy
import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

from carbo.errors import CarboError, SpaceError
from carbo.integrations.columns import (
    STEPS,
    Column,
    Points,
    integers,
    most_levels,
    multiples,
    of_variable,
    ruler,
    same,
)
from carbo.space.choices import as_native, is_label, listing, refuse
from carbo.space.space import Params, Space
from carbo.space.variables import DEFAULT_POINTS, Categorical, Float, Ordinal

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


class RaySpace:
    """The engine's space, and the translation between its params and Ray's configs.

    Names are those that Ray gives nested keys, as in "model/depth".

    constants: entries of a config that are not searched.
    """

    def __init__(self, space: Space, columns: Mapping[str, Column], constants: Config) -> None:
        self.space, self._columns, self._constants = space, dict(columns), constants
        nested: Config = {}
        for name in self._columns:
            _place(nested, name, None)  # SpaceError now, for names that cannot be nested

    def config(self, params: Params) -> Config:
        """The nested config of the engine's params."""
        config = copy.deepcopy(self._constants)
        for name, label in params.items():
            each = self._columns[name]
            position = each.variable.position(label)
            assert position is not None
            _place(config, name, each.values[position])
        return config

    def params(self, config: Mapping[str, Any]) -> Params:
        """The engine's params of a config, nested or flat. Other keys are ignored. SpaceError outside the space."""
        return {name: self._label(name, each, config) for name, each in self._columns.items()}

    def _label(self, name: str, each: Column, config: Mapping[str, Any]) -> Any:
        value = as_native(_found(config, name))
        position = _position(each, value)
        if position is None:
            values = listing([repr(v) for v in each.values])
            refuse(name, f"one of {values}", repr(value), "leave that point out")
        return each.variable.choices[position]


def of_space(space: Space) -> RaySpace:
    """The translation of a carbo.Space."""
    return RaySpace(space, {name: of_variable(each) for name, each in space.variables.items()}, {})


def of_config(config: Mapping[str, Any], points: Points = DEFAULT_POINTS) -> RaySpace | None:
    """The translation of a Ray Tune config. None if nothing in it is to be searched; SpaceError if carbo cannot."""
    _, searched, grids = parse_spec_vars(dict(config))
    for path, _ in grids:
        refuse(_name(path), "a range or a choice", "grid_search", "use tune.choice: no point is tried twice")
    parameters = {_name(path): parameter(_name(path), each, points) for path, each in searched}
    if isinstance(points, Mapping) and (odd := sorted(set(points) - set(parameters))):
        raise SpaceError(f"points: expected names out of {listing(sorted(parameters))}, got {odd[0]!r}; correct it")
    if not parameters:
        return None
    space = Space({name: each.variable for name, each in parameters.items()})
    return RaySpace(space, parameters, _constants(config))


def parameter(name: str, domain: Any, points: Points = DEFAULT_POINTS) -> Column:
    """The column of one of Ray Tune's domains."""
    sampler = domain.get_sampler()
    step = sampler.q if isinstance(sampler, sample.Quantized) else None
    sampler = sampler.sampler if isinstance(sampler, sample.Quantized) else sampler
    log = isinstance(sampler, sample.LogUniform)
    if isinstance(domain, sample.Categorical):
        return _choices(name, domain.categories)
    if not isinstance(domain, sample.Integer | sample.Float) or isinstance(sampler, sample.Normal):
        refuse(name, "a choice or a bounded range", type(domain).__name__, "give it bounds, or list its values")
    if isinstance(domain, sample.Float) and step is None:
        made = Float(domain.lower, domain.upper, most_levels(points, name), log)
        levels: Sequence[Any] = made.domain(name).choices
        return Column(made, levels, ruler(levels, log))
    most = most_levels(points, name, None if log else STEPS)
    if isinstance(domain, sample.Integer) and step in (None, 1):  # only these exclude the upper bound
        levels = integers(domain.lower, domain.upper - 1, log, most)
    else:
        assert step is not None
        levels = _multiples(domain, step, log, most)
    if not levels:
        refuse(name, "a range with a value in it", domain.domain_str, "widen it")
    return Column(Ordinal(levels), levels, ruler(levels, log))


def _multiples(domain: Any, step: float, log: bool, most: int) -> list[Any]:
    """The multiples of step within the bounds, as integers for integer domains."""
    slack = 1e-9
    first, last = math.ceil(domain.lower / step - slack), math.floor(domain.upper / step + slack)
    return [domain.cast(v) for v in multiples(step, integers(first, last, log, most))]


# ---------------------------------------------------------------- choices and names


def _choices(name: str, categories: Iterable[Any]) -> Column:
    values: list[Any] = []
    for value in map(as_native, categories):
        if any(parse_spec_vars({"value": value})[1:]):
            refuse(name, "plain values as choices", "a choice that holds a search space", "list the combinations")
        if not any(same(value, each) for each in values):  # Ray's users write a value twice to make it likelier
            values.append(value)
    labels = [value if is_label(value) else ("choice", i, repr(value)) for i, value in enumerate(values)]
    return Column(Categorical(labels), values)


def _position(column: Column, value: Any) -> int | None:
    """As `Column.position`, but a text is no number, and True is not 1."""
    boolean = isinstance(value, bool)
    if column.ruler is not None and (boolean or not isinstance(value, numbers.Real)):
        return None
    position = column.position(value)
    return position if position is not None and isinstance(column.values[position], bool) == boolean else None


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
