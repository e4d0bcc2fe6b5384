"""Runs a command without a shell, in a session of its own, and can end its whole process tree."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
import uuid
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from carbo.tune.errors import EvaluationFailed, Interrupted
from carbo.tune.formatting import clock, plain
from carbo.tune.processes import MARK, end_marked, signal_group

KEPT = 2**20
"""How many of the last bytes of each stream are kept."""
CHUNK = 2**16
POLITE = 2.0
"""Seconds between asking a process tree to end and killing it."""
LINES = 5
"""How many of the last lines of standard error a failure shows."""


@dataclass(frozen=True)
class Job:
    """One run of a command. `mark` is in the environment of all processes that it starts."""

    arguments: Sequence[str]
    cwd: Path
    env: Mapping[str, str] = field(default_factory=dict)
    timeout: float | None = None
    mark: str = field(default_factory=lambda: uuid.uuid4().hex)


@dataclass(frozen=True)
class Output:
    """The output of a run that ended with exit code 0, and its wall time in seconds."""

    stdout: str
    stderr: str
    seconds: float


class Tail:
    """The last KEPT bytes of a stream."""

    def __init__(self) -> None:
        self._chunks: deque[bytes] = deque()
        self._size, self._cut = 0, False

    def add(self, chunk: bytes) -> None:
        self._chunks.append(chunk)
        self._size += len(chunk)
        while self._size - len(self._chunks[0]) >= KEPT:
            self._size -= len(self._chunks.popleft())
            self._cut = True

    def text(self) -> str:
        """The text that was kept. If anything was dropped, without the first line, which may be incomplete."""
        kept = b"".join(self._chunks).decode("utf-8", errors="replace")
        return kept.partition("\n")[2] if self._cut and "\n" in kept else kept


class Runner:
    """Runs jobs, several at a time from several threads, and can stop all of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[str, _Run] = {}
        self._stopped = False

    def run(self, job: Job) -> Output:
        """Run to the end. EvaluationFailed if there is no exit code 0 within the time; Interrupted after `stop`."""
        with self._lock:
            if self._stopped:
                raise Interrupted("stopped before it began")
            run = self._running[job.mark] = _Run(job)
        try:
            return run.finish()
        finally:
            with self._lock:
                del self._running[job.mark]
            run.close()

    def stop(self) -> None:
        """End all runs, and let no other begin."""
        with self._lock:
            self._stopped = True
            for run in self._running.values():
                run.stop()


class _Run:
    """One started process, and a thread that waits for its end, so that the wall time is exact."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._out, self._err = Tail(), Tail()
        self._began = time.perf_counter()
        self._process = _started(job)
        self._ended = self._began
        self._news, self._tell = os.pipe()
        self._waiter = threading.Thread(target=self._wait, daemon=True)
        self._waiter.start()

    def _wait(self) -> None:
        self._process.wait()
        self._ended = time.perf_counter()
        os.write(self._tell, b"e")

    def stop(self) -> None:
        os.write(self._tell, b"s")

    def close(self) -> None:
        for descriptor in (self._news, self._tell):
            os.close(descriptor)
        for stream in (self._process.stdout, self._process.stderr):
            assert stream is not None
            stream.close()

    def finish(self) -> Output:
        news = self._listen(self._job.timeout)
        if news == "e":
            return self._output()
        self._end()
        if news == "s":
            raise Interrupted("stopped")
        assert self._job.timeout is not None
        raise EvaluationFailed(f"timed out after {clock(self._job.timeout)}{self._last_words()}")

    def _listen(self, timeout: float | None) -> str:
        """Collect output until the process has ended ("e"), is to be stopped ("s"), or its time is over ("")."""
        deadline = None if timeout is None else time.monotonic() + timeout
        with selectors.DefaultSelector() as selector:
            for stream, tail in ((self._process.stdout, self._out), (self._process.stderr, self._err)):
                assert stream is not None
                if not stream.closed:
                    selector.register(stream, selectors.EVENT_READ, tail)
            selector.register(self._news, selectors.EVENT_READ)
            while True:
                ready = selector.select(None if deadline is None else max(0.0, deadline - time.monotonic()))
                if not ready:
                    return ""
                if any(key.fd == self._news for key, _ in ready):
                    return os.read(self._news, 1).decode()
                for key, _ in ready:
                    if not (chunk := os.read(key.fd, CHUNK)):
                        selector.unregister(key.fileobj)
                    key.data.add(chunk)

    def _end(self) -> None:
        """Ask the process tree to end, then kill it."""
        signal_group(self._process.pid, signal.SIGTERM)
        self._waiter.join(POLITE)
        signal_group(self._process.pid, signal.SIGKILL)
        end_marked(self._job.mark)
        self._waiter.join()

    def _output(self) -> Output:
        self._waiter.join()
        _drain(self._process.stdout, self._out)
        _drain(self._process.stderr, self._err)
        code = self._process.returncode
        if code < 0:
            with contextlib.suppress(ValueError):
                raise EvaluationFailed(f"killed by {signal.Signals(-code).name}{self._last_words()}")
        if code != 0:
            raise EvaluationFailed(f"exit code {code}{self._last_words()}")
        return Output(self._out.text(), self._err.text(), self._ended - self._began)

    def _last_words(self) -> str:
        lines = [line.strip() for line in self._err.text().splitlines() if line.strip()][-LINES:]
        return f"; stderr ends: {plain(' | '.join(line[-200:] for line in lines))}" if lines else ""


def _started(job: Job) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            list(job.arguments),
            cwd=job.cwd,
            env={**os.environ, **job.env, MARK: job.mark},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:  # ValueError: a null character, or a name with = in the environment
        raise EvaluationFailed(f"{job.arguments[0]!r} could not be started: {error}") from None


def _drain(stream: IO[bytes] | None, tail: Tail) -> None:
    """Read what a process that has ended left in its pipe, without waiting for others that hold the pipe open."""
    assert stream is not None
    os.set_blocking(stream.fileno(), False)
    for chunk in _chunks(stream.fileno()):
        tail.add(chunk)


def _chunks(descriptor: int) -> Iterator[bytes]:
    for _ in range(2 * KEPT // CHUNK):
        try:
            chunk = os.read(descriptor, CHUNK)
        except BlockingIOError:
            return
        if not chunk:
            return
        yield chunk
