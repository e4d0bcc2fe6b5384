"""Writes a page: completely or not at all, and never over another kind of file."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from carbo.tune.errors import StudyError

GENERATOR = "carbo report"
MARK = f'<meta name="generator" content="{GENERATOR} '
"""The text by which a carbo report is recognised. It is in the first HEAD bytes."""
HEAD = 2_000


def check(path: Path, force: bool = False) -> None:
    """StudyError if a page cannot be written: no directory, or (unless `force`) another kind of file at that path."""
    if path.is_dir():
        raise StudyError(f"{path}: expected a file, got a directory; name a file in it, as in {path / 'report.html'}")
    if not path.parent.is_dir():
        raise StudyError(f"{path}: expected a directory to write into, got none; make {path.parent} first")
    if path.exists() and not force and not is_report(path):
        raise StudyError(f"{path}: expected nothing or an older carbo report, got another file; "
                         "name another with --out, or pass --force to replace it")  # fmt: skip


def is_report(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return MARK.encode() in file.read(HEAD)
    except OSError:
        return False


def save(path: Path, text: str) -> Path:
    """Write a new file next to the path, then rename it in one step. Returns the path. StudyError if that fails."""
    target = path.resolve()
    beside = None
    try:
        handle, beside = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode("utf-8", errors="replace"))
            file.flush()
            os.fsync(file.fileno())
        Path(beside).chmod(_mode(target))
        Path(beside).replace(target)
    except OSError as error:
        raise StudyError(f"{path}: expected to write it, got: {error.strerror}; check the directory, or name another "
                         "with --out") from None  # fmt: skip
    finally:
        if beside is not None:
            Path(beside).unlink(missing_ok=True)
    return path


def _mode(target: Path) -> int:
    """The permissions of the old file, or those that a new file gets."""
    if target.exists():
        return target.stat().st_mode & 0o777
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask
