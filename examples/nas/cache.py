"""Accuracies of trained networks in a file, one line of JSON for each; any number of processes may share the file.

A line has an architecture, its accuracies, and a digest of the training that they come from. Lines of another training
are ignored. The file can be copied to another machine.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import IO, Any

from carbo.errors import DataError

Accuracies = tuple[float, ...]
"""One for each seed."""


class Cache:
    """The accuracies in a file. Its folder must exist; the file need not."""

    def __init__(self, path: Path, training: str) -> None:
        self._path, self._training = path, training
        self._known: dict[str, Accuracies] = {}
        self._end = self._lines = 0

    def get(self, architecture: str) -> Accuracies | None:
        """The accuracies of an architecture, by its key; None when the file has none. DataError on a damaged line."""
        if architecture not in self._known and self._path.exists():
            with self._path.open("rb") as file:
                _lock(file, exclusive=False)
                self._read_new_lines(file.fileno())
        return self._known.get(architecture)

    def add(self, architecture: str, accuracies: Accuracies) -> Accuracies:
        """Add the accuracies of an architecture; they are on the disk when this returns.

        Returns the accuracies that the file has now: those of another process, if that one was faster.
        """
        entry = {"training": self._training, "architecture": architecture, "accuracies": list(accuracies)}
        content = (json.dumps(entry) + "\n").encode()
        with self._path.open("ab+", buffering=0) as file:
            _lock(file, exclusive=True)
            descriptor = file.fileno()
            self._read_new_lines(descriptor)
            if architecture not in self._known:
                os.truncate(descriptor, self._end)  # a torn last line, as a crash of the machine may leave one
                written = os.write(descriptor, content)
                if written != len(content):
                    os.truncate(descriptor, self._end)
                    raise OSError(f"{self._path}: only {written} of {len(content)} bytes could be written; "
                                  "is the disk full?")  # fmt: skip
                os.fsync(descriptor)
                self._read_new_lines(descriptor)
        return self._known[architecture]

    def _read_new_lines(self, descriptor: int) -> None:
        """Read the lines that were appended since the last call. The file must be locked."""
        size = os.fstat(descriptor).st_size
        if size < self._end:
            raise DataError(f"{self._path}: expected a file that only grows, got one that was cut; start again")
        fresh = os.pread(descriptor, size - self._end, self._end)
        whole = fresh[: fresh.rfind(b"\n") + 1]
        for text in whole.decode(errors="replace").split("\n")[:-1]:
            self._lines += 1
            training, architecture, accuracies = self._parse(text)
            if training == self._training:
                self._known.setdefault(architecture, accuracies)
        self._end += len(whole)

    def _parse(self, text: str) -> tuple[str, str, Accuracies]:
        try:
            entry = json.loads(text)
            training, architecture = entry["training"], entry["architecture"]
            accuracies = tuple(entry["accuracies"])
        except (ValueError, TypeError, KeyError, RecursionError):
            entry = training = architecture = accuracies = None
        if not (isinstance(training, str) and isinstance(architecture, str) and accuracies and _are_shares(accuracies)):
            raise DataError(f"{self._path}:{self._lines}: damaged line: expected training, architecture and "
                            f"accuracies, got {text[:40]!r}; restore it, or delete it to train anew")  # fmt: skip
        return training, architecture, accuracies


def _lock(file: IO[Any], exclusive: bool) -> None:
    """Lock the open file until it is closed; without effect on systems that have no such locks."""
    with contextlib.suppress(ImportError):
        import fcntl

        fcntl.flock(file.fileno(), fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)


def _are_shares(values: tuple[Any, ...]) -> bool:
    return all(isinstance(value, float | int) and not isinstance(value, bool) and 0 <= value <= 1 for value in values)
