"""docs/results.md, written from the recorded runs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from carbo.errors import DataError
from carbo.settings import PRESETS
from lab import methods
from lab.runs.record import canonical, comparable
from lab.tables import losses, plots
from lab.tables.formats import markdown
from lab.tables.number_cells import count_text
from lab.tables.paper import COLUMNS, Column
from lab.tables.rankings import comparisons
from lab.tables.results import FORMS, PUBLISHED, REFERENCE, Results, title
from lab.tables.tables import everything

FIGURES = "figures"
"""The folder of the figures, next to the page."""
HEAD = """# Results

Written by `python -m lab page` from the records in `results/runs/`; not to be edited by hand.

    python -m lab run --help     # more runs: each appends a line to results/runs/
    python -m lab page           # this page and its figures anew
    python -m lab table          # the tables alone; --format md, csv or latex

{count} of {methods} on {problems}, the last one finished {last}.

Numbers are the best value found with the problem's whole budget, smaller being better: mean ± standard error, number of
runs in brackets. Rows called *printed* are the paper's (its supplement; 25 runs). Runs are those of the paper, 1 to 25,
with its instances and initial points; the table of runs says which ones were done. *Relocated* problems have each
variable's values shuffled, so that no optimum sits at a structured point such as all zeros: a method that wins only on
the original has not won.
"""
CLEARLY = """\
Listed is every column where another's mean is smaller than ours. A difference to a rival is called clear where the
95 % interval of the paired difference (Student's t) leaves out 0, one to a printed number where it is more than two
standard errors, ours and the paper's together. Beside printed numbers ours are compared by the distance from the best
possible where that is known, because the runs done need not be of the same cases as the paper's.
"""


def render(results: Results) -> str:
    """The text of the page."""
    forms = [form for form in FORMS if results.problems(form)]
    parts = [_head(results), _outdated(results), _lost(results, forms)]
    for form in forms:
        parts.append(f"## The problems, {form}\n")
        parts.append(markdown(everything(results, [form]), heading="###"))
        parts.append(f"### Figures, {form}\n\n" + "\n".join(_figures(results, form)))
    parts.append(_origin(results))
    return "\n".join(parts)


def write(results: Results, path: Path, figures: bool = True) -> list[Path]:
    """Write the page, and the figures into the folder next to it; returns the files. DataError when that fails."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(render(results), encoding="utf-8", newline="\n")
    except OSError as error:
        raise DataError(f"page {str(path)!r}: expected a file that can be written, got: {error}") from error
    return [path, *(plots.draw_all(results, FORMS, path.parent / FIGURES) if figures else [])]


def _head(results: Results) -> str:
    records = results.records()
    methods = len({record.method for record in records})
    problems = len({record.problem for record in records})
    return HEAD.format(count=count_text(len(records)), methods=count_text(methods, "method"),
                       problems=count_text(problems, "problem"), last=max(r.finished for r in records))  # fmt: skip


def _outdated(results: Results) -> str:
    """A paragraph for each preset whose settings have changed since its runs; empty where none has."""
    lines = []
    for name in PRESETS:
        now = comparable(methods.method(name).settings)
        then = [json.loads(version.settings) for version in results.versions if version.method == name]
        if then and canonical(now) not in map(canonical, then):
            old = then[0]
            changed = sorted(key for key in old.keys() | now.keys() if old.get(key) != now.get(key))
            values = ", ".join(f"`{key}` {json.dumps(old.get(key))}" for key in changed)
            lines.append(f"The runs of `{name}` were made with other settings than those of today: {values}.")
    return "\n\n".join(lines)


def _lost(results: Results, forms: Sequence[str]) -> str:
    """The comparisons that our presets lose, and their share of all comparisons."""
    lines = ["## What is lost", "", CLEARLY]
    for method in (REFERENCE, PUBLISHED):
        rivals = [each for form in forms for each in losses.against_rivals(results, form, method)]
        lines += _list(f"{title(method)} beside the rivals, on the runs that both have", rivals)
        lines += _list(f"{title(method)} beside the paper's printed numbers", losses.against_printed(results, method))
    if results.newest(PUBLISHED) is not None:
        short = [f"- {each}" for each in losses.short_of_paper(results)]
        lines += [f"**{title(PUBLISHED)}, clearly behind the paper's own COMBO**", "", *(short or ["- nowhere"]), ""]
    return "\n".join(lines)


def _list(what: str, found: Sequence[losses.Verdict]) -> list[str]:
    """The score, and each comparison that is lost."""
    lost = [f"- {each}" for each in losses.lost(found)]
    return [f"**{what}**: {losses.score(found)}.", *([""] if lost else []), *lost, ""] if found else []


def _figures(results: Results, form: str) -> list[str]:
    ranks = [f"![Ranks, {form}]({FIGURES}/ranks-{form}.png)\n"] if comparisons(results, form) else []
    columns = [COLUMNS.get(name, Column(name, name)) for name in results.problems(form)]
    return ranks + [f"![{column.title}, {form}]({FIGURES}/{column.problem}-{form}.png)\n" for column in columns]


def _origin(results: Results) -> str:
    """Machines, versions and revisions of the runs."""
    records = results.records()
    lines = ["## Where the numbers come from", ""]
    machines = Counter(_machine(record.machine) for record in records)
    lines += [f"- {count_text(count)} on {machine}" for machine, count in _sorted(machines)]
    lines += [f"- carbo at revision {revision}: {count_text(count)}"
              for revision, count in _sorted(Counter(record.revision for record in records))]  # fmt: skip
    packages: dict[str, set[str]] = {}
    for record in records:
        for name, number in record.versions.items():
            packages.setdefault(name, set()).add(number)
    lines += ["- versions: " + ", ".join(f"{name} {' and '.join(sorted(packages[name]))}" for name in sorted(packages))]
    return "\n".join(lines) + "\n"


def _machine(machine: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in machine.items())


def _sorted(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))
