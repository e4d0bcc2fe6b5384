"""The events that an engine reports while it runs tasks."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from pathlib import Path

from carbo.errors import CarboError
from lab.runs.grid import Task
from lab.runs.store import Outcome


@dataclass(frozen=True)
class Started:
    """A run has begun."""

    task: Task


@dataclass(frozen=True)
class Advanced:
    """A run has made so many evaluations."""

    task: Task
    evaluations: int
    best: float


@dataclass(frozen=True)
class Finished:
    """The run is recorded; `fresh` is False where another process recorded it in the meantime."""

    task: Task
    outcome: Outcome
    fresh: bool = True


@dataclass(frozen=True)
class Failed:
    """The run raised an exception, or its process died."""

    task: Task
    why: str


@dataclass(frozen=True)
class Elsewhere:
    """Another process makes this run; this engine does not."""

    task: Task


@dataclass(frozen=True)
class Note:
    """A message that belongs to no run."""

    text: str


@dataclass(frozen=True)
class Tick:
    """Nothing happened for a moment; displays update their clocks."""


Event = Started | Advanced | Finished | Failed | Elsewhere | Note | Tick


def reason(error: BaseException) -> str:
    """An error in one line, with the place where it was raised unless the message is meant for users."""
    text = " ".join(str(error).split()) or "no message"
    if isinstance(error, CarboError):
        return text
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {text[:300]}{place}"
