"""Which comparisons are lost, said from the data."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from lab.tables.number_cells import all_columns, counted, number, printed_optimum
from lab.tables.paper import COUNTERPARTS, Column
from lab.tables.results import ORIGINAL, PUBLISHED, REFERENCE, Results, Version, optimum
from lab.tables.statistics import Summary, paired, summary

CLEAR = 2.0
"""Standard errors from which on a difference to a printed mean is called clear."""
LEVEL = 0.95
"""A paired difference is called clear when this interval of Student's t leaves out 0: two runs prove little."""


class Verdict(NamedTuple):
    """How much smaller, in a column, another's mean is than ours: above 0 where ours is worse."""

    column: Column
    form: str
    other: str
    behind: Summary
    limit: float
    """Standard errors from which on the difference is clear."""

    @property
    def sign(self) -> int:
        """1 where ours is worse, -1 where it is better, 0 where tables print no difference."""
        return 0 if number(self.behind.mean) == number(0) else int(math.copysign(1, self.behind.mean))

    @property
    def clear(self) -> bool:
        """Whether there is a difference beyond the limit; never for a single run, which has no error."""
        error = self.behind.error
        return error is not None and self.sign != 0 and abs(self.behind.mean) > self.limit * error

    def __str__(self) -> str:
        mean, error, runs = self.behind
        spread = "" if error is None else f" ± {number(error)}"
        clearly = ", clearly" if self.clear else ""
        return f"{self.column.title}, {self.form}: {self.other} by {number(mean)}{spread} ({counted(runs)}){clearly}"


def against_rivals(results: Results, form: str, method: str) -> list[Verdict]:
    """Our preset beside each rival in each column, on the runs they share.

    Only the versions shown count, and neither of our presets is a rival of the other.
    """
    mine = results.newest(method)
    if mine is None:
        return []
    rivals = [v for v in results.versions if v.method not in (REFERENCE, PUBLISHED) and v == results.newest(v.method)]
    found = []
    for column in all_columns(results, form):
        ours = results.ends(column.problem, form, mine)
        for rival in rivals:
            lead = paired(ours, results.ends(column.problem, form, rival))
            if lead is not None:
                found.append(Verdict(column, form, results.labels[rival], lead, _student(lead.runs)))
    return found


def against_printed(results: Results, method: str) -> list[Verdict]:
    """Our preset beside each number of the paper, in the original form.

    Where the best possible is known, it is subtracted from both: our runs need not be of the same cases as the
    paper's 25. The error is that of the difference.
    """
    mine, found = results.newest(method), []
    if mine is None:
        return []
    for column in all_columns(results, ORIGINAL):
        ours = _distances(results, column, mine)
        if ours is None:
            continue
        mean, least = ours
        for name, printed in column.printed.items():
            error = None if mean.error is None else math.hypot(mean.error, printed.error)
            behind = Summary(mean.mean - (printed.mean - least), error, mean.runs)
            found.append(Verdict(column, ORIGINAL, f"{name}, printed", behind, CLEAR))
    return found


def lost(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Where ours is worse."""
    return [each for each in verdicts if each.sign > 0]


def score(verdicts: Sequence[Verdict]) -> str:
    """How many are better, the same and worse."""
    counts = Counter(each.sign for each in verdicts)
    clear = Counter(each.sign for each in verdicts if each.clear)
    return (f"better in {counts[-1]} of {counted(len(verdicts), 'comparison')} (clearly in {clear[-1]}), "
            f"the same in {counts[0]}, worse in {counts[1]} (clearly in {clear[1]})")  # fmt: skip


def short_of_paper(results: Results) -> list[Verdict]:
    """Columns where the preset `paper` is clearly worse than what the paper printed for the same method."""
    same = {f"{name}, printed" for name, method in COUNTERPARTS.items() if method == PUBLISHED}
    return [each for each in lost(against_printed(results, PUBLISHED)) if each.clear and each.other in same]


def _student(runs: int) -> float:
    from scipy.special import stdtrit

    return math.inf if runs == 1 else float(stdtrit(runs - 1, (1 + LEVEL) / 2))


def _distances(results: Results, column: Column, version: Version) -> tuple[Summary, float] | None:
    """Of the best values from the best possible, and what to subtract from the paper's; from 0 where not known."""
    records = results.of(column.problem, ORIGINAL, version).values()
    least, printed = [optimum(record) for record in records], printed_optimum(results, column)
    if not records:
        return None
    known = [value for value in least if value is not None]
    if printed is None or len(known) < len(least):
        known, printed = [0.0] * len(least), 0.0
    ends = [float(record.best[-1]) for record in records]
    return summary([end - best for end, best in zip(ends, known, strict=True)]), printed
