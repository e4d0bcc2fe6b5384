"""The time of one warm suggestion, also in units of one Cholesky factorisation timed in the same run.

There are four sizes (variables x values, observations), each with the paper's settings (10 samples, 20,020 starts).
The function is random, of order two, with a little noise. The rows are a "trail" like that of an optimiser (20 uniform
rows, then copies of one of the ten best rows with one to three variables redrawn), or all "uniform". Uniform rows take
longer: the posterior is wider, and rows have fewer values in common. The chain is burnt in first. Times are medians
over repeats, in seconds and in units of `dpotrf` at n = 250, which makes machines comparable.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any, NamedTuple

from lab.runs.machine import measured_apart


class Point(NamedTuple):
    """A size at which a suggestion is timed; `published` is the time of the published COMBO there, in units."""

    variables: int
    values: int
    observations: int
    published: int | None = None

    @property
    def name(self) -> str:
        kind = "binary" if self.values == 2 else f"x {self.values} categories"
        return f"{self.variables} {kind}, {self.observations} observations"


POINTS = (
    Point(28, 2, 50, 103_000),
    Point(60, 2, 100, 243_000),
    Point(60, 2, 250, 451_000),
    Point(25, 5, 250, 186_000),
)
LARGE = Point(60, 2, 1000)


def run(preset: str, threads: int, repeats: int, data: str, points: tuple[Point, ...] = POINTS) -> dict[str, Any]:
    """Time all points in a new process whose BLAS has so many threads; returns the report as a dict."""
    request = {"preset": preset, "threads": threads, "repeats": repeats, "data": data, "points": points}
    return measured_apart("lab.measure.speed", request, threads)


def measure(preset: str, threads: int, repeats: int, data: str, points: tuple[Point, ...]) -> dict[str, Any]:
    """Time all points in this process."""
    results = []
    from carbo.numerics.threads import limit_threads

    for point in points:
        print(f"timing {point.name} ...", file=sys.stderr, flush=True)
        with limit_threads(point.observations, threads):
            results.append(measure_point(point, preset, repeats, data))
    return {
        "preset": preset,
        "threads": threads,
        "repeats": repeats,
        "data": data,
        "unit": "one dpotrf at n = 250, timed beside each point",
        "points": results,
        "machine": {"system": platform.system(), "processor": platform.machine(), "cores": os.cpu_count()},
        "versions": {"python": platform.python_version(), **{p: version(p) for p in ("carbo", "numpy", "scipy")}},
    }


def measure_point(point: Point, preset: str, repeats: int, rows_kind: str) -> dict[str, Any]:
    """Seconds and units of one warm suggestion, by stage."""
    import numpy as np

    from carbo.acquisition.policy import Request, propose
    from carbo.inference import chain
    from carbo.settings import preset as preset_of
    from carbo.space.row_space import row_keys
    from carbo.space.space import Space
    from carbo.space.variables import Categorical
    from carbo.surrogate.surrogate import Belief, Observations, Surrogate

    rng = np.random.default_rng(0)
    space = Space({f"x{i}": Categorical(range(point.values)) for i in range(point.variables)})
    function = random_quadratic(rng, point.variables, point.values)
    rows = trail(rng, function, point) if rows_kind == "trail" else uniform(rng, point, point.observations)
    settings, rng, told = preset_of(preset), np.random.default_rng(1), Observations(rows, function(rows))
    surrogate = Surrogate(space.rows, settings)
    belief, _ = surrogate.advance(rng, Belief(), told)  # burns in
    unit, sampling, search = [], [], []
    for _ in range(repeats):
        unit.append(cholesky_unit())
        belief, view = surrogate.view(belief, told)
        model = surrogate.models.of(belief.shape)
        begin = time.perf_counter()
        drawn, hypers = chain.draw(rng, belief.chain, model, view.given.learn, settings.sampling)
        middle = time.perf_counter()
        belief, ensemble = belief._replace(chain=drawn), surrogate.condition(model.kernel, hypers, view.given.predict)
        propose(rng, Request(space.rows, settings, ensemble, set(row_keys(rows)), view.best, None))
        sampling.append(middle - begin)
        search.append(time.perf_counter() - middle)
    one = float(np.median(unit))
    seconds = {"sampling": float(np.median(sampling)), "search": float(np.median(search))}
    seconds["total"] = float(np.median(np.add(sampling, search)))
    units = {stage: value / one for stage, value in seconds.items()}
    report = {"point": point.name, "unit_seconds": one, "seconds": seconds, "units": units}
    if point.published:
        report |= {"published_units": point.published, "times_published_speed": point.published / units["total"]}
    return report


def random_quadratic(rng: Any, variables: int, values: int) -> Callable[[Any], Any]:
    """A random function of rows with main effects and a tenth of all pair interactions, plus a little noise."""
    import numpy as np

    main = rng.normal(size=(variables, values))
    pairs = {
        (i, j): rng.normal(size=(values, values)) for i in range(variables) for j in range(i) if rng.random() < 0.1
    }

    def function(rows: Any) -> Any:
        total = main[np.arange(variables), rows].sum(axis=1) + 0.1 * rng.normal(size=len(rows))
        return total + sum(effect[rows[:, i], rows[:, j]] for (i, j), effect in pairs.items())

    return function


def uniform(rng: Any, point: Point, count: int) -> Any:
    """Independent uniform rows."""
    return rng.integers(0, point.values, size=(count, point.variables))


def trail(rng: Any, function: Callable[[Any], Any], point: Point) -> Any:
    """Rows like those of an optimiser: uniform ones, then small changes to one of the ten best so far."""
    import numpy as np

    rows = uniform(rng, point, 20)
    values = function(rows)
    while len(rows) < point.observations:
        row = rows[rng.choice(np.argsort(values)[:10])].copy()
        changed = rng.permutation(point.variables)[: rng.integers(1, 4)]
        row[changed] = rng.integers(0, point.values, size=len(changed))
        if not (rows == row).all(axis=1).any():
            rows, values = np.vstack([rows, row]), np.append(values, function(row[None]))
    return rows


def cholesky_unit(repeats: int = 50, clock: Callable[[], float] = time.perf_counter) -> float:
    """Seconds of one dpotrf at n = 250 by this clock, the median of several."""
    import numpy as np
    from scipy.linalg import lapack

    rng = np.random.default_rng(0)
    A = rng.normal(size=(250, 250))
    C = np.asfortranarray(A @ A.T + 250 * np.eye(250))
    times = []
    for _ in range(repeats):
        buffer = C.copy(order="F")
        begin = clock()
        lapack.dpotrf(buffer, lower=1, clean=0, overwrite_a=1)
        times.append(clock() - begin)
    return float(np.median(times))


if __name__ == "__main__":
    asked = json.loads(sys.stdin.read())
    asked["points"] = tuple(Point(*p) for p in asked["points"])
    print(json.dumps(measure(**asked)))
