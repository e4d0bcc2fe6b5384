"""carbo tune: optimise any external command."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from carbo.cli.arguments import command, count

if TYPE_CHECKING:
    from carbo.cli.arguments import Commands
    from carbo.tune.study_file import StudyFile
    from carbo.tune.summary import Summary

EXAMPLES = """examples:
  carbo init study.toml                  write a study file
  carbo tune study.toml --dry-run        show what would be run
  carbo tune study.toml                  run it; Ctrl-C stops it
  carbo tune study.toml                  continue it
  carbo tune study.toml --workers 4 --budget 200
  carbo tune study.toml --storage 'postgresql://me@db/tuning'
                                         run this on each of several machines
  carbo tune study.toml --json >summary.json

exit codes: 0 done, 2 wrong input, 130 interrupted"""


def add(commands: Commands) -> None:
    """carbo tune and its options."""
    tune = command(
        commands,
        "tune",
        "optimise any external command",
        about="Runs the command of a study file many times, each time with the most promising settings, and stores "
        "every value in a database. If it is stopped, even by kill -9, no finished evaluation is lost.",
        examples=EXAMPLES,
    )
    tune.add_argument("file", type=Path, metavar="FILE", help="the study file (TOML)")
    tune.add_argument("--budget", type=count, help="number of evaluations, including those of earlier runs")
    tune.add_argument("--workers", type=count, help="number of evaluations at the same time, in this process")
    tune.add_argument(
        "--storage", metavar="URL", help="a database URL or SQLite file to use instead of the one in FILE"
    )
    tune.add_argument("--extend", action="store_true", help="accept changes of FILE that are compatible with the study")
    tune.add_argument("--dry-run", action="store_true", help="show the study and one command; run nothing")
    tune.add_argument("--json", action="store_true", help="print the summary as JSON")
    tune.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    file = _load_file(arguments)
    if arguments.dry_run:
        print(json.dumps(_plan_as_json(file), indent=2) if arguments.json else _plan_as_text(file))
        return 0
    summary = _tune(file, arguments.extend)
    print(json.dumps(summary.as_json(), indent=2) if arguments.json else summary)
    return 130 if summary.interrupted else 0


def _load_file(arguments: argparse.Namespace) -> StudyFile:
    from carbo.tune.evaluate import check_program
    from carbo.tune.study_file import load

    file = load(arguments.file, arguments.storage)
    check_program(file)
    changed = {key: getattr(arguments, key) for key in ("budget", "workers") if getattr(arguments, key) is not None}
    return dataclasses.replace(file, plan=dataclasses.replace(file.plan, **changed))


def _tune(file: StudyFile, extend: bool) -> Summary:
    from carbo.tune.display import display
    from carbo.tune.errors import StudyError
    from carbo.tune.live_relevance import Insight
    from carbo.tune.session import open_session
    from carbo.tune.storage import explain_errors
    from carbo.tune.summary import Summary
    from carbo.tune.tuner import Tuner

    if os.name != "posix":
        raise StudyError(f"tuning: expected a POSIX system such as Linux or macOS, got {os.name}; on Windows use WSL")
    with _signals(), contextlib.closing(open_session(file, extend)) as session:
        screen = display(file, Insight(session.sampler, session.study))
        tuner = Tuner(session, screen.say)
        if session.fresh:
            screen.say("the study file has changed and no evaluation had succeeded: the study starts again from zero")
        interrupted, ended = False, "interrupted"
        try:
            with explain_errors(file.storage), screen.open():
                screen.update(tuner.snapshot())
                ended = tuner.run(lambda: _update(screen, tuner))
                screen.update(tuner.snapshot())
        except KeyboardInterrupt:
            interrupted = True
        with explain_errors(file.storage):
            now = tuner.snapshot()
    return Summary(file, ended, interrupted, now.rows, len(now.mine), now.seconds)


def _update(screen: Any, tuner: Any) -> None:
    """Show the latest state. If the database does not answer, the workers wait for it, not the display."""
    import optuna
    import sqlalchemy

    with contextlib.suppress(optuna.exceptions.StorageInternalError, sqlalchemy.exc.SQLAlchemyError):
        screen.update(tuner.snapshot())


@contextlib.contextmanager
def _signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end a run as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, _interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


# ---------------------------------------------------------------- --dry-run


def _example(file: StudyFile) -> str:
    """The command of the first starting point, or of a random point if there is none."""
    import numpy as np

    from carbo.tune.evaluate import command_text

    row = file.space.random_rows(np.random.default_rng(file.plan.seed or 0), 1)[0]
    return command_text(file.command, file.flags, file.starts[0] if file.starts else file.space.decode(row))


def _plan_as_json(file: StudyFile) -> dict[str, Any]:
    from carbo.tune.compatibility import description
    from carbo.tune.storage import mask_url

    plan = dataclasses.asdict(file.plan)
    plan["deadline"] = plan["deadline"] if plan["deadline"] is None else str(plan["deadline"])
    return {
        "study": file.name,
        "storage": mask_url(file.storage),
        **plan,
        **description(file),
        "starts": list(file.starts),
        "points": file.space.cardinality,
        "example": _example(file),
    }


def _plan_as_text(file: StudyFile) -> str:
    from carbo.tune.storage import mask_url

    plan = file.plan
    limits = [f"{plan.budget} evaluations"] if plan.budget else []
    limits += [f"deadline {plan.deadline}"] if plan.deadline else []
    limits += [f"time-out {plan.timeout:g} s"] if plan.timeout else ["no time-out"]
    limits += [f"{plan.repeats} runs each, {plan.aggregate}"] if plan.repeats > 1 else []
    reading = f"{file.value.reader} of {file.value.file.text if file.value.file else file.value.stream}"
    lines = [
        f"study        {file.name}: {file.direction} {reading if file.value.reader != 'wall-time' else 'wall time'}",
        f"storage      {mask_url(file.storage)}",
        f"plan         {', '.join(limits)}; {plan.workers} at a time; preset {plan.preset}",
        f"variables    {file.space.dim}, {file.space.cardinality:,} combinations",
    ]
    for name, variable in file.space.variables.items():
        lines.append(f"  {name:<18} {type(variable).__name__.lower():<12} {_choices(variable.choices)}")
    lines += [f"constraint   {text}" for text in file.variables.constraints]
    lines += [f"starts       {len(file.starts)}"] if file.starts else []
    return "\n".join([*lines, f"for example  {_example(file)}"])


def _choices(choices: tuple[Any, ...]) -> str:
    from carbo.tune.formatting import as_text

    words = [repr(c) if isinstance(c, str) else as_text(c) for c in choices]
    return ", ".join(words if len(words) <= 8 else [*words[:4], "...", words[-1]])
