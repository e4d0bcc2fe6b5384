"""The `carbo` command. Exit codes: 0 done, 1 some runs failed, 2 wrong input (one line says what), 130 interrupted.

Each command has a module of its own here, with `add(commands)`, which names its options and what they run.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from carbo.cli import completion, dashboard, demo, init, inspect, report, suggest, tune
from carbo.cli.arguments import Help, Parser
from carbo.errors import CarboError

EXAMPLES = """examples:
  carbo demo                      tune a made-up database in under a minute
  carbo init study.toml           write a study file; carbo asks what to write
  carbo tune study.toml           optimise the command in the study file
  carbo best study.toml           show the best settings so far
  carbo report study.toml         write one HTML page about the study
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line; returns the exit code."""
    return run(parser(), argv)


def run(commands: argparse.ArgumentParser, argv: Sequence[str] | None) -> int:
    """Run one command line of these commands; returns the exit code."""
    arguments, name = commands.parse_args(argv), commands.prog.split()[-1]
    try:
        return int(arguments.run(arguments))
    except CarboError as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"{name}: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output has seen enough, as in `carbo trials study.toml | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


class _Version(argparse.Action):
    """Prints the version. It is looked up here, because that takes longer than reading the command line."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        import carbo

        print(f"carbo {carbo.__version__}")
        parser.exit()


def parser() -> argparse.ArgumentParser:
    """All commands and their options."""
    top: argparse.ArgumentParser = Parser(
        prog="carbo",
        description="Combinatorial Bayesian optimisation: finds the best settings of tens of discrete variables.",
        epilog=EXAMPLES,
        formatter_class=Help,
    )
    top.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    commands = top.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for each in (demo, tune, inspect, report, init, suggest, dashboard):
        each.add(commands)
    completion.add(commands, top)
    return top
