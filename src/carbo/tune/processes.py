"""How to end a whole process tree, and how to know whether the tuner that started it is still alive.

Each run has a session of its own, and a mark in its environment that all its processes inherit. On systems with /proc,
processes that left the session are found by their mark, also by another tuner after the first one was killed.
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
"""How often the processes are searched, in case one of them starts others faster than they can be ended."""
PROC = Path("/proc")


class Owner(NamedTuple):
    """One process, distinguished from all others of any machine and time.

    machine     boot and process namespace; empty if the system does not say
    """

    machine: str
    pid: int
    started: str

    @classmethod
    def this(cls) -> Owner:
        return cls(_machine(), os.getpid(), _started(os.getpid()))

    def is_dead(self) -> bool:
        """True only if that is certain: the process ran on this machine since its last boot, and has ended."""
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
    """When a process started, in ticks since boot; empty if it has ended or never was."""
    try:
        fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]


def find_marked(mark: str) -> list[int]:
    """The living processes of this user with that mark."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for folder in PROC.glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if wanted in (folder / "environ").read_bytes().split(b"\0") and _started(int(folder.name)):
                found.append(int(folder.name))
    return found


def signal_group(pid: int, number: signal.Signals) -> None:
    """Send a signal to the process group of a run, if it still exists."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def end_marked(mark: str) -> int:
    """Kill all processes with the mark, and those they start meanwhile. Returns how many there were."""
    ended: set[int] = set()
    for _ in range(ROUNDS):
        found = find_marked(mark)
        if not found:
            break
        ended.update(found)
        for pid in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
    return len(ended)
