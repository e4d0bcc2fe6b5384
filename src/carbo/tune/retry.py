"""Calls to a database that does not answer are repeated, so that the restart of a server ends no study."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from carbo.tune.errors import StudyError
from carbo.tune.formatting import plain
from carbo.tune.storage import explain_errors

T = TypeVar("T")

LIMIT, LAST = 600.0, 5.0
"""Seconds to wait for a database that does not answer: usually, and when the tuner is to stop."""
FIRST_PAUSE, SILENCE, LONGEST_PAUSE = 0.1, 0.4, 5.0
"""Seconds between attempts: the first pause; the pause from which on the user is told; the longest pause."""
HOPELESS = ("malformed", "not a database", "no such table", "does not exist")
"""Words in errors that waiting does not mend."""
START, AWAY = 120.0, 10.0
"""Seconds to wait for a server at the beginning: while it says that it is starting, and while it does not answer."""
STARTING = ("starting up", "shutting down", "not yet accepting", "recovery mode")
SILENT = ("refused", "server closed", "terminating connection", "reset by peer")
"""Words in errors of a server that is starting, and of one that does not answer yet."""


def when_ready(open_it: Callable[[], T]) -> T:
    """The result of `open_it`, repeated until the server has started. Its StudyError if that takes too long."""
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
    """Repeats calls to the database while it does not answer."""

    def __init__(self, url: str, stopping: threading.Event, say: Callable[[str], None]) -> None:
        self._url, self._stopping, self._say = url, stopping, say

    @property
    def stopping(self) -> bool:
        """Whether the tuner is to stop."""
        return self._stopping.is_set()

    def __call__(self, action: Callable[[], T]) -> T:
        """The action's result. StudyError if the database does not come back."""
        import optuna
        import sqlalchemy

        began, pause, said_so = time.monotonic(), FIRST_PAUSE, False
        while True:
            try:
                return action()
            except (optuna.exceptions.StorageInternalError, sqlalchemy.exc.SQLAlchemyError) as error:
                said = _short(error)
                over = time.monotonic() - began > (LAST if self.stopping else LIMIT)
                if over or any(sign in said for sign in HOPELESS):
                    with explain_errors(self._url):
                        raise
                if not said_so and pause >= SILENCE:
                    said_so = True
                    self._say(f"the database does not answer, waiting for it ({said})")
            if self._stopping.wait(pause):
                time.sleep(FIRST_PAUSE)
            pause = min(2 * pause, LONGEST_PAUSE)


def _short(error: BaseException) -> str:
    """The message of the database itself, on one line."""
    while error.__cause__ is not None:
        error = error.__cause__
    return plain(str(getattr(error, "orig", None) or error))[:200]
