"""The commands foresight, ascent and choice: models, searches and choices tried on recorded runs cut in two."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from carbo.cli.arguments import command, count, counts
from carbo.errors import DataError

if TYPE_CHECKING:
    from carbo.cli.arguments import Commands
    from lab.measure.recorded_cases import Experiment
    from lab.runs.record import Record


def add(what: Commands) -> None:
    """Add the commands foresight, ascent and choice, with their options."""
    foresight = command(
        what,
        "foresight",
        "how well models predict what recorded runs did next",
        about="Gives models the first evaluations of recorded runs and lets them predict the next. Measures log "
        "density, coverage of intervals, error and seconds." + KEPT,
        examples="examples:\n"
        "  python -m lab foresight --model default,default:highest_order=2,default@mode\n"
        "  python -m lab foresight --model default,paper --by tpe --runs 1,11 --observations 40,80 --ahead 20\n",
    )
    foresight.add_argument("--model", default="default,paper", metavar="NAME,...",
                           help="presets; presets with settings changed, such as default:highest_order=2; or with the "
                           "mode of the posterior, default@mode (default %(default)s); the others are compared with "
                           "the first")  # fmt: skip
    _add_cases(foresight, "foresight")
    foresight.set_defaults(run=_foresight)
    ascent = command(
        what,
        "ascent",
        "how well searches maximise the acquisition in equal time",
        about="Gives the default preset the first evaluations of recorded runs and lets several searches look for the "
        "largest expected improvement under the same model. Genetic search and annealing get the seconds that the "
        "first search took." + KEPT,
        examples="examples:\n"
        "  python -m lab ascent --search local,genetic,annealing\n"
        "  python -m lab ascent --search local,random_starts=20000,climbers=5,spray_starts=0\n",
    )
    ascent.add_argument("--search", default="local,genetic,annealing", metavar="NAME,...",
                        help="local, genetic, annealing, or settings changed, such as climbers=5+random_starts=20000 "
                        "(default %(default)s)")  # fmt: skip
    _add_cases(ascent, "ascent")
    ascent.set_defaults(run=_ascent)
    choice = command(
        what,
        "choice",
        "which point to take at the end of a noisy run",
        about="Gives the default preset the first evaluations of recorded runs of noisy problems. Then evaluates many "
        "times the point with the best value and the point with the best posterior mean." + KEPT,
        examples="examples:\n  python -m lab choice --by default,tpe --observations 60,160,300\n",
    )
    _add_cases(choice, "choice", "pest-control")
    choice.set_defaults(run=_choice)


KEPT = " Measurements are appended to a file. Cases in the file are not measured again. Prints a table over all cases."


def _add_cases(parser: argparse.ArgumentParser, name: str, problem: str | None = None) -> None:
    """Options that select recorded runs, and where they are cut."""
    parser.add_argument("--results", type=Path, default=Path("results"), metavar="FOLDER",
                        help="recorded runs (default results)")  # fmt: skip
    parser.add_argument("--by", default="evolution,tpe", metavar="NAME,...",
                        help="methods whose runs are cut (default %(default)s)")  # fmt: skip
    parser.add_argument("--problem", metavar="NAME,...", default=problem,
                        help=f"only these problems (default: {problem or 'all there are'})")  # fmt: skip
    parser.add_argument("--runs", default="1,11", metavar="RUNS",
                        help="only these runs, such as 1,11 or 1-5 (default %(default)s)")  # fmt: skip
    parser.add_argument("--observations", type=counts, default="60", metavar="N,...",
                        help="number of first evaluations that are given (default %(default)s)")  # fmt: skip
    parser.add_argument("--ahead", type=count, default=20, metavar="N",
                        help="number of next evaluations that are judged (default %(default)s)")  # fmt: skip
    parser.add_argument("--data", metavar="FOLDER", default=os.environ.get("CARBO_WCNF"),
                        help="downloaded files of MaxSAT problems (default: $CARBO_WCNF)")  # fmt: skip
    parser.add_argument("--out", type=Path, default=Path(f"results/experiments/{name}.jsonl"), metavar="FILE",
                        help="where measurements are added (default %(default)s)")  # fmt: skip


def _foresight(arguments: argparse.Namespace) -> int:
    from lab.measure import prediction

    return _measure(arguments, prediction.experiment(arguments.model.split(",")))


def _ascent(arguments: argparse.Namespace) -> int:
    from lab.measure import acquisition_search

    return _measure(arguments, acquisition_search.experiment(arguments.search.split(",")))


def _choice(arguments: argparse.Namespace) -> int:
    from lab.measure import final_choice

    return _measure(arguments, final_choice.experiment())


def _measure(arguments: argparse.Namespace, experiment: Experiment) -> int:
    from lab.measure import recorded_cases as cases
    from lab.problems import problem
    from lab.tables.formats import markdown

    every = cases.cases(_records(arguments), arguments.observations, arguments.ahead)
    if not every:
        of = f" of {arguments.problem}" if arguments.problem else ""
        raise DataError(
            f"{arguments.results}: expected runs {arguments.runs}{of} by {arguments.by} with at least "
            f"{min(arguments.observations) + arguments.ahead} evaluations, got none; `python -m lab run` makes them"
        )
    print(f"{len(every)} cases of {', '.join(experiment.names)}", file=sys.stderr)
    for line in cases.run(experiment, every, arguments.out, lambda r: problem(r.problem, r.run, arguments.data)):
        case = f"{line['problem']} by {line['by']} run {line['run']}, {line['told']} observations"
        print(f"{case}, {line['model']}: {experiment.shown} {line[experiment.shown]:.3f}", file=sys.stderr, flush=True)
    wanted = {experiment.key(case, name) for case in every for name in experiment.names}
    lines = [line for line in cases.read(arguments.out) if cases.key_of(line) in wanted]
    print(markdown([experiment.table(lines, experiment.names)]))
    return 0


def _records(arguments: argparse.Namespace) -> list[Record]:
    from lab.runs.grid import run_numbers
    from lab.runs.record import read

    by, runs = arguments.by.split(","), run_numbers(arguments.runs)
    problems = arguments.problem and arguments.problem.split(",")
    wanted = [r for r in read(arguments.results) if r.method in by and r.run in runs]
    return [r for r in wanted if not problems or r.problem in problems]
