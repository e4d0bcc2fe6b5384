"""carbo: combinatorial Bayesian optimisation on the graph Cartesian product."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
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
from carbo.optimizer import Best, Optimizer
from carbo.settings import DEFAULT, PAPER, Settings
from carbo.space import Space
from carbo.variables import Binary, Categorical, Float, Integer, Ordinal

if TYPE_CHECKING:
    from carbo.optuna_sampler import CarboSampler as CarboSampler
    from carbo.ray_searcher import CarboSearcher as CarboSearcher

__version__ = version("carbo")

_OPTIONAL = {
    "CarboSampler": ("carbo.optuna_sampler", "optuna", "tune"),
    "CarboSearcher": ("carbo.ray_searcher", "ray", "ray"),
}
"""Names that need another package: the module, that package, and the extra that installs it."""


def __getattr__(name: str) -> Any:
    """Doors to other packages, imported when they are first used."""
    if name not in _OPTIONAL:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, package, extra = _OPTIONAL[name]
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != package:
            raise
        raise CarboError(
            f"carbo.{name} needs {package}, which is not installed: pip install 'carbo[{extra}]'"
        ) from None


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
