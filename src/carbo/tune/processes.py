"""Ending a whole process tree, and telling whether the tuner that started it still lives.

A run has a session of its own and a mark in its environment, which all that it starts inherits. Where /proc exists,
processes that left the session are found by the mark, also by another tuner, after the first was killed.
"""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path
from typing import NamedTuple

MARK = "CARBO_EVALUATION"
"""The environment variable that marks the processes of a run."""
ROUNDS = 50
"""Sweeps over the processes before giving up on one that starts others faster than they can be ended."""
PROC = Path("/proc")


class Owner(NamedTuple):
    """One process, told from every other of any machine and time."""

    machine: str
    """Boot and process namespace; empty where the system does not tell."""
    pid: int
    started: str

    @classmethod
    def this(cls) -> Owner:
        return cls(_machine(), os.getpid(), _started(os.getpid()))

    def is_dead(self) -> bool:
        """True only when that is certain: it ran under this very kernel and is gone."""
        here = _machine()
        if not here or self.machine != here or not self.started:
            return False
        return _started(self.pid) != self.started


def _machine() -> str:
    try:
        boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink(PROC / 'self/ns/pid')}"
    except OSError:
        return ""


def _started(pid: int) -> str:
    """When a process started, in ticks since boot; empty when there is no such process or it has ended."""
    try:
        fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]


def marked(mark: str) -> list[int]:
    """The living processes of this user with that mark."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for folder in PROC.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if wanted in (folder / "environ").read_bytes().split(b"\0") and _started(int(folder.name)):
                found.append(int(folder.name))
    return found


def signal_group(pid: int, number: signal.Signals) -> None:
    """Send a signal to the process group that a run leads, if anything is left of it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def end_marked(mark: str) -> int:
    """Kill every process with the mark, and what they start meanwhile; returns how many there were."""
    ended: set[int] = set()
    for _ in range(ROUNDS):
        found = marked(mark)
        if not found:
            break
        ended.update(found)
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
    return len(ended)
