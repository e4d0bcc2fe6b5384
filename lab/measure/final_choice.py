"""Which point to take at the end of a noisy run: the smallest value, or the best posterior mean.

The `default` preset gets the first evaluations of a recorded run of a noisy problem and names a point in two ways:
"best" has the smallest value, "recommend" is `Optimizer.recommend`. Both points are then evaluated many times.

    true        mean of a point's evaluations, with random numbers that the run did not have
    promised    the value that the choice states: the smallest value, or the posterior mean
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from carbo.errors import DataError
from lab.measure.recorded_cases import Case, Experiment, Line, Lines, cell, digest, shared_lines
from lab.methods.presets import settings_of
from lab.runs.record import comparable
from lab.tables.formats import Cell, Row, Table
from lab.tables.statistics import paired_differences, summary

if TYPE_CHECKING:
    from lab.problems import Problem

DRAWS = 400
"""Number of evaluations of each point."""
WAYS = ("best", "recommend")


def experiment() -> Experiment:
    """The experiment with both ways to choose."""
    version = digest(comparable(settings_of("default").to_dict()), DRAWS)
    return Experiment(WAYS, measure, lambda _: version, table, "true", together=True)


def measure(case: Case, ways: Sequence[str], problem: Problem) -> Iterator[Line]:
    """The promised and the true value of both choices. DataError for a problem without noise."""
    import numpy as np

    from carbo.optimizer import Optimizer

    if not problem.noisy:
        raise DataError(f"{problem.name}: expected a noisy problem, got one that repeats its values; "
                        "its smallest value is the best choice")  # fmt: skip
    record, space = case.record, problem.space
    for row in record.rows:  # so that the numbers drawn after these are new to the run
        problem.objective(row)
    optimizer = Optimizer(space, seed=record.run, settings=settings_of("default"))
    optimizer.tell(space.decode_many(record.rows[: case.observations]), record.values[: case.observations].tolist())
    worth: dict[bytes, float] = {}
    for way in ways:
        found = optimizer.best if way == "best" else optimizer.recommend()
        assert found is not None
        row = space.encode(found.params)
        if row.tobytes() not in worth:
            worth[row.tobytes()] = float(np.mean([problem.objective(row) for _ in range(DRAWS)]))
        yield {"model": way, "true": worth[row.tobytes()], "promised": found.value}


def table(lines: Lines, ways: Sequence[str]) -> Table:
    """A table of both ways over the cases."""
    of = shared_lines(lines, ways)
    true = {way: dict(enumerate(float(line["true"]) for line in by)) for way, by in of.items()}
    rows = []
    for way, by in of.items():
        difference = paired_differences(true[way], true[ways[0]])
        assert difference is not None
        promised = summary([float(line["promised"]) for line in by])
        cells = (cell(promised, 3), cell(summary(list(true[way].values())), 3),
                 Cell("") if way == ways[0] else cell(difference, 3, signed=True))  # fmt: skip
        rows.append(Row(way, cells))
    columns = ("promised", "true mean", "beside the first")
    return Table("choice", "", f"Choice over {len(true[ways[0]])} cases", columns, tuple(rows))
