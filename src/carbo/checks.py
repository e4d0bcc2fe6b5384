"""Checks of what users pass: settings, seeds, values. Wrong ones raise DataError or SettingsError."""

from __future__ import annotations

import dataclasses
import math
import numbers
import reprlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from carbo.errors import DataError, SettingsError
from carbo.settings import DEFAULT, PAPER, Settings, preset


def resolve(name: str, settings: Settings | Mapping[str, Any] | None, replicate: bool | None = None) -> Settings:
    """The settings that result from a preset's name, changes to the preset, and `replicate`."""
    chosen = preset(name)
    if isinstance(settings, Settings):
        chosen = settings
    elif isinstance(settings, Mapping):
        chosen = chosen.changed(settings)
    elif settings is not None:
        raise SettingsError(f"settings: expected a Settings or a mapping, got {type(settings).__name__}")
    if chosen.kernel not in (DEFAULT.kernel, PAPER.kernel):
        from carbo.surrogate.surrogate import kernel_maker  # imported late: it takes long

        kernel_maker(chosen.kernel)  # checks its name
    if chosen.acquisition != DEFAULT.acquisition:
        from carbo.acquisition.functions import acquisition  # imported late: it takes long

        acquisition(chosen.acquisition)  # checks its name
    return chosen if replicate is None else dataclasses.replace(chosen, replicate=replicate)


def limit_initial(chosen: Settings, given: Settings | Mapping[str, Any] | None, budget: int | None) -> Settings:
    """The settings, with `initial` at most a third of the budget unless the user gave `initial`."""
    by_user = isinstance(given, Settings) or (given is not None and "initial" in given)
    if by_user or budget is None:
        return chosen
    return chosen.changed({"initial": max(1, min(chosen.initial, budget // 3))})


def generator(seed: int | None) -> np.random.Generator:
    """The random generator of a seed; None seeds it from the machine."""
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, numbers.Integral) or seed < 0):
        raise DataError(f"seed: expected a whole number >= 0, or None for a different run each time, got {seed!r}")
    return np.random.default_rng(None if seed is None else int(seed))


def as_value(value: Any) -> float:
    """A told value as a float; NaN for a failure. Raises DataError for a value that is no number."""
    if value is None:
        return math.nan
    if isinstance(value, np.ndarray) and value.size == 1:
        value = value.reshape(()).item()
    if isinstance(value, bool | np.bool_ | np.timedelta64) or not isinstance(value, numbers.Real):
        raise DataError(
            f"value: expected a number, or None for a failed evaluation, got {reprlib.repr(value)}, "
            f"a {type(value).__name__}; make one number of it"
        )
    try:
        number = float(value)
    except OverflowError:  # an integer beyond the range of a float counts as infinite
        return math.nan
    return number if math.isfinite(number) else math.nan


def as_list(what: str, given: Any) -> list[Any]:
    """The points or values that were passed to `tell`, as a list."""
    try:
        if isinstance(given, Mapping | str):
            raise TypeError
        return list(given)
    except TypeError:
        raise DataError(
            f"tell: expected one dict of parameters and a number, or a list of each, got {given!r} for the {what}"
        ) from None
