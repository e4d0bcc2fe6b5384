"""carbo bench foresight: how well models predict what recorded runs did next."""

from __future__ import annotations

import argparse
import os
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from carbo.cli.arguments import command, count
from carbo.errors import DataError

if TYPE_CHECKING:
    from carbo.bench.record import Record
    from carbo.cli.arguments import Commands
    from carbo.space import Space

EXAMPLES = """examples:
  carbo bench foresight --model default,default:highest_order=2,default@mode
  carbo bench foresight --model default,paper --by tpe --runs 1,11 --told 40,80 --ahead 20
"""


def add(what: Commands) -> None:
    """carbo bench foresight."""
    foresight = command(
        what,
        "foresight",
        "how well models predict what recorded runs did next",
        about="Tells models the first evaluations of recorded runs and has them predict the next ones: log density, "
        "coverage of intervals, error, seconds. What is measured is appended to a file, and what the file "
        "holds is not measured again; the table over all cases is printed.",
        examples=EXAMPLES,
    )
    foresight.add_argument("--model", default="default,paper", metavar="NAME,...",
                           help="presets, also with settings changed, default:highest_order=2, or at the posterior's "
                           "mode, default@mode (default %(default)s); the first is compared with")  # fmt: skip
    foresight.add_argument("--results", type=Path, default=Path("results"), metavar="FOLDER",
                           help="recorded runs (default results)")  # fmt: skip
    foresight.add_argument("--by", default="evolution,tpe", metavar="NAME,...",
                           help="methods whose runs are predicted (default %(default)s)")  # fmt: skip
    foresight.add_argument("--problem", metavar="NAME,...", help="only these problems (default: all there are)")
    foresight.add_argument("--runs", default="1,11", metavar="N,...", help="only these runs (default %(default)s)")
    foresight.add_argument("--told", default="60", metavar="N,...", help="evaluations told (default %(default)s)")
    foresight.add_argument("--ahead", type=count, default=20, help="evaluations to be predicted (default 20)")
    foresight.add_argument("--data", metavar="FOLDER", default=os.environ.get("CARBO_WCNF"),
                           help="downloaded files of MaxSAT problems (default: $CARBO_WCNF)")  # fmt: skip
    foresight.add_argument("--out", type=Path, default=Path("results/experiments/foresight.jsonl"), metavar="FILE",
                           help="where measurements are added (default %(default)s)")  # fmt: skip
    foresight.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from carbo.bench import foresight
    from carbo.bench.formats import markdown
    from carbo.bench.problems import problem
    from carbo.bench.record import read

    @cache
    def space(name: str, run: int, relocated: int | None) -> Space:
        made = problem(name, run, arguments.data)
        return (made if relocated is None else made.relocated(relocated)).space

    def space_of(record: Record) -> Space:
        return space(record.problem, record.run, record.relocated)

    models, by = arguments.model.split(","), arguments.by.split(",")
    runs, told = ([_whole(name, text) for text in getattr(arguments, name).split(",")] for name in ("runs", "told"))
    problems = arguments.problem and arguments.problem.split(",")
    records = [
        r for r in read(arguments.results)
        if r.method in by and r.run in runs and (not problems or r.problem in problems)
    ]  # fmt: skip
    every = foresight.cases(records, told, arguments.ahead)
    if not every:
        raise DataError(
            f"{arguments.results}: expected runs {arguments.runs} of {arguments.by} with at least "
            f"{min(told) + arguments.ahead} evaluations, got none; `carbo bench run` makes them"
        )
    print(f"{len(every)} cases, {len(models)} models", file=sys.stderr)
    for line in foresight.run(every, models, arguments.out, space_of):
        case = f"{line['problem']} by {line['by']} run {line['run']}, {line['told']} told"
        print(f"{case}, {line['model']}: gain {line['gain']:.3f}", file=sys.stderr, flush=True)
    wanted = {foresight.key_of({**case.name, "model": model}) for case in every for model in models}
    lines = [line for line in foresight.read(arguments.out) if foresight.key_of(line) in wanted]
    print(markdown([foresight.table(lines, models)]))
    return 0


def _whole(name: str, text: str) -> int:
    if not text.strip().isdecimal() or int(text) < 1:
        raise DataError(f"--{name}: expected whole numbers from 1 on with commas between, got {text!r}")
    return int(text)
