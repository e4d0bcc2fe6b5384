"""The errors of the tuner. Their messages are one line."""

from __future__ import annotations

from carbo.errors import CarboError


class StudyError(CarboError, ValueError):
    """A study file, a storage or a study in it cannot be used as it is."""


class ExpressionError(CarboError, ValueError):
    """A constraint expression cannot be read, or has no value for some params."""


class EvaluationFailed(CarboError):
    """An evaluation gave no value; the message is the reason."""


class Interrupted(CarboError):
    """An evaluation was stopped on purpose before its end. It is no failure."""
