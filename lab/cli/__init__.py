"""The laboratory's commands: `python -m lab`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from carbo.cli import run
from carbo.cli.arguments import Help, Parser, command, count
from carbo.settings import PRESETS
from lab.cli import cases, runs, tables

EXAMPLES = """examples:
  python -m lab run --list      problems and methods
  python -m lab table           the paper's tables with our runs next to its own
  python -m lab speed           seconds of one suggestion at four sizes, as JSON
"""

if TYPE_CHECKING:
    from carbo.cli.arguments import Commands


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line; returns the exit code, as of the `carbo` command."""
    return run(parser(), argv)


def parser() -> argparse.ArgumentParser:
    """All commands and their options."""
    top: argparse.ArgumentParser = Parser(
        prog="python -m lab",
        description="The laboratory: experiments and benchmarks of carbo and its rivals.",
        epilog=EXAMPLES,
        formatter_class=Help,
    )
    what = top.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_speed(what)
    _add_pace(what)
    _add_growth(what)
    _add_house(what)
    for each in (cases, runs, tables):
        each.add(what)
    return top


def _add_house(what: Commands) -> None:
    house = what.add_parser(
        "house",
        help="count what one suggestion walks through, settings and constants",
        description="Counts the modules, functions and frames of one suggestion, the settings and the constants of the "
        "engine, and prints them beside their limits as JSON. Exit code 1 where a limit is broken.",
    )
    house.set_defaults(run=_house)


def _house(_: argparse.Namespace) -> int:
    from lab.measure import house

    found = house.measure()
    print(json.dumps(found, indent=2))
    return int(any(found[name] > most for name, most in house.LIMITS.items()))


def _add_speed(what: Commands) -> None:
    speed = what.add_parser(
        "speed",
        help="time one warm suggestion at four sizes",
        description="Times one warm suggestion at four sizes and prints JSON: seconds of sampling and of search, also "
        "in units of one Cholesky factorisation (dpotrf, n = 250) timed in the same run.",
    )
    speed.add_argument("--preset", choices=sorted(PRESETS), default="paper", help="settings (default: paper)")
    speed.add_argument("--threads", type=count, default=1, help="threads of the linear algebra (default 1)")
    speed.add_argument("--repeats", type=count, default=5, help="suggestions timed at each size (default 5)")
    speed.add_argument("--data", choices=("uniform", "trail"), default="uniform",
                       help="observations: uniform random rows, or rows like those of an optimiser")  # fmt: skip
    speed.add_argument("--large", action="store_true", help="only 60 binary variables with 1,000 observations")
    speed.set_defaults(run=_speed)


def _speed(arguments: argparse.Namespace) -> int:
    from lab.measure import speed

    points = (speed.LARGE,) if arguments.large else speed.POINTS
    report = speed.run(arguments.preset, arguments.threads, arguments.repeats, arguments.data, points)
    print(json.dumps(report, indent=2))
    return 0


def _add_pace(what: Commands) -> None:
    pace = command(
        what,
        "pace",
        "time suggestions of several methods on the same data",
        about="Tells methods the same data and times their suggestions, each in turn, on one thread. "
        "Prints JSON: processor seconds, and their ratio to those of the first method.",
        examples="examples:\n"
        "  python -m lab pace                                      default, paper and Optuna's GPSampler\n"
        "  python -m lab pace --method default,smac,tpe --variables 30 --observations 100\n",
    )
    pace.add_argument("--method", default="default:doubt=0.0,paper,gp-optuna", metavar="NAME,...",
                      help="methods as for `python -m lab run` (default %(default)s)")  # fmt: skip
    pace.add_argument("--variables", type=count, default=60, help="binary variables (default 60)")
    pace.add_argument("--observations", type=count, default=250, help="observations that they are told (default 250)")
    pace.add_argument("--repeats", type=count, default=5, help="suggestions timed of each method (default 5)")
    pace.set_defaults(run=_pace)


def _pace(arguments: argparse.Namespace) -> int:
    from lab.measure import pace

    names = arguments.method.split(",")
    report = pace.run(names, arguments.variables, arguments.observations, arguments.repeats)
    print(json.dumps(report, indent=2))
    return 0


def _add_growth(what: Commands) -> None:
    growth = command(
        what,
        "growth",
        "how the cost of a suggestion grows",
        about="Measures one suggestion along four axes: observations, binary variables, values of a category, "
        "levels of an integer. Processor seconds, units of one Cholesky factorisation and peak memory are appended to "
        "a file, a line for each point; with --plot they are drawn.",
        examples="examples:\n"
        "  python -m lab growth --axis variables                   one axis\n"
        "  python -m lab growth --axis none --plot growth.png      draw earlier measurements\n",
    )
    growth.add_argument("--axis", choices=("all", "none", "observations", "variables", "category", "levels"),
                        default="all", help="what grows (default all)")  # fmt: skip
    growth.add_argument("--most", type=count, metavar="N", help="no point beyond N on its axis")
    growth.add_argument("--preset", choices=sorted(PRESETS), default="default", help="settings (default: default)")
    growth.add_argument("--repeats", type=count, default=3, help="warm suggestions measured at each point (default 3)")
    growth.add_argument("--out", type=Path, default=Path("results/growth.jsonl"), metavar="FILE",
                        help="where records are added (default results/growth.jsonl)")  # fmt: skip
    growth.add_argument("--plot", type=Path, metavar="FILE", help="draw the newest record of each point")
    growth.set_defaults(run=_growth)


def _growth(arguments: argparse.Namespace) -> int:
    from lab.measure import growth

    axes = {"all": tuple(growth.AXES), "none": ()}.get(arguments.axis, (arguments.axis,))
    points = [p for axis in axes for p in growth.AXES[axis] if p.at <= (arguments.most or p.at)]
    for record in growth.run(points, arguments.preset, arguments.repeats):
        growth.append(arguments.out, record)
        seconds, most = record["seconds"], record["megabytes"]["peak"]
        print(f"{record['name']}: {seconds['total']:.2f} s ({record['units']['total']:,.0f} units), "
              f"the first {seconds['first']:.1f} s; {'?' if most is None else round(most)} MB", flush=True)  # fmt: skip
    if arguments.plot is not None:
        from lab.measure.growth_figure import draw

        print(f"written: {draw(growth.read(arguments.out), arguments.plot)}")
    return 0
