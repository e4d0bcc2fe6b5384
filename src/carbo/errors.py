"""The exceptions of carbo. Every message names the thing, what was expected, what was got, and the way out."""

from __future__ import annotations


class CarboError(Exception):
    """The parent of all errors that carbo raises on purpose."""


class SpaceError(CarboError, ValueError):
    """A variable, graph, constraint or point does not fit the search space."""


class NothingPermitted(SpaceError):
    """A constraint permits no point, as far as carbo can find out."""


class SpaceExhausted(CarboError):
    """Every permitted point has been evaluated or is pending."""


class DataError(CarboError, ValueError):
    """An observation, or a number of points, cannot be used."""


class SettingsError(CarboError, ValueError):
    """A setting has a value that carbo does not know or cannot use."""


class StateError(CarboError, ValueError):
    """A saved state does not belong to this version or to this space."""


class NumericalError(CarboError, ArithmeticError):
    """A covariance matrix stayed singular after every rung of the jitter ladder."""
