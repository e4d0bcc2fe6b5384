"""carbo: combinatorial Bayesian optimisation on the graph Cartesian product."""

from importlib.metadata import version

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

__version__ = version("carbo")

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
