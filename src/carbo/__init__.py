"""carbo: combinatorial Bayesian optimisation on the graph Cartesian product."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from carbo.errors import CarboError, DataError, NumericalError, SettingsError, SpaceError, SpaceExhausted, StateError
from carbo.minimize import minimize
from carbo.settings import DEFAULT, PAPER, Settings
from carbo.space.space import Space
from carbo.space.variables import Binary, Categorical, Float, Integer, Ordinal

if TYPE_CHECKING:
    from carbo.integrations.optuna.sampler import CarboSampler as CarboSampler
    from carbo.integrations.ray.searcher import CarboSearcher as CarboSearcher
    from carbo.optimizer import Best, Optimizer

    __version__: str

_LATER = {"Best": "carbo.optimizer", "Optimizer": "carbo.optimizer"}
"""Names that are imported at their first use, because their modules take long to import."""

_OPTIONAL = {
    "CarboSampler": ("carbo.integrations.optuna.sampler", "optuna", "tune"),
    "CarboSearcher": ("carbo.integrations.ray.searcher", "ray", "ray"),
}
"""Names that need another package: the module of the name, the package, and the extra that installs it."""


def __getattr__(name: str) -> Any:
    """Names that are imported at their first use: the optimiser, classes for other packages, the version."""
    if name in _OPTIONAL:
        return _optional(name)
    if name in _LATER:
        globals()[name] = value = getattr(import_module(_LATER[name]), name)
        return value
    if name == "__version__":
        from importlib.metadata import version

        return version("carbo")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _optional(name: str) -> Any:
    module, package, extra = _OPTIONAL[name]
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != package:
            raise
        raise CarboError(
            f"carbo.{name} needs {package}, which is not installed: pip install 'carbo[{extra}]'"
        ) from None


def __dir__() -> list[str]:
    return __all__


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
