"""What the tests of the tuner share: small studies on small scripts, run in this process or as a user runs them."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from carbo.integrations.optuna.evaluations import Evaluation, evaluations
from carbo.tune.session import Session, open_session
from carbo.tune.study_file import load
from carbo.tune.trials import count
from carbo.tune.tuner import Tuner

VARIABLES = """
[variables.a]
kind = "ordinal"
choices = [1, 2, 3, 4, 5, 6, 7, 8]
[variables.b]
kind = "categorical"
choices = ["x", "y", "z"]
[variables.c]
kind = "binary"
flag = "-c"
[variables.d]
kind = "integer"
low = 1
high = 9
[settings]
samples = 2
burn_in = 2
random_starts = 50
spray_starts = 5
climbers = 2
initial = 1000000
"""
"""432 points; suggestions are random and cheap."""
LOG = 'echo "$1 $2 $3 $4" >>log\n'
"""The command itself says what it evaluated: one line each, by an append that the system makes in one piece."""


def until(condition: Callable[[], bool], seconds: float = 300.0) -> None:
    """Wait for something that can be observed; fail when it does not come."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def write(folder: Path, script: str, study: str = "budget = 5", more: str = "") -> Path:
    """A study of a shell script: $1 is a, $2 is b, $3 is d, $4 is -c or missing."""
    (folder / "run.sh").write_text(script)
    path = folder / "study.toml"
    command = 'run = ["/bin/sh", "run.sh", "{a}", "{b}", "{d}", "{c}"]'
    path.write_text(f"[study]\n{study}\n[command]\n{command}\n{VARIABLES}\n{more}")
    return path


def tuned(path: Path, **options: Any) -> tuple[str, list[Evaluation]]:
    """Run a study file in this process, to its end: why it ended, and what the study holds."""
    with contextlib.closing(open_session(load(path), **options)) as session:
        return Tuner(session, lambda _: None).run(lambda: None, every=0.05), rows(session)


def rows(session: Session) -> list[Evaluation]:
    return evaluations(session.study.get_trials(deepcopy=False), tuned=True)


def log(folder: Path) -> Counter[str]:
    """How often each point was evaluated, as the command itself has written down."""
    path = folder / "log"
    return Counter(path.read_text().splitlines()) if path.exists() else Counter()


def line(row: Evaluation) -> str:
    """What a row's evaluation has written into the log."""
    params = row.params
    return f"{params['a']} {params['b']} {params['d']} {'-c' if params['c'] else ''}"


def start(arguments: Sequence[str], folder: Path, **env: str) -> subprocess.Popen[str]:
    """The command line, as a user starts it; stdout and stderr in one."""
    return subprocess.Popen(
        [sys.executable, "-m", "carbo", *arguments],
        cwd=folder,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", **env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def ended(process: subprocess.Popen[str], seconds: float = 600.0) -> str:
    """Wait for the end and return what was printed."""
    try:
        return process.communicate(timeout=seconds)[0]
    finally:
        process.kill()
        process.wait()


SLOW_VALUE = 'sleep 0.05\necho "$1 $2 $3 $4" >>log\necho $(( $1 * $3 ))\n'
"""Long enough for evaluations to overlap; writes its line when it ends."""


def checked(path: Path, url: str | None, budget: int, repeated: int = 0) -> None:
    """As many evaluations as the budget has, of different points, none lost, and none run again unless interrupted."""
    with contextlib.closing(open_session(load(path, storage=url))) as session:
        found = rows(session)
    done = [row for row in found if row.standing == "done"]
    assert count(found) == len(done) == budget
    assert all(row.value == row.params["a"] * row.params["d"] for row in done)
    assert len({line(row) for row in done}) == budget
    assert count(found, ("running", "waiting")) == 0
    written = log(path.parent)
    assert {line(row) for row in done} <= set(written)
    assert sum(written.values()) <= budget + repeated


def killed_at_random(
    path: Path, seed: int, url: str | None, restart: Callable[[], None] | None, tuners: int = 4, kills: int = 5
) -> int:
    """Tuners that share eight workers, killed and replaced at random moments, to the end; returns how many died.

    restart: restarts the database, once, in the middle.
    """
    chance, folder = random.Random(seed), path.parent
    arguments = ["tune", path.name, "--workers", str(8 // tuners), *(["--storage", url] if url else [])]
    crew = [start(arguments, folder) for _ in range(tuners)]
    events = ["kill"] * (kills - kills // 2) + ["restart"] * (restart is not None) + ["kill"] * (kills // 2)
    for moment, event in zip(sorted(chance.sample(range(20, 190), len(events))), events, strict=True):
        until(lambda moment=moment: sum(log(folder).values()) >= moment)  # type: ignore[misc]
        if event == "restart" and restart is not None:
            restart()
            continue
        victim = chance.randrange(tuners)
        crew[victim].send_signal(signal.SIGKILL)
        crew[victim].communicate(timeout=300)
        crew[victim] = start(arguments, folder)
    printed = [ended(tuner) for tuner in crew]
    assert [tuner.returncode for tuner in crew] == [0] * tuners, printed
    return kills
