"""Made-up runs for tests of tables and figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lab.runs.record import Record


def record(
    problem: str = "branin",
    method: str = "default",
    run: int = 1,
    values: Sequence[float] = (),
    *,
    relocated: int | None = None,
    settings: dict[str, Any] | None = None,
    seconds: float | Sequence[float] = 0.5,
    **fields: Any,
) -> Record:
    """A run with these values, the first two of them initial."""
    n = len(values)
    times = np.broadcast_to(np.asarray(seconds, dtype=float), (max(n - 2, 0),))
    given: dict[str, Any] = {
        "instance": {},
        "seed": run,
        "initial": 2,
        "sizes": (2, 2),
        "rows": np.zeros((n, 2), dtype=np.intp),
        "versions": {"python": "3.11.0", "carbo": "0.1.0"},
        "revision": "abc123",
        "machine": {"cpu": "an abacus", "cores": 2},
        "finished": "2026-01-01T00:00:00Z",
    }
    return Record(problem=problem, method=method, run=run, relocated=relocated, settings=settings or {},
                  values=np.array(values, dtype=float), seconds=np.array(times), **{**given, **fields})  # fmt: skip


def falling(end: float, n: int, start: float = 30.0) -> list[float]:
    """n values that fall evenly from start to end."""
    return [float(value) for value in np.linspace(start, end, n)]
