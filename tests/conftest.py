"""Settings and fixtures that tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

settings.register_profile("carbo", derandomize=True, deadline=None)
settings.load_profile("carbo")


@pytest.fixture
def quiet_optuna() -> Iterator[None]:
    """Optuna logs errors only."""
    import optuna

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(before)
