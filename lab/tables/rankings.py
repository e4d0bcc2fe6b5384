"""Mean ranks of methods over problems, on the runs that all of these methods have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from lab.tables.formats import Cell, Row, Table
from lab.tables.paper import COLUMNS
from lab.tables.results import REFERENCE, Case, Results, Version
from lab.tables.statistics import mean_ranks, shared_runs

MOMENTS = (50, 100, 200)
"""Numbers of evaluations at which ranks are taken, besides the end."""
AT_LEAST = (1, 5, 25)
"""For each of these numbers there is a comparison of the methods with at least so many runs on every problem."""
BINARY = ("contamination", "ising", "maxsat", "maxcut", "nas", "nk", "labs")
"""First words of the names of binary problems. The knapsack is left out: BOCS cannot take its constraint."""


class Comparison(NamedTuple):
    """Methods on problems, and the runs of each problem that all the methods have."""

    what: str
    problems: tuple[str, ...]
    versions: tuple[Version, ...]
    cases: tuple[tuple[Case, ...], ...]
    absent: tuple[Version, ...]
    """Versions that have runs, but not on every problem."""


def rankings(results: Results, form: str) -> list[Table]:
    """A table of mean ranks for each comparison."""
    return [_table(results, form, comparison) for comparison in comparisons(results, form)]


def comparisons(results: Results, form: str) -> list[Comparison]:
    """The comparisons on the paper's problems, then those on the other families.

    Problems are those that our default preset was run on (all problems, if it was not run), each with one of its
    graphs. Problems that only one method was run on are left out.
    """
    paper, others = _problems(results, form)
    found = _comparisons_on(results, form, ("all problems", "binary problems"), paper or others)
    if paper and others:
        found += _comparisons_on(results, form, ("other families", "binary ones of other families"), others)
    return found


def _comparisons_on(results: Results, form: str, names: tuple[str, str], problems: tuple[str, ...]) -> list[Comparison]:
    """Comparisons on these problems: of all methods, of fewer with more runs, of more on the binary problems."""
    binary = tuple(name for name in problems if name.startswith(BINARY))
    found: list[Comparison] = []
    for least in AT_LEAST:
        made = [_comparison(results, form, names[0], problems, least)]
        if binary and binary != problems:
            made.append(_comparison(results, form, names[1], binary, least))
        wide = set(made[0].versions)
        for each in made:
            adds = each is made[0] or not set(each.versions) <= wide
            known = any((each.problems, each.versions) == (other.problems, other.versions) for other in found)
            found += [each] if adds and not known and len(each.versions) > 1 else []
    return sorted(found, key=lambda each: names.index(each.what))


def ranks_at(results: Results, form: str, comparison: Comparison, moment: int | None) -> list[float]:
    """Mean rank of each version after so many evaluations; for problems with fewer evaluations, at their end."""
    tables: list[dict[Case, list[float]]] = []
    for name, cases in zip(comparison.problems, comparison.cases, strict=True):
        last = min(moment or results.budgets[name], results.budgets[name]) - 1
        runs = [results.of(name, form, version) for version in comparison.versions]
        tables.append({case: [float(each[case].best[last]) for each in runs] for case in cases})
    return mean_ranks(tables)


def _problems(results: Results, form: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The paper's problems, and those of other families."""
    reference = results.newest(REFERENCE)
    everywhere = [name for name in results.problems(form) if len(results.versions_on(name, form)) > 1]
    present = [name for name in everywhere if reference and results.of(name, form, reference)] or everywhere
    paper = tuple(name for name in present if name in COLUMNS and not COLUMNS[name].variant)
    others = tuple(name for name in present if name not in COLUMNS)
    return paper, others or (() if paper else tuple(present))


def _comparison(results: Results, form: str, what: str, problems: tuple[str, ...], least: int) -> Comparison:
    runs = {version: [results.of(name, form, version) for name in problems] for version in results.versions}
    enough = {version: each for version, each in runs.items() if min(map(len, each), default=0) >= least}
    versions, cases = shared_runs(enough)
    absent = tuple(version for version, each in runs.items() if any(each) and version not in versions)
    return Comparison(what, problems, tuple(versions), tuple(map(tuple, cases)), absent)


def _table(results: Results, form: str, comparison: Comparison) -> Table:
    moments: Sequence[int | None] = (*MOMENTS, None)
    columns = [ranks_at(results, form, comparison, moment) for moment in moments]
    counts = [len(cases) for cases in comparison.cases]
    few = f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
    order = sorted(range(len(comparison.versions)), key=lambda i: columns[-1][i])
    rows = tuple(
        Row(results.labels[comparison.versions[i]],
            tuple(Cell(f"{column[i]:.2f}", column[i], None, sum(counts)) for column in columns))
        for i in order
    )  # fmt: skip
    shares = ", ".join(f"{name} {n}" for name, n in zip(comparison.problems, counts, strict=True))
    notes = [f"1 is best of {len(order)}; equal to four decimals shares a rank; every problem counts the same; after "
             "the end of a shorter problem its last value stands",
             f"problems and shared runs: {shares}"]  # fmt: skip
    if comparison.absent:
        notes.append("left out for want of shared runs: " + ", ".join(results.labels[v] for v in comparison.absent))
    heads = tuple("end" if moment is None else f"after {moment}" for moment in moments)
    title = f"Mean rank, {form}: {comparison.what}, {len(order)} methods, {few} shared runs of each"
    return Table("rank", form, title, heads, rows, tuple(notes))
