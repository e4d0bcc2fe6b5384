"""carbo best, trials and relevance: what a study has found."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from carbo.cli.arguments import add_study, command

if TYPE_CHECKING:
    from carbo.cli.arguments import Commands
    from carbo.tune.reading import OpenStudy

EXAMPLES = {
    "best": """examples:
  carbo best study.toml                      value, settings and command
  carbo best study.toml --json
  carbo best study.db                        without the study file
  eval "$(carbo best study.toml --command)"  run the best command""",
    "trials": """examples:
  carbo trials study.toml
  carbo trials study.toml --csv >trials.csv
  carbo trials study.toml --json | jq '.[] | select(.value == null) | .reason'
  carbo trials postgresql://me@db/tuning --study gcc""",
    "relevance": """examples:
  carbo relevance study.toml             each variable's share of the variation
  carbo relevance study.toml --json""",
}


def add(commands: Commands) -> None:
    """The three commands and their options."""
    best = _command(commands, "best", "the best evaluation so far, its settings and its command")
    best.add_argument("--command", action="store_true", help="print only the command line")
    best.set_defaults(run=_with(_best))
    trials = _command(commands, "trials", "all evaluations, as a table, CSV or JSON")
    trials.add_argument("--csv", action="store_true", help="print CSV, with a column for each variable")
    trials.set_defaults(run=_with(_trials))
    relevance = _command(commands, "relevance", "which variables matter, according to the model")
    relevance.set_defaults(run=_with(_relevance))


def _command(commands: Commands, name: str, what: str) -> argparse.ArgumentParser:
    made = command(commands, name, f"show {what}", about=f"Shows {what}.", examples=EXAMPLES[name])
    add_study(made)
    made.add_argument("--json", action="store_true", help="print JSON")
    return made


def _with(show: Callable[[argparse.Namespace, OpenStudy], None]) -> Callable[[argparse.Namespace], int]:
    """A command that opens a study of `carbo tune`, shows something of it, and closes it."""

    def run(arguments: argparse.Namespace) -> int:
        from carbo.tune.reading import open_study

        with open_study(arguments.study, arguments.name, arguments.storage) as opened:
            opened.need_description()
            show(arguments, opened)
        return 0

    return run


def _best(arguments: argparse.Namespace, opened: OpenStudy) -> None:
    from carbo.tune.evaluate import command_text
    from carbo.tune.formatting import as_text, number
    from carbo.tune.trials import count, need_best

    rows, described = opened.evaluations(), opened.need_description()
    leader = need_best(rows, described.direction, f"study {opened.name!r}")
    command = command_text(described.command, described.variables.flags, leader.params, leader.number)
    if arguments.command:
        print(command)
    elif arguments.json:
        found = {"study": opened.name, "value": leader.value, "trial": leader.number, "params": leader.params}
        print(json.dumps({**found, "command": command}, indent=2))
    else:
        failed = count(rows, ("failed",))
        print(f"best {number(leader.value)}: trial {leader.number} of {count(rows)} evaluations, {failed} failed")
        width = max(map(len, leader.params))
        for name, value in leader.params.items():
            print(f"  {name:<{width}}  {as_text(value)}")
        print(f"command: {command}")


def _trials(arguments: argparse.Namespace, opened: OpenStudy) -> None:
    from carbo.tune.formatting import clock, number, plain, settings
    from carbo.tune.trials import as_json, ended_at

    rows = opened.evaluations()
    if arguments.json:
        print(json.dumps([as_json(row) for row in rows], indent=2))
    elif arguments.csv:
        names = list(opened.need_description().variables.space.names)
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(["trial", "standing", "value", "seconds", "finished", *names, "reason"])
        for row in rows:
            cells = [row.number, row.standing, row.value, row.seconds, ended_at(row)]
            writer.writerow([*cells, *(row.params.get(name) for name in names), row.reason])
    else:
        print(f"{'trial':>6}  {'standing':<9}  {'value':>12}  {'time':>12}  settings")
        for row in rows:
            seconds = clock(row.seconds) if row.seconds is not None else "-"
            said = f"  ({plain(row.reason)})" if row.reason else ""
            print(f"{row.number:>6}  {row.standing:<9}  {number(row.value):>12}  {seconds:>12}  "
                  f"{settings(row.params)}{said}")  # fmt: skip


def _relevance(arguments: argparse.Namespace, opened: OpenStudy) -> None:
    from carbo.errors import DataError
    from carbo.tune.formatting import number
    from carbo.tune.study_model import relevance

    found = relevance(opened.sampler, opened.study)
    if found is None:
        values = [row.value for row in opened.evaluations() if row.value is not None]
        got = f"{len(values)} that are all {number(values[0])}" if len(values) > 1 else f"{len(values)} of them"
        raise DataError(f"study {opened.name!r}: expected evaluations with different values, got {got}; "
                        "let the tuner run on: nothing distinguishes one setting from another yet")  # fmt: skip
    if arguments.json:
        shares = {name: share._asdict() for name, share in found.variables.items()}
        told = {"study": opened.name, "variables": shares, "orders": found.orders, "adjacent": found.adjacent}
        print(json.dumps(told, indent=2))
    else:
        print(found)
