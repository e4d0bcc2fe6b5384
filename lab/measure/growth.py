"""How the cost of one suggestion grows with observations, with variables and with the values of one variable.

Along each axis everything else is constant. The function has main effects and twice as many pair interactions as
variables, with a little noise. The rows are a trail like that of an optimiser: random rows first, then mostly copies of
one of the ten best rows with one to three variables redrawn. Every point is measured in its own process on one thread,
in processor seconds and in units of one Cholesky factorisation (`dpotrf`, n = 250) that is timed with it. "first" is
the first suggestion after all observations were told: it chooses a warp and burns the chain in. Later suggestions are
timed by stage: "model" draws parameters and conditions on the observations, "search" finds the row.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from carbo.errors import DataError
from lab.measure.speed import cholesky_unit
from lab.runs.machine import machine, measured_apart, revision, versions

if TYPE_CHECKING:
    import numpy as np

    from carbo.numerics.types import Floats, Ints
    from carbo.settings import Settings
    from carbo.space.space import Space
    from carbo.surrogate.surrogate import Observations

ELITE, FRESH = 10, 0.1
"""Rows of the trail are copies of one of so many best rows; this share of them is random instead."""


class Point(NamedTuple):
    """A size: binary variables; or a "category" or "levels" variable of `values` values, and others of three values."""

    axis: str
    at: int
    variables: int = 60
    values: int = 2
    kind: str = "binary"
    observations: int = 250

    @property
    def name(self) -> str:
        kinds = {"binary": f"{self.variables} binary variables", "category": f"a category of {self.values:,} values",
                 "levels": f"an integer of {self.values:,} levels"}  # fmt: skip
        beside = "" if self.kind == "binary" else f" beside {self.variables - 1} others"
        return f"{kinds[self.kind]}{beside}, {self.observations:,} observations"


AXES: dict[str, tuple[Point, ...]] = {
    "observations": tuple(
        Point("observations", n, observations=n) for n in (50, 100, 250, 400, 600, 1_000, 2_000, 5_000, 10_000)
    ),
    "variables": tuple(Point("variables", d, variables=d) for d in (10, 30, 60, 150, 300, 600)),
    "category": tuple(Point("category", m, 6, m, "category") for m in (10, 30, 100, 300, 1_000, 3_000)),
    "levels": tuple(Point("levels", m, 6, m, "levels") for m in (10, 100, 1_000, 10_000, 100_000)),
}
"""Axis -> the points where it is measured."""


def run(points: Iterable[Point], preset: str, repeats: int) -> Iterable[dict[str, Any]]:
    """A record for each point, each from a new process whose BLAS has one thread."""
    for point in points:
        print(f"measuring {point.name} ...", file=sys.stderr, flush=True)
        request = {"point": point, "preset": preset, "repeats": repeats}
        yield measured_apart("lab.measure.growth", request)


def measure(point: Point, preset: str, repeats: int) -> dict[str, Any]:
    """The record of a point, measured in this process."""
    import numpy as np

    from carbo.optimizer import Optimizer
    from carbo.settings import preset as preset_of
    from carbo.surrogate.surrogate import Observations

    rng = np.random.default_rng(0)
    space = space_of(point)
    rows, values = trail(rng, space, landscape(rng, space), point.observations)
    # without doubt, whose suggestions need no search and would shorten the times
    settings = preset_of(preset).changed({"threads": 1, "doubt": 0.0})
    optimizer = Optimizer(space, seed=1, settings=settings)
    before, unit = memory(), cholesky_unit(clock=time.process_time)
    told = _seconds(lambda: optimizer.tell(space.decode_many(rows), values))
    seconds = {"tell": told, "first": _seconds(optimizer.ask)}
    warm = _warm(space, settings, Observations(rows, values), repeats)
    seconds |= {stage: float(np.median([each[stage] for each in warm])) for stage in ("model", "search", "total")}
    return {
        **point._asdict(),
        "name": point.name,
        "preset": preset,
        "repeats": repeats,
        "seconds": seconds,
        "units": {stage: value / unit for stage, value in seconds.items()},
        "unit_seconds": unit,
        "megabytes": {"before": before, "peak": memory()},
        "revision": revision(),
        "machine": machine(),
        "versions": versions(()),
    }


def _warm(space: Space, settings: Settings, observations: Observations, repeats: int) -> list[dict[str, float]]:
    """Warm suggestions, by stage."""
    import numpy as np

    from carbo.acquisition.policy import Request, propose
    from carbo.space.row_space import row_keys
    from carbo.surrogate.surrogate import Belief, Surrogate

    rng, surrogate, each = np.random.default_rng(1), Surrogate(space.rows, settings), []
    belief, _ = surrogate.advance(rng, Belief(), observations)  # burns in
    for _ in range(repeats):
        begin = time.process_time()
        belief, posterior = surrogate.advance(rng, belief, observations)
        middle = time.process_time()
        excluded = set(row_keys(observations.X))
        propose(rng, Request(space.rows, settings, posterior.model, excluded, posterior.view.best, None))
        end = time.process_time()
        each.append({"model": middle - begin, "search": end - middle, "total": end - begin})
    return each


def _seconds(act: Callable[[], Any]) -> float:
    begin = time.process_time()
    act()
    return time.process_time() - begin


def memory() -> float | None:
    """The peak memory of this process in megabytes; None where the system does not say."""
    try:
        import resource
    except ImportError:
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(most / (2**20 if sys.platform == "darwin" else 2**10))


def space_of(point: Point) -> Space:
    """The space of a point."""
    from carbo.space.space import Space
    from carbo.space.variables import Binary, Categorical, Integer

    if point.kind == "binary":
        return Space({f"x{i}": Binary() for i in range(point.variables)})
    wide = Categorical(range(point.values)) if point.kind == "category" else Integer(1, point.values)
    return Space({**{f"x{i}": Categorical(["a", "b", "c"]) for i in range(point.variables - 1)}, "wide": wide})


def landscape(rng: np.random.Generator, space: Space) -> Callable[[Ints], Floats]:
    """A random function of rows, smooth along paths."""
    import numpy as np

    def effect(size: int, kind: str) -> Floats:
        waves = np.sin(rng.uniform(1.0, 6.0) * np.linspace(0.0, 1.0, size) + rng.uniform(0.0, 6.0))
        return 2.0 * waves if kind == "path" else rng.normal(size=size)

    effects = [effect(v.size, v.graph.kind) for v in space.variables.values()]
    one, two = rng.integers(0, space.dim, size=(2, 2 * space.dim))

    def function(rows: Ints) -> Floats:
        each = np.stack([effect[rows[:, i]] for i, effect in enumerate(effects)], axis=1)
        pairs = (each[:, one] * each[:, two]).sum(axis=1)
        return np.asarray(each.sum(axis=1) + pairs + 0.1 * rng.normal(size=len(rows)))

    return function


def trail(
    rng: np.random.Generator, space: Space, function: Callable[[Ints], Floats], count: int
) -> tuple[Ints, Floats]:
    """Distinct rows like those of an optimiser, and their values."""
    import numpy as np

    rows: list[Ints] = []
    values: list[float] = []
    seen: set[bytes] = set()
    best: list[int] = []
    while len(rows) < count:
        if len(rows) < 2 * ELITE or rng.random() < FRESH:
            row = space.random_rows(rng, 1)[0]
        else:
            row = rows[best[rng.integers(ELITE)]].copy()
            changed = rng.permutation(space.dim)[: rng.integers(1, 4)]
            row[changed] = rng.integers(0, space.sizes[changed])
        if row.tobytes() in seen:
            continue
        seen.add(row.tobytes())
        rows.append(row)
        values.append(float(function(row[None])[0]))
        best = sorted([*best, len(rows) - 1], key=values.__getitem__)[:ELITE]
    return np.array(rows), np.array(values)


def append(path: Path, record: dict[str, Any]) -> None:
    """Append a record to a file."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8", newline="\n") as file:
            file.write(json.dumps(record) + "\n")
    except OSError as error:
        raise DataError(f"--out: expected a file that can be written, got {str(path)!r}: {error}") from error


def read(path: Path) -> list[dict[str, Any]]:
    """The newest record of each point and preset in a file, in the order of the axes. DataError when there is none."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        found = {(r["axis"], r["at"], r["preset"]): r for r in map(json.loads, filter(None, lines))}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"records: expected a file of `python -m lab growth`, got {str(path)!r}: {error}") from error
    if not found:
        raise DataError(f"records: expected some in {str(path)!r}, got none; measure first: python -m lab growth")
    return sorted(found.values(), key=lambda r: (list(AXES).index(r["axis"]), r["at"]))


if __name__ == "__main__":
    asked = json.loads(sys.stdin.read())
    print(json.dumps(measure(Point(*asked["point"]), asked["preset"], asked["repeats"])))
