"""The `carbo` command. Exit codes: 0 done, 2 wrong input (one line says what), 130 interrupted."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import carbo
from carbo.errors import CarboError
from carbo.settings import PRESETS

EXAMPLES = """examples:
  carbo demo                             tune a made-up database in under a minute
  carbo demo --budget 100 --plot best.png
  carbo bench speed                      seconds of one suggestion at four sizes, as JSON
  carbo bench speed --preset default --threads 2 > speed.json
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line; returns the exit code."""
    arguments = parser().parse_args(argv)
    try:
        return int(arguments.run(arguments))
    except CarboError as error:
        print(f"carbo: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("carbo: interrupted", file=sys.stderr)
        return 130


def parser() -> argparse.ArgumentParser:
    """All commands and their options."""
    top = argparse.ArgumentParser(
        prog="carbo",
        description="Combinatorial Bayesian optimisation: the best setting of tens of discrete knobs.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"carbo {carbo.__version__}")
    commands = top.add_subparsers(title="commands", required=True, metavar="COMMAND")

    demo = commands.add_parser("demo", help="tune a made-up database and show what was found")
    demo.add_argument("--budget", type=_count, default=60, help="evaluations (default 60)")
    demo.add_argument("--seed", type=int, default=0, help="same seed, same run (default 0)")
    demo.add_argument("--preset", choices=sorted(PRESETS), default="default", help="settings (default: default)")
    demo.add_argument("--plot", type=Path, default=Path("carbo-demo.png"), metavar="FILE",
                      help="where the plot is written (default carbo-demo.png)")  # fmt: skip
    demo.set_defaults(run=_demo)

    bench = commands.add_parser("bench", help="measure carbo")
    what = bench.add_subparsers(title="measurements", required=True, metavar="WHAT")
    speed = what.add_parser(
        "speed",
        help="time one warm suggestion at four sizes",
        description="Times one warm suggestion at four sizes and prints JSON: seconds for sampling and for search, and "
        "the same in units of one Cholesky factorisation (dpotrf, n = 250) timed in the same run.",
    )
    speed.add_argument("--preset", choices=sorted(PRESETS), default="paper", help="settings (default: paper)")
    speed.add_argument("--threads", type=_count, default=1, help="threads of the linear algebra (default 1)")
    speed.add_argument("--repeats", type=_count, default=5, help="suggestions timed a point (default 5)")
    speed.add_argument("--data", choices=("uniform", "trail"), default="uniform",
                       help="observations: uniform random rows, or as an optimiser leaves them")  # fmt: skip
    speed.add_argument("--large", action="store_true", help="only 60 binary variables with 1,000 observations")
    speed.set_defaults(run=_speed)
    return top


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number >= 1, got {text!r}")
    return int(text)


def _demo(arguments: argparse.Namespace) -> int:
    from carbo.cli import demo

    return demo.run(arguments.budget, arguments.seed, arguments.preset, arguments.plot)


def _speed(arguments: argparse.Namespace) -> int:
    from carbo.bench import speed

    points = (speed.LARGE,) if arguments.large else speed.POINTS
    report = speed.run(arguments.preset, arguments.threads, arguments.repeats, arguments.data, points)
    print(json.dumps(report, indent=2))
    return 0
