"""The commands table, plot and page: tables and figures of the recorded runs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from carbo.cli.arguments import command, count, counts
from carbo.errors import DataError

if TYPE_CHECKING:
    from carbo.cli.arguments import Commands
    from lab.tables.results import Results

EXAMPLES = """examples:
  python -m lab table                                   all tables, as Markdown
  python -m lab table --problem ising-0 --at 50,100     best value after 50 and after 100 evaluations
  python -m lab table --format csv --out results.csv    a line for each number
"""


def add(what: Commands) -> None:
    """Add the commands table, plot and page, with their options."""
    table = command(
        what,
        "table",
        "the paper's tables with our rows next to its own",
        about="Prints the paper's tables with the recorded runs next to its printed numbers: best values (mean, "
        "standard error, number of runs), distance from the best possible, paired differences to the default preset, "
        "ranks over problems, evaluations to the paper's COMBO value, seconds of a suggestion, and runs made.",
        examples=EXAMPLES,
    )
    _add_selection(table)
    table.add_argument("--at", type=counts, default=(), metavar="N[,N...]",
                       help="best values after so many evaluations (default: at the end)")  # fmt: skip
    table.add_argument("--format", choices=("md", "csv", "latex"), default="md", help="(default md)")
    table.add_argument("--out", type=Path, metavar="FILE", help="write to a file instead of printing")
    table.set_defaults(run=_table)
    plot = what.add_parser(
        "plot",
        help="best value so far against evaluations and against time",
        description="Draws, for each problem, the mean of the best value so far with its standard error against "
        "evaluations and against the time spent on suggestions; and the ranks of the methods over the problems.",
    )
    _add_selection(plot)
    plot.add_argument("--format", choices=("png", "svg", "pdf"), default="png", help="(default png)")
    plot.add_argument("--out", type=Path, default=Path("results/figures"), metavar="FOLDER",
                      help="where the figures are written (default results/figures)")  # fmt: skip
    plot.set_defaults(run=_plot)
    page = what.add_parser(
        "page",
        help="write docs/results.md and its figures",
        description="Writes the page of results, docs/results.md, from the recorded runs: tables, figures, lost "
        "comparisons, machines and versions.",
    )
    page.add_argument("--results", type=Path, default=Path("results"), metavar="FOLDER",
                      help="recorded runs (default results/)")  # fmt: skip
    page.add_argument("--out", type=Path, default=Path("docs/results.md"), metavar="FILE",
                      help="the page; figures go to a folder next to it (default docs/results.md)")  # fmt: skip
    page.add_argument("--no-figures", action="store_true", help="the text only")
    page.set_defaults(run=_page)


def _add_selection(command: argparse.ArgumentParser) -> None:
    command.add_argument("--results", type=Path, default=Path("results"), metavar="FOLDER",
                         help="recorded runs: a folder, or a .jsonl file (default results/)")  # fmt: skip
    command.add_argument("--form", choices=("original", "relocated", "both"), default="both", help="(default both)")
    command.add_argument("--problem", type=_names, default=(), metavar="NAME[,NAME...]", help="only these")
    command.add_argument("--method", type=_names, default=(), metavar="NAME[,NAME...]", help="only these")
    command.add_argument("--all-versions", action="store_true",
                         help="also runs with older settings of a method, labelled with their revision")  # fmt: skip
    command.add_argument("--budget", type=count, metavar="N",
                         help="compare runs of N evaluations (default: the problem's own budget)")  # fmt: skip


def _table(arguments: argparse.Namespace) -> int:
    from lab.tables.formats import FORMATS
    from lab.tables.tables import everything

    results, forms = _load(arguments)
    text = FORMATS[arguments.format](everything(results, forms, arguments.at))
    if arguments.out is None:
        print(text, end="")
        return 0
    try:
        arguments.out.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise DataError(f"--out: expected a file that can be written, got {str(arguments.out)!r}: {error}") from error
    print(f"written: {arguments.out}")
    return 0


def _plot(arguments: argparse.Namespace) -> int:
    from lab.tables.plots import draw_all

    results, forms = _load(arguments)
    for path in draw_all(results, forms, arguments.out, arguments.format):
        print(f"written: {path}")
    return 0


def _page(arguments: argparse.Namespace) -> int:
    from lab.tables.page import write
    from lab.tables.results import load

    for path in write(load(arguments.results), arguments.out, not arguments.no_figures):
        print(f"written: {path}")
    return 0


def _load(arguments: argparse.Namespace) -> tuple[Results, tuple[str, ...]]:
    """The selected results, and their forms."""
    from lab.tables.results import FORMS, Selection, load

    selection = Selection(arguments.problem, arguments.method, arguments.all_versions, arguments.budget)
    results = load(arguments.results, selection)
    forms = FORMS if arguments.form == "both" else (arguments.form,)
    if not any(results.problems(form) for form in forms):
        raise DataError(f"--form: expected a form that has results, got {arguments.form!r}; leave it out")
    return results, forms


def _names(text: str) -> tuple[str, ...]:
    """The names in an option, which is a list with commas."""
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise argparse.ArgumentTypeError(f"expected names with commas between, got {text!r}")
    return names
