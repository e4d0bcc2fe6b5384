"""The folder of results: records appended whole, each run claimed by one process at a time.

FOLDER/runs/<problem>.jsonl     one line a finished run
FOLDER/.claims/<digest>         locked by the process that is at that run; the system lets go when it dies
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from carbo.errors import DataError
from lab.runs.record import Key, Record, canonical, line, locked, parse, parse_at

Warn = Callable[[str], None]


class Outcome(NamedTuple):
    """Of a finished run: the best value, and the seconds all suggestions took together."""

    best: float
    seconds: float


class Store:
    """A folder of results. Several processes may share it."""

    def __init__(self, folder: str | Path, warn: Warn) -> None:
        self.folder = Path(folder)
        self._warn = warn
        self._known: dict[Path, _Known] = {}

    def path(self, problem: str) -> Path:
        """Where the records of a problem are."""
        return self.folder / "runs" / f"{problem}.jsonl"

    def finished(self, problem: str) -> dict[Key, Outcome]:
        """All finished runs of a problem; only what was appended since the last time is read.

        DataError when a line is damaged.
        """
        path = self.path(problem)
        if not path.exists():
            return {}
        with path.open("rb") as file, locked(file, exclusive=False):
            status = os.fstat(file.fileno())
            known = self._known.get(path)
            if known is None or known.inode != status.st_ino or known.end > status.st_size:
                known = self._known[path] = _Known(status.st_ino)
            file.seek(known.end)
            fresh = file.read()
        whole = fresh[: fresh.rfind(b"\n") + 1]
        for text in whole.decode(errors="replace").split("\n")[:-1]:
            known.lines += 1
            if text:
                record = parse_at(text, path, known.lines)
                known.runs.setdefault(record.key, outcome(record))
        known.end += len(whole)
        return known.runs

    def append(self, record: Record) -> None:
        """Add a line, whole and on the disk when this returns. OSError when that is not possible."""
        path = self.path(record.problem)
        path.parent.mkdir(parents=True, exist_ok=True)
        content = line(record).encode()
        with path.open("ab", buffering=0) as file, locked(file, exclusive=True):
            self._mend(path)
            before = os.fstat(file.fileno()).st_size
            written = os.write(file.fileno(), content)
            if written != len(content):
                os.truncate(path, before)
                raise OSError(f"{path}: only {written} of {len(content)} bytes could be written; is the disk full?")
            os.fsync(file.fileno())

    def repair(self, problem: str) -> None:
        """Drop a torn last line, as a crash of the machine may leave one."""
        path = self.path(problem)
        if path.exists():
            with path.open("ab", buffering=0) as file, locked(file, exclusive=True):
                self._mend(path)

    def _mend(self, path: Path) -> None:
        """To be called with the lock. A last line that only lacks its end gets it."""
        content = path.read_bytes() if _ends_badly(path) else b""
        if not content:
            return
        start = content.rfind(b"\n") + 1
        try:
            parse(content[start:].decode(errors="replace"))
        except DataError:
            os.truncate(path, start)
            self._warn(f"{path}: the last line was torn, {len(content) - start} bytes; dropped, its run is done again")
            return
        with path.open("ab", buffering=0) as file:
            file.write(b"\n")

    @contextlib.contextmanager
    def claim(self, key: Key) -> Iterator[bool]:
        """Within: True, and no other process has the run; or False, because another has it."""
        path = self.folder / ".claims" / hashlib.sha256(canonical(key).encode()).hexdigest()[:32]
        path.parent.mkdir(parents=True, exist_ok=True)
        held = _try_lock(path)
        if held is None:
            yield False
            return
        try:
            yield True
        finally:
            path.unlink(missing_ok=True)  # before the lock goes, so that whoever waits sees that the file is another
            os.close(held)

    def prepare(self) -> None:
        """Make the folders. DataError when that is not possible, or the system has no locks that the dead let go."""
        if importlib.util.find_spec("fcntl") is None:
            raise DataError("python -m lab run: expected a system with flock, as Linux and macOS are, got one without")
        try:
            (self.folder / "runs").mkdir(parents=True, exist_ok=True)
            (self.folder / ".claims").mkdir(exist_ok=True)
            ignore = self.folder / ".claims" / ".gitignore"
            if not ignore.exists():
                ignore.write_text("*\n", encoding="utf-8")
        except OSError as error:
            raise DataError(f"{self.folder}: expected a folder to write results to, got {error.strerror}") from None


def outcome(record: Record) -> Outcome:
    """What is shown of a record."""
    return Outcome(float(record.best[-1]), float(record.seconds.sum()))


@dataclass
class _Known:
    """What was read of a file, up to which byte."""

    inode: int
    end: int = 0
    lines: int = 0
    runs: dict[Key, Outcome] = field(default_factory=dict)


def _ends_badly(path: Path) -> bool:
    with path.open("rb") as file:
        if file.seek(0, os.SEEK_END) == 0:
            return False
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"


def _try_lock(path: Path) -> int | None:
    """An open descriptor that holds the lock of the file at path; None when another process has it."""
    import fcntl

    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        if _is_at(descriptor, path):
            return descriptor
        os.close(descriptor)  # its last holder removed the file in between


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(descriptor), there)
