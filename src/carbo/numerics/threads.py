"""How many threads the linear algebra uses.

A suggestion is thousands of small factorisations. Spread over many threads, each waits for the others, and on a busy
machine all of them wait: one thread is then several times faster. The OpenBLAS inside the wheels of numpy and scipy
is told directly; other libraries are reached through threadpoolctl where that is installed, and left alone otherwise.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import threading
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

LARGE = 600
"""Observations from which more threads pay for one suggestion."""
SYMBOLS = ("scipy_openblas_{}_num_threads64_", "scipy_openblas_{}_num_threads",
           "openblas_{}_num_threads64_", "openblas_{}_num_threads")  # fmt: skip


class Library(NamedTuple):
    """One loaded BLAS."""

    get: Callable[[], int]
    set: Callable[[int], None]


@contextlib.contextmanager
def limited(observations: int, threads: int | None) -> Iterator[None]:
    """Within: that many threads for the linear algebra; None: one, unless observations are so many that more pay."""
    if threads is None and observations >= LARGE:
        yield
        return
    wanted = threads or 1
    with _other(bool(bundled()), wanted):
        try:
            _enter(wanted)
            yield
        finally:
            _leave()


_lock = threading.Lock()
_before: list[int] = []  # the threads the libraries had before the first of those inside came
_inside = 0


def _enter(wanted: int) -> None:
    global _inside  # noqa: PLW0603
    with _lock:
        if _inside == 0:
            _before[:] = [library.get() for library in bundled()]
        _inside += 1
        for library in bundled():
            library.set(wanted)


def _leave() -> None:
    """The last one out restores what the first one found: suggestions may overlap in threads of the user's."""
    global _inside  # noqa: PLW0603
    with _lock:
        _inside -= 1
        if _inside == 0:
            for library, number in zip(bundled(), _before, strict=True):
                library.set(number)


@cache
def bundled() -> tuple[Library, ...]:
    """The OpenBLAS libraries that came inside the wheels of numpy and scipy."""
    found = []
    for package in ("numpy", "scipy"):
        spec = importlib.util.find_spec(package)
        home = Path(spec.origin).parent if spec is not None and spec.origin else None
        if home is None:
            continue
        for folder in (home.parent / f"{package}.libs", home / ".dylibs"):
            for path in sorted(folder.glob("*openblas*")):
                library = _library(path)
                if library is not None:
                    found.append(library)
    return tuple(found)


def _library(path: Path) -> Library | None:
    try:
        loaded = ctypes.CDLL(str(path))
    except OSError:
        return None
    for symbol in SYMBOLS:
        if hasattr(loaded, symbol.format("set")) and hasattr(loaded, symbol.format("get")):
            return Library(getattr(loaded, symbol.format("get")), getattr(loaded, symbol.format("set")))
    return None


def _other(known: bool, wanted: int) -> contextlib.AbstractContextManager[object]:
    """threadpoolctl's limit where no bundled library was found and it is installed."""
    if known or importlib.util.find_spec("threadpoolctl") is None:
        return contextlib.nullcontext()
    from threadpoolctl import threadpool_limits

    limits: contextlib.AbstractContextManager[object] = threadpool_limits(limits=wanted)
    return limits
