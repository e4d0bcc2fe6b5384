"""Which variables matter, worked out now and then beside the evaluations."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from carbo.tune.study_model import FEW, relevance
from carbo.tune.trials import count

if TYPE_CHECKING:
    import optuna

    from carbo.integrations.optuna.sampler import CarboSampler
    from carbo.tune.tuner import Snapshot

REST = 20.0
"""Rests this many times as long as the last look took."""


class Insight:
    """Shares of the variation by variable, the largest first; refreshed in a thread of its own."""

    def __init__(self, sampler: CarboSampler, study: optuna.Study) -> None:
        self._sampler, self._study = sampler, study
        self._thread: threading.Thread | None = None
        self._next, self._seen = 0.0, 0
        self.shares: dict[str, float] = {}

    def consider(self, now: Snapshot) -> None:
        """Look again, if there is something new and the last look is long enough ago."""
        done = count(now.rows, ("done",))
        busy = self._thread is not None and self._thread.is_alive()
        if busy or done < FEW or done == self._seen or time.monotonic() < self._next:
            return
        self._seen = done
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        began = time.monotonic()
        try:
            found = relevance(self._sampler, self._study)
        except Exception:  # noqa: BLE001 - this is only shown, and the next look may do better
            found = None
        if found is not None:
            self.shares = {name: share.mean for name, share in found.variables.items()}
        self._next = time.monotonic() + REST * (time.monotonic() - began)
