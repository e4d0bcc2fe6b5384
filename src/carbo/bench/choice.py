"""Which point to take in the end, where values are noisy: the luckiest draw, or the best posterior mean?

Told the first evaluations of a recorded run of a noisy problem, the `default` preset names a point in both ways:
"best" has the smallest value told, "recommend" is `Optimizer.recommend`. Both are then evaluated many times.

    true        mean of a point's evaluations, with numbers that no run has seen
    promised    the value that the choice itself states: the one told, or the posterior mean
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from carbo.bench.cases import Case, Key, Line, cell, key_of
from carbo.bench.formats import Cell, Row, Table
from carbo.bench.statistics import paired, summary
from carbo.errors import DataError

if TYPE_CHECKING:
    from carbo.bench.problems import Problem
    from carbo.optimizer import Optimizer

DRAWS = 400
"""Evaluations of each chosen point."""
WAYS = ("best", "recommend")


def measure(case: Case, ways: Sequence[str], problem: Problem) -> Iterator[Line]:
    """What both choices promise and what they are worth. Raises DataError for a problem without noise."""
    import numpy as np

    from carbo.bench.baselines.combo import settings_of
    from carbo.optimizer import Optimizer

    if not problem.noisy:
        raise DataError(f"{problem.name}: expected a noisy problem, got one that repeats its values; "
                        "its smallest value is the best choice")  # fmt: skip
    space, rows = problem.space, case.record.rows[: case.told]
    optimizer = Optimizer(space, seed=case.record.run, settings=settings_of("default"))
    optimizer.tell(space.decode_many(rows), case.record.values[: case.told].tolist())
    for way in ways:
        params, promised = _chosen(optimizer, way)
        row = space.encode(params)
        true = float(np.mean([problem.objective(row) for _ in range(DRAWS)]))
        yield {"model": way, "true": true, "promised": promised}


def _chosen(optimizer: Optimizer, way: str) -> Any:
    found = optimizer.best if way == "best" else optimizer.recommend()
    assert found is not None
    return found


def table(lines: Sequence[Mapping[str, Any]], ways: Sequence[str]) -> Table:
    """Both ways over the cases."""
    of: dict[str, dict[Key, Mapping[str, Any]]] = {way: {} for way in ways}
    for line in lines:
        of[line["model"]][key_of(line)[:-1]] = line
    first = {key: float(line["true"]) for key, line in of[ways[0]].items()}
    rows = []
    for way, by in of.items():
        true = {key: float(line["true"]) for key, line in by.items()}
        beside = paired(true, first)
        assert beside is not None
        promised = summary([float(line["promised"]) for line in by.values()])
        cells = (cell(promised, 3), cell(summary(list(true.values())), 3),
                 Cell("") if way == ways[0] else cell(beside, 3, signed=True))  # fmt: skip
        rows.append(Row(way, cells))
    columns = ("promised", "true mean", "beside the first")
    return Table("choice", "", f"Choice over {len(first)} cases", columns, tuple(rows))
