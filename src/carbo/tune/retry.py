"""A database that goes away for a while, as when its server is restarted, ends no study and loses no value."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from carbo.tune.errors import StudyError
from carbo.tune.formatting import plain
from carbo.tune.storage import explained

T = TypeVar("T")

LIMIT, LAST = 600.0, 5.0
"""Seconds that an unreachable database is waited for, and once the tuner is to stop."""
FIRST_PAUSE, SILENCE, LONGEST_PAUSE = 0.1, 0.4, 5.0
"""Seconds between attempts at first, from when on something is said about them, and at most."""
HOPELESS = ("malformed", "not a database", "no such table", "does not exist")
"""What is said of a database that waiting will not mend."""
START, AWAY = 120.0, 10.0
"""Seconds that a server is waited for at the beginning while it says that it is starting, and while it says nothing."""
STARTING = ("starting up", "shutting down", "not yet accepting", "recovery mode")
SILENT = ("refused", "server closed", "terminating connection", "reset by peer")
"""What is said of a server that is starting, and of one that may be about to."""


def when_ready(open_it: Callable[[], T]) -> T:
    """What `open_it` returns, once the server has started; its StudyError where that takes too long, or is no help."""
    began = heard = time.monotonic()
    while True:
        try:
            return open_it()
        except StudyError as error:
            now, said = time.monotonic(), str(error)
            starting = any(sign in said for sign in STARTING)
            heard = now if starting else heard
            if now - began > START or not (starting or (any(sign in said for sign in SILENT) and now - heard < AWAY)):
                raise
        time.sleep(FIRST_PAUSE)


class Patience:
    """Calls what touches the database, again and again while the database does not answer."""

    def __init__(self, url: str, stopping: threading.Event, say: Callable[[str], None]) -> None:
        self._url, self._stopping, self._say = url, stopping, say

    @property
    def stopping(self) -> bool:
        """Whether the tuner is to stop."""
        return self._stopping.is_set()

    def __call__(self, action: Callable[[], T]) -> T:
        """The action's result; StudyError when the database stays away."""
        import optuna
        import sqlalchemy

        began, pause, told = time.monotonic(), FIRST_PAUSE, False
        while True:
            try:
                return action()
            except (optuna.exceptions.StorageInternalError, sqlalchemy.exc.SQLAlchemyError) as error:
                said = _short(error)
                over = time.monotonic() - began > (LAST if self.stopping else LIMIT)
                if over or any(sign in said for sign in HOPELESS):
                    with explained(self._url):
                        raise
                if not told and pause >= SILENCE:
                    told = True
                    self._say(f"the database does not answer, waiting for it ({said})")
            if self._stopping.wait(pause):
                time.sleep(FIRST_PAUSE)
            pause = min(2 * pause, LONGEST_PAUSE)


def _short(error: BaseException) -> str:
    """What the database itself has said."""
    while error.__cause__ is not None:
        error = error.__cause__
    return plain(str(getattr(error, "orig", None) or error))[:200]
