"""Settings and fixtures that tests share."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings

# Examples are the same in every run, so that more of them would only make every run longer.
settings.register_profile("carbo", derandomize=True, deadline=None, max_examples=60)
settings.load_profile("carbo")

# Where bytecode is not to be written, each of some three hundred processes that tests start would compile carbo again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell without job control starts what is in the background so, and all that it starts in turn: the tests that
    # interrupt a tuner would wait for ever.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """First those that wait for servers more than they compute, so that no worker is left waiting at the end."""
    items.sort(key=lambda item: item.path.stem not in ("test_tune_postgres", "test_ray_searcher"))


@pytest.fixture
def quiet_optuna() -> Iterator[None]:
    """Optuna logs errors only."""
    import optuna

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(before)
