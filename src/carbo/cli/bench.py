"""carbo bench: the laboratory."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from carbo.cli import bench_run, bench_tables
from carbo.cli.arguments import count
from carbo.settings import PRESETS

if TYPE_CHECKING:
    from carbo.cli.arguments import Commands


def add(commands: Commands) -> None:
    """carbo bench and what it measures."""
    bench = commands.add_parser("bench", help="measure carbo")
    what = bench.add_subparsers(title="measurements", required=True, metavar="WHAT")
    _add_speed(what)
    bench_run.add(what)
    bench_tables.add(what)


def _add_speed(what: Commands) -> None:
    speed = what.add_parser(
        "speed",
        help="time one warm suggestion at four sizes",
        description="Times one warm suggestion at four sizes and prints JSON: seconds for sampling and for search, and "
        "the same in units of one Cholesky factorisation (dpotrf, n = 250) timed in the same run.",
    )
    speed.add_argument("--preset", choices=sorted(PRESETS), default="paper", help="settings (default: paper)")
    speed.add_argument("--threads", type=count, default=1, help="threads of the linear algebra (default 1)")
    speed.add_argument("--repeats", type=count, default=5, help="suggestions timed a point (default 5)")
    speed.add_argument("--data", choices=("uniform", "trail"), default="uniform",
                       help="observations: uniform random rows, or as an optimiser leaves them")  # fmt: skip
    speed.add_argument("--large", action="store_true", help="only 60 binary variables with 1,000 observations")
    speed.set_defaults(run=_speed)


def _speed(arguments: argparse.Namespace) -> int:
    from carbo.bench import speed

    points = (speed.LARGE,) if arguments.large else speed.POINTS
    report = speed.run(arguments.preset, arguments.threads, arguments.repeats, arguments.data, points)
    print(json.dumps(report, indent=2))
    return 0
