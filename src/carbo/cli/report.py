"""carbo report: a study as one HTML page."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from carbo.cli.arguments import add_study, command

if TYPE_CHECKING:
    from carbo.cli.arguments import Commands
    from carbo.report.report_data import Report

EXAMPLES = """examples:
  carbo report study.toml                     writes report.html
  carbo report study.toml --out monday.html --open
  carbo report study.db                       without the study file
  carbo report postgresql://me@db/tuning --study gcc
  carbo report study.toml --no-model          fast: no relevance, no predictions

exit codes: 0 written, 2 wrong input, 130 interrupted"""


def add(commands: Commands) -> None:
    """carbo report and its options."""
    report = command(
        commands,
        "report",
        "write one HTML page about a study",
        about="Writes one HTML page that needs no other file: convergence, best settings, which variables matter, "
        "predicted against observed, times. Also works for studies of programs that used carbo.CarboSampler.",
        examples=EXAMPLES,
    )
    add_study(report)
    report.add_argument("--out", type=Path, default=Path("report.html"), metavar="PAGE",
                        help="where to write the page (default report.html)")  # fmt: skip
    report.add_argument("--force", action="store_true", help="replace PAGE even if it is another kind of file")
    report.add_argument(
        "--no-model", action="store_true", help="leave out the panels that need the model, which take longest"
    )
    report.add_argument("--open", action="store_true", help="open the page in the browser")
    report.add_argument("--json", action="store_true", help="print the summary as JSON")
    report.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from carbo.tune.storage import need_optuna

    need_optuna()  # before what imports it
    from carbo.report.page import render
    from carbo.report.page_file import check, save
    from carbo.report.report_data import gather
    from carbo.tune.reading import open_study

    check(arguments.out, arguments.force)
    with open_study(arguments.study, arguments.name, arguments.storage) as source:
        if not arguments.no_model and sys.stderr.isatty():
            print("fitting the model; --no-model skips that", file=sys.stderr)
        report = gather(source, not arguments.no_model)
    save(arguments.out, render(report))
    print(json.dumps(_summary(report, arguments.out), indent=2) if arguments.json else _line(report, arguments.out))
    if arguments.open:
        _show(arguments.out)
    return 0


def _summary(report: Report, out: Path) -> dict[str, object]:
    from carbo.report.findings import trail

    found = trail(report.evaluations, report.direction)
    return {
        "report": str(out),
        "study": report.name,
        "direction": report.direction,
        "evaluations": sum(row.counts for row in report.evaluations),
        "failed": sum(row.standing == "failed" for row in report.evaluations),
        "best": {"value": found[-1][1], "trial": found[-1][0].number} if found else None,
    }


def _line(report: Report, out: Path) -> str:
    from carbo.report.findings import trail
    from carbo.tune.formatting import number, plain

    found = trail(report.evaluations, report.direction)
    best = f"best {number(found[-1][1])} at trial {found[-1][0].number}" if found else "nothing has succeeded"
    done = sum(row.counts for row in report.evaluations)
    return plain(f"{out}: {report.name}, {done} evaluations, {best}")


def _show(out: Path) -> None:
    import webbrowser

    if not webbrowser.open(out.resolve().as_uri()):
        print(f"carbo: no browser could be started; open {out} by hand", file=sys.stderr)
