"""The folder of results: whole records are appended, and one process at a time claims a run.

FOLDER/runs/<problem>.jsonl     one line for each finished run
FOLDER/.claims/<digest>         locked by the process that makes the run; the lock ends with the process
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
from lab.runs.record import Key, Record, canonical, file_lock, line, parse, parse_at

Warn = Callable[[str], None]


class Outcome(NamedTuple):
    """The best value of a finished run, and the seconds of all its suggestions together."""

    best: float
    seconds: float


class Store:
    """A folder of results. Several processes may share it."""

    def __init__(self, folder: str | Path, warn: Warn) -> None:
        self.folder = Path(folder)
        self._warn = warn
        self._known: dict[Path, _ReadSoFar] = {}

    def path(self, problem: str) -> Path:
        """The file with the records of a problem."""
        return self.folder / "runs" / f"{problem}.jsonl"

    def finished(self, problem: str) -> dict[Key, Outcome]:
        """All finished runs of a problem. Only lines that were appended since the last call are read.

        DataError when a line is damaged.
        """
        path = self.path(problem)
        if not path.exists():
            return {}
        with path.open("rb") as file, file_lock(file, exclusive=False):
            status = os.fstat(file.fileno())
            known = self._known.get(path)
            if known is None or known.inode != status.st_ino or known.end > status.st_size:
                known = self._known[path] = _ReadSoFar(status.st_ino)
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
        """Append a record; it is on the disk when this returns. OSError when that is not possible."""
        path = self.path(record.problem)
        path.parent.mkdir(parents=True, exist_ok=True)
        content = line(record).encode()
        with path.open("ab", buffering=0) as file, file_lock(file, exclusive=True):
            self._repair_end(path)
            before = os.fstat(file.fileno()).st_size
            written = os.write(file.fileno(), content)
            if written != len(content):
                os.truncate(path, before)
                raise OSError(f"{path}: only {written} of {len(content)} bytes could be written; is the disk full?")
            os.fsync(file.fileno())

    def repair(self, problem: str) -> None:
        """Remove an incomplete last line, which a crash of the machine may leave."""
        path = self.path(problem)
        if path.exists():
            with path.open("ab", buffering=0) as file, file_lock(file, exclusive=True):
                self._repair_end(path)

    def _repair_end(self, path: Path) -> None:
        """Remove an incomplete last line; a whole one without newline gets its newline. The file must be locked."""
        content = path.read_bytes() if _ends_badly(path) else b""
        if not content:
            return
        start = content.rfind(b"\n") + 1
        try:
            parse(content[start:].decode(errors="replace"))
        except DataError:
            os.truncate(path, start)
            self._warn(f"{path}: the last line was torn, {len(content) - start} bytes; removed; its run is made again")
            return
        with path.open("ab", buffering=0) as file:
            file.write(b"\n")

    @contextlib.contextmanager
    def claim(self, key: Key) -> Iterator[bool]:
        """Within: True when this process has claimed the run, False when another process has."""
        path = self.folder / ".claims" / hashlib.sha256(canonical(key).encode()).hexdigest()[:32]
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = _try_lock(path)
        if lock is None:
            yield False
            return
        try:
            yield True
        finally:
            path.unlink(
                missing_ok=True
            )  # while locked, so that a process that waits for the lock sees that the file is gone
            os.close(lock)

    def prepare(self) -> None:
        """Make the folders. DataError when that is not possible, or the system has no locks that end with a process."""
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
    """The outcome of a record."""
    return Outcome(float(record.best[-1]), float(record.seconds.sum()))


@dataclass
class _ReadSoFar:
    """The runs read from a file so far, and the byte after the last one."""

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
        os.close(descriptor)  # the process that had the lock has removed the file in between


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        status = path.stat()
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(descriptor), status)
