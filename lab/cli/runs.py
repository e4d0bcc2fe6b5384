"""The command run: methods on problems, recorded."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING

from carbo.cli.arguments import command, count
from carbo.errors import DataError, SettingsError

if TYPE_CHECKING:
    from carbo.cli.arguments import Commands
    from lab.runs.events import Event
    from lab.runs.grid import Grid, Task
    from lab.runs.progress import Board
    from lab.runs.record import Key
    from lab.runs.store import Outcome, Store

DATA = "CARBO_WCNF"
SEARCHES = ("digits", "cifar10")
"""Words of --data that are no folders; ./digits names a folder called digits."""
TRAINED = "trained"
"""The folder, inside the folder of results, where architecture searches keep accuracies."""
EXAMPLES = """examples:
  python -m lab run --list
  python -m lab run --problem ising-0 --method random,annealing --runs 1-5 --jobs 2
  python -m lab run --problem ising --method default,default:warp=none+doubt=0.0 --out results/experiments
  python -m lab run --problem paper --method all --both-forms --data downloads/ --jobs 8
  python -m lab run --problem paper --method all --data downloads/ --engine ray --ray-address auto
  python -m lab run --problem nas --data digits --method default,random --runs 1-3
  python -m lab run --problem nas --data cifar10 --data downloads/ --method default
"""


def add(what: Commands) -> None:
    """Add the command run, with its options."""
    run = command(
        what,
        "run",
        "run methods on problems and record every evaluation",
        about="Runs methods on problems and appends one line of JSON for each finished run to "
        "OUT/runs/PROBLEM.jsonl. Recorded runs are not repeated: an interrupted command can be given again. "
        "Several may share the folder. Exit codes: 0 done, 1 some runs failed, 2 wrong input, 130 interrupted.",
        examples=EXAMPLES,
    )
    run.add_argument("--problem", metavar="NAME[,NAME...]", help="problems, or groups of them; see --list")
    run.add_argument(
        "--method",
        metavar="NAME[,NAME...]",
        help="methods, or groups of them; see --list. default:KEY=VALUE+KEY=VALUE is the preset with settings changed",
    )
    run.add_argument("--runs", default="1-25", help="runs of the paper, such as 1-5 or 1,3,5-7 (default 1-25)")
    forms = run.add_mutually_exclusive_group()
    forms.add_argument("--relocated", action="store_true", help="relocated problems; the run's number is the seed")
    forms.add_argument("--both-forms", action="store_true", help="problems as they are, and relocated")
    run.add_argument("--budget", type=count, help="at most so many evaluations in a run (default: the problem's own)")
    run.add_argument("--data", action="append", default=[], metavar="FOLDER|digits|cifar10",
                     help=f"folder of downloaded files, .wcnf, CIFAR-10 and measured tables (default: ${DATA}); or the "
                     "images of the problem nas (default digits); may be given twice")  # fmt: skip
    run.add_argument("--out", type=Path, default=Path("results"), help="folder of the results (default results/)")
    _add_engine(run)
    only = run.add_mutually_exclusive_group()
    only.add_argument("--list", action="store_true", help="show problems, methods and groups; run nothing")
    only.add_argument("--dry-run", action="store_true", help="show what is recorded and what is to do; run nothing")
    run.set_defaults(run=_run)


def _add_engine(run: argparse.ArgumentParser) -> None:
    run.add_argument("--jobs", type=count, help="runs at the same time (default 1; with ray one for each processor)")
    run.add_argument(
        "--engine",
        choices=("local", "ray"),
        default="local",
        help="processes of this machine, or a Ray cluster (default local)",
    )
    run.add_argument("--ray-address", metavar="ADDRESS", help="a Ray cluster, such as auto (default: a local one)")


def _run(arguments: argparse.Namespace) -> int:
    from lab.runs.listing import listing, plan
    from lab.runs.progress import Board
    from lab.runs.store import Store

    data = _folder(arguments.data)
    if arguments.list:
        print("\n".join(listing(data)))
        return 0
    if arguments.ray_address and arguments.engine != "ray":
        raise SettingsError("--ray-address: expected --engine ray with it, got --engine local; add --engine ray")
    grid = _grid(arguments, data)
    store = Store(arguments.out, _warn)
    if not arguments.dry_run:
        _prepare(grid, store)
    board = Board(grid.tasks, _finished(grid, store), arguments.jobs or 1)
    for text in (*grid.skipped, *(plan(board) if arguments.dry_run else ())):
        print(text)
    return 0 if arguments.dry_run else _do(board, store, arguments)


def _grid(arguments: argparse.Namespace, data: str | None) -> Grid:
    from lab.methods import METHODS
    from lab.problems import PROBLEMS
    from lab.runs.grid import METHOD_GROUPS, PROBLEM_GROUPS, Wanted, grid, names, run_numbers

    for option in ("problem", "method"):
        if getattr(arguments, option) is None:
            raise SettingsError(f"--{option}: expected names, got none; `python -m lab run --list` shows them")
    wanted = Wanted(
        problems=names(arguments.problem, PROBLEMS, PROBLEM_GROUPS | _searches(arguments.data)),
        methods=names(arguments.method, METHODS, METHOD_GROUPS),
        runs=run_numbers(arguments.runs),
        relocated=(False, True) if arguments.both_forms else (arguments.relocated,),
        budget=arguments.budget,
        data=data,
        trained=str(arguments.out / TRAINED),
    )
    try:
        return grid(wanted)
    except DataError as error:
        if data is not None:
            raise
        raise DataError(f"{error}, and name its folder with --data or {DATA}") from None


def _folder(words: list[str]) -> str | None:
    """The folder of downloaded files: from the words of --data, else from the environment."""
    folders = [word for word in words if word not in SEARCHES]
    if len(folders) > 1:
        raise SettingsError(f"--data: expected one folder, got {' and '.join(folders)}; put the files into one")
    return folders[0] if folders else os.environ.get(DATA) or None


def _searches(words: list[str]) -> dict[str, tuple[str, ...]]:
    """The group `nas` of problems, from the words of --data; {} where none of them names images."""
    chosen = tuple(dict.fromkeys(f"nas-{word}" for word in words if word in SEARCHES))
    return {"nas": chosen} if chosen else {}


def _prepare(grid: Grid, store: Store) -> None:
    store.prepare()
    if any(task.problem.startswith("nas-") for task in grid.tasks):
        (store.folder / TRAINED).mkdir(exist_ok=True)
    for problem in {task.problem for task in grid.tasks}:
        store.repair(problem)


def _finished(grid: Grid, store: Store) -> dict[Key, Outcome]:
    done: dict[Key, Outcome] = {}
    for problem in {task.problem for task in grid.tasks}:
        done |= store.finished(problem)
    return done


def _do(board: Board, store: Store, arguments: argparse.Namespace) -> int:
    from lab.runs.display import summary

    todo = [task for task in board.tasks if task.key not in board.done]
    recorded = len(board.tasks) - len(todo)
    print(f"{len(board.tasks)} runs wanted, {recorded} recorded already, {len(todo)} to do", flush=True)
    try:
        with _engine(todo, board, store, arguments) as events:
            _follow(board, events)
    except KeyboardInterrupt:
        print("\n".join([*summary(board), "interrupted; give the same command again to continue"]))
        return 130
    print("\n".join(summary(board)))
    return 1 if board.failed else 0


@contextlib.contextmanager
def _engine(todo: list[Task], board: Board, store: Store, arguments: argparse.Namespace) -> Generator[Generator[Event]]:
    """Within: the events of the running engine. Its processes have ended afterwards."""
    if arguments.engine == "local" or not todo:
        from lab.runs import local

        with contextlib.closing(local.work(todo, store.folder, board.at_once)) as events:
            yield events
        return
    from lab.runs import cluster

    with cluster.connection(arguments.ray_address, arguments.jobs) as joined:
        board.at_once = joined.at_once
        with contextlib.closing(cluster.work(todo, store, joined)) as events:
            yield events


def _follow(board: Board, events: Generator[Event]) -> None:
    from lab.runs.display import display

    with display(board) as shown:
        for event in events:
            board.update(event)
            shown.show(event)


def _warn(text: str) -> None:
    print(f"lab: {text}", file=sys.stderr)
