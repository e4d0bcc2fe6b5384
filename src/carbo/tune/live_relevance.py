"""Relevances for the live page, computed in a thread of their own while evaluations run."""

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
"""The pause between two computations, in durations of the last one."""


class Insight:
    """Each variable's share of the variation, the largest first; empty until the model has seen enough."""

    def __init__(self, sampler: CarboSampler, study: optuna.Study) -> None:
        self._sampler, self._study = sampler, study
        self._thread: threading.Thread | None = None
        self._next, self._known = 0.0, 0
        self.shares: dict[str, float] = {}

    def consider(self, now: Snapshot) -> None:
        """Start a new computation, if there are new values and the last one is long enough ago."""
        done = count(now.rows, ("done",))
        busy = self._thread is not None and self._thread.is_alive()
        if busy or done < FEW or done == self._known or time.monotonic() < self._next:
            return
        self._known = done
        self._thread = threading.Thread(target=self._compute, daemon=True)
        self._thread.start()

    def _compute(self) -> None:
        began = time.monotonic()
        try:
            found = relevance(self._sampler, self._study)
        except Exception:  # noqa: BLE001 - this is only shown, and the next attempt may succeed
            found = None
        if found is not None:
            self.shares = {name: share.mean for name, share in found.variables.items()}
        self._next = time.monotonic() + REST * (time.monotonic() - began)
