"""A database that goes away for a while, as when its server is restarted, ends no study and loses no value."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from carbo.tune.errors import StudyError
from carbo.tune.storage import explained

T = TypeVar("T")

LIMIT, LAST = 600.0, 5.0
"""Seconds that an unreachable database is waited for, and once the tuner is to stop."""
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0


class Patience:
    """Calls what touches the database, again and again while the database does not answer."""

    def __init__(self, url: str, stopping: threading.Event, say: Callable[[str], None]) -> None:
        self._url, self._stopping, self._say = url, stopping, say

    def __call__(self, action: Callable[[], T]) -> T:
        """The action's result; StudyError when the database stays away."""
        import optuna
        import sqlalchemy

        began, pause = time.monotonic(), FIRST_PAUSE
        while True:
            try:
                return action()
            except (optuna.exceptions.StorageInternalError, sqlalchemy.exc.SQLAlchemyError) as error:
                if time.monotonic() - began > (LAST if self._stopping.is_set() else LIMIT):
                    with explained(self._url):
                        raise
                if pause == FIRST_PAUSE:
                    self._say(f"the database does not answer, waiting for it ({_short(error)})")
            if self._stopping.wait(pause):
                time.sleep(FIRST_PAUSE)
            pause = min(2 * pause, LONGEST_PAUSE)


def _short(error: BaseException) -> str:
    try:
        with explained(""):
            raise error
    except StudyError as explanation:
        return str(explanation)
