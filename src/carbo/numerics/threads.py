"""The number of threads that the linear algebra uses.

A suggestion is thousands of small factorisations. Spread over many threads, each factorisation waits for the others,
and on a busy machine all of them wait: one thread is then several times faster. carbo sets the number of threads of the
OpenBLAS inside the wheels of numpy and scipy. It reaches other libraries through threadpoolctl, if that is installed,
and leaves them alone otherwise.
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


class Library(NamedTuple):
    """One loaded BLAS: the functions that get and set its number of threads."""

    get: Callable[[], int]
    set: Callable[[int], None]


@contextlib.contextmanager
def limit_threads(observations: int, threads: int | None) -> Iterator[None]:
    """Context in which the linear algebra uses so many threads.

    threads     None: one, or, from 600 observations on, the number that the library has been set to
    """
    if threads is None and observations >= 600:  # measured: larger factorisations gain from more threads
        yield
        return
    wanted = threads or 1
    with _limit_other_libraries(bool(bundled_libraries()), wanted):
        try:
            _enter(wanted)
            yield
        finally:
            _leave()


_lock = threading.Lock()
_original: list[int] = []  # threads of each library before the first context was entered
_contexts = 0  # how many contexts are open: suggestions may overlap in the user's own threads


def _enter(wanted: int) -> None:
    global _contexts  # noqa: PLW0603
    with _lock:
        if _contexts == 0:
            _original[:] = [library.get() for library in bundled_libraries()]
        _contexts += 1
        for library in bundled_libraries():
            library.set(wanted)


def _leave() -> None:
    """Close a context. The last one to close restores the threads that the first one found."""
    global _contexts  # noqa: PLW0603
    with _lock:
        _contexts -= 1
        if _contexts == 0:
            for library, number in zip(bundled_libraries(), _original, strict=True):
                library.set(number)


@cache
def bundled_libraries() -> tuple[Library, ...]:
    """The OpenBLAS libraries inside the wheels of numpy and scipy."""
    found = []
    for package in ("numpy", "scipy"):
        spec = importlib.util.find_spec(package)
        home = Path(spec.origin).parent if spec is not None and spec.origin else None
        if home is None:
            continue
        for folder in (home.parent / f"{package}.libs", home / ".dylibs"):
            for path in sorted(folder.glob("*openblas*")):
                library = _load(path)
                if library is not None:
                    found.append(library)
    return tuple(found)


def _load(path: Path) -> Library | None:
    """The library in this file; None if it cannot be loaded or names its functions differently."""
    try:
        loaded = ctypes.CDLL(str(path))
    except OSError:
        return None
    prefixed = ("scipy_openblas_{}_num_threads64_", "scipy_openblas_{}_num_threads")
    for symbol in (*prefixed, "openblas_{}_num_threads64_", "openblas_{}_num_threads"):
        if hasattr(loaded, symbol.format("set")) and hasattr(loaded, symbol.format("get")):
            return Library(getattr(loaded, symbol.format("get")), getattr(loaded, symbol.format("set")))
    return None


def _limit_other_libraries(known: bool, wanted: int) -> contextlib.AbstractContextManager[object]:
    """threadpoolctl's limit, if no bundled library was found (`known` False) and threadpoolctl is installed."""
    if known or importlib.util.find_spec("threadpoolctl") is None:
        return contextlib.nullcontext()
    from threadpoolctl import threadpool_limits

    limits: contextlib.AbstractContextManager[object] = threadpool_limits(limits=wanted)
    return limits
