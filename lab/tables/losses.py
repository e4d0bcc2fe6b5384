"""The comparisons that our presets lose, found from the data."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from lab.tables.number_cells import all_columns, count_text, number, printed_optimum
from lab.tables.paper import COUNTERPARTS, Column
from lab.tables.results import ORIGINAL, PUBLISHED, REFERENCE, Results, Version, optimum
from lab.tables.statistics import Summary, paired_differences, summary

CLEAR = 2.0
"""A difference to a printed mean is called clear from so many standard errors on."""
LEVEL = 0.95
"""A paired difference is called clear when this confidence interval of Student's t does not contain 0."""


class Verdict(NamedTuple):
    """The difference of our mean to another mean in one column: above 0 where ours is worse."""

    column: Column
    form: str
    other: str
    behind: Summary
    limit: float
    """The difference is clear from so many standard errors on."""

    @property
    def sign(self) -> int:
        """1 where ours is worse, -1 where it is better, 0 where tables print no difference."""
        return 0 if number(self.behind.mean) == number(0) else int(math.copysign(1, self.behind.mean))

    @property
    def clear(self) -> bool:
        """Whether the difference is beyond the limit; False for a single run, which has no error."""
        error = self.behind.error
        return error is not None and self.sign != 0 and abs(self.behind.mean) > self.limit * error

    def __str__(self) -> str:
        mean, error, runs = self.behind
        spread = "" if error is None else f" ± {number(error)}"
        clearly = ", clearly" if self.clear else ""
        return f"{self.column.title}, {self.form}: {self.other} by {number(mean)}{spread} ({count_text(runs)}){clearly}"


def against_rivals(results: Results, form: str, method: str) -> list[Verdict]:
    """Our preset compared with each rival in each column, on the runs that both have.

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
            lead = paired_differences(ours, results.ends(column.problem, form, rival))
            if lead is not None:
                found.append(Verdict(column, form, results.labels[rival], lead, _student(lead.runs)))
    return found


def against_printed(results: Results, method: str) -> list[Verdict]:
    """Our preset compared with each number of the paper, in the original form.

    Where the best possible is known, it is subtracted from both, because our runs may be of other cases than the
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
    """The comparisons in which ours is worse."""
    return [each for each in verdicts if each.sign > 0]


def score(verdicts: Sequence[Verdict]) -> str:
    """The numbers of comparisons in which ours is better, the same and worse, as text."""
    counts = Counter(each.sign for each in verdicts)
    clear = Counter(each.sign for each in verdicts if each.clear)
    return (f"better in {counts[-1]} of {count_text(len(verdicts), 'comparison')} (clearly in {clear[-1]}), "
            f"the same in {counts[0]}, worse in {counts[1]} (clearly in {clear[1]})")  # fmt: skip


def short_of_paper(results: Results) -> list[Verdict]:
    """Columns where the preset `paper` is clearly worse than what the paper printed for the same method."""
    same = {f"{name}, printed" for name, method in COUNTERPARTS.items() if method == PUBLISHED}
    return [each for each in lost(against_printed(results, PUBLISHED)) if each.clear and each.other in same]


def _student(runs: int) -> float:
    from scipy.special import stdtrit

    return math.inf if runs == 1 else float(stdtrit(runs - 1, (1 + LEVEL) / 2))


def _distances(results: Results, column: Column, version: Version) -> tuple[Summary, float] | None:
    """Each run's distance from the best possible (or from 0), and the number to subtract from the paper's mean."""
    records = results.of(column.problem, ORIGINAL, version).values()
    least, printed = [optimum(record) for record in records], printed_optimum(results, column)
    if not records:
        return None
    known = [value for value in least if value is not None]
    if printed is None or len(known) < len(least):
        known, printed = [0.0] * len(least), 0.0
    ends = [float(record.best[-1]) for record in records]
    return summary([end - best for end, best in zip(ends, known, strict=True)]), printed
