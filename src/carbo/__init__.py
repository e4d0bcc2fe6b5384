"""carbo: combinatorial Bayesian optimisation on the graph Cartesian product."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from carbo.errors import (
    CarboError,
    DataError,
    NumericalError,
    SettingsError,
    SpaceError,
    SpaceExhausted,
    StateError,
)
from carbo.minimize import minimize
from carbo.settings import DEFAULT, PAPER, Settings
from carbo.space import Space
from carbo.variables import Binary, Categorical, Float, Integer, Ordinal

if TYPE_CHECKING:
    from carbo.optimizer import Best, Optimizer
    from carbo.optuna_sampler import CarboSampler as CarboSampler
    from carbo.ray_searcher import CarboSearcher as CarboSearcher

    __version__: str

_LATER = {"Best": "carbo.optimizer", "Optimizer": "carbo.optimizer"}
"""Names whose module takes several times as long to import as all the others: imported when they are first used."""

_OPTIONAL = {
    "CarboSampler": ("carbo.optuna_sampler", "optuna", "tune"),
    "CarboSearcher": ("carbo.ray_searcher", "ray", "ray"),
}
"""Names that need another package: the module, that package, and the extra that installs it."""


def __getattr__(name: str) -> Any:
    """What is imported when it is first used: the engine, doors to other packages, modules, the version."""
    if name not in _OPTIONAL:
        globals()[name] = value = _later(name)
        return value
    module, package, extra = _OPTIONAL[name]
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != package:
            raise
        raise CarboError(
            f"carbo.{name} needs {package}, which is not installed: pip install 'carbo[{extra}]'"
        ) from None


def _later(name: str) -> Any:
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    if name == "__version__":
        from importlib.metadata import version

        return version("carbo")
    if name.startswith("_") or find_spec(f"carbo.{name}") is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"carbo.{name}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_OPTIONAL})


__all__ = [
    "DEFAULT",
    "PAPER",
    "Best",
    "Binary",
    "CarboError",
    "Categorical",
    "DataError",
    "Float",
    "Integer",
    "NumericalError",
    "Optimizer",
    "Ordinal",
    "Settings",
    "SettingsError",
    "Space",
    "SpaceError",
    "SpaceExhausted",
    "StateError",
    "minimize",
]
