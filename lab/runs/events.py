"""What an engine reports while it works through tasks."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from pathlib import Path

from carbo.errors import CarboError
from lab.runs.grid import Task
from lab.runs.store import Outcome


@dataclass(frozen=True)
class Started:
    """A run is under way."""

    task: Task


@dataclass(frozen=True)
class Advanced:
    """A run under way has so many evaluations."""

    task: Task
    evaluations: int
    best: float


@dataclass(frozen=True)
class Finished:
    """The run is recorded; fresh: by this very engine, not by another process in the meantime."""

    task: Task
    outcome: Outcome
    fresh: bool = True


@dataclass(frozen=True)
class Failed:
    """The run raised, or its process died."""

    task: Task
    why: str


@dataclass(frozen=True)
class Elsewhere:
    """Another process is at this run; it was left to it."""

    task: Task


@dataclass(frozen=True)
class Note:
    """Something to be said that belongs to no run."""

    text: str


@dataclass(frozen=True)
class Tick:
    """Nothing happened, for a moment; clocks went on."""


Event = Started | Advanced | Finished | Failed | Elsewhere | Note | Tick


def reason(error: BaseException) -> str:
    """An error in one line, with the place where it was raised unless the message is meant for users."""
    text = " ".join(str(error).split()) or "no message"
    if isinstance(error, CarboError):
        return text
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {text[:300]}{place}"
