"""Parallel workers: a pool of processes evaluates, and values are told in the order they arrive. Takes some seconds.

A point that is being evaluated is pending: the optimiser does not suggest it again, and takes it into account for the
next suggestions. For several machines use `carbo tune`, or carbo.CarboSampler with a database.
"""

from __future__ import annotations

import time
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from typing import Any

import numpy as np

import carbo

WORKERS, BUDGET = 2, 24
SPACE = carbo.Space(
    {
        "tile": carbo.Ordinal([8, 16, 32, 64, 128]),
        "unroll": carbo.Ordinal([1, 2, 4, 8]),
        "layout": carbo.Categorical(["rows", "columns", "blocks"]),
        "prefetch": carbo.Binary(),
    }
)


def kernel_time(params: dict[str, Any]) -> float:
    """A made-up kernel; some settings take longer to measure than others, so values arrive in another order."""
    time.sleep(0.001 * params["tile"])
    if params["tile"] * params["unroll"] > 512:
        raise MemoryError("too few registers")
    value = abs(params["tile"] - 32) / 16 + abs(params["unroll"] - 4) / 2 - 0.5 * params["prefetch"]
    return float(value + {"rows": 1.0, "columns": 2.0, "blocks": 0.0}[params["layout"]])


def main() -> None:
    optimizer = carbo.Optimizer(SPACE, seed=0, settings={"initial": 8})
    running: dict[Future[float], dict[str, Any]] = {}
    with ProcessPoolExecutor(WORKERS) as pool:
        while len(optimizer) < BUDGET:
            while len(running) < WORKERS and len(optimizer) + len(running) < BUDGET:
                params = optimizer.ask()
                running[pool.submit(kernel_time, params)] = params
            for ended in wait(running, return_when=FIRST_COMPLETED).done:
                failed = ended.exception() is not None
                optimizer.tell(running.pop(ended), None if failed else ended.result())
    points, values = optimizer.history()
    assert optimizer.best is not None
    assert len({tuple(point.values()) for point in points}) == BUDGET  # no point twice
    print(f"best of {BUDGET}: {optimizer.best.value} with {optimizer.best.params}")
    print(f"{int(np.isnan(values).sum())} failed")


if __name__ == "__main__":
    main()
