"""Readers in other threads see one moment of an optimiser, never half of the next one."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import carbo

SPACE = carbo.Space({f"x{i}": carbo.Binary() for i in range(12)})
TINY = {"samples": 1, "burn_in": 2, "random_starts": 4, "spray_starts": 2, "climbers": 1, "initial": 8}
READS, WRITES = 2_000, 120


def value(params: dict[str, object]) -> float:
    """The binary number that the variables spell: every point has a value that no other has."""
    return float(sum(2**i for i, on in enumerate(params.values()) if on))


@pytest.fixture
def hurried() -> Iterator[None]:
    """Threads take turns as often as the interpreter lets them."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def all_at_once(*tasks: Callable[[], None]) -> list[Exception]:
    """The tasks, each in a thread; what they raised."""
    raised: list[Exception] = []

    def run(task: Callable[[], None]) -> None:
        try:
            task()
        except Exception as error:  # noqa: BLE001 - the test names whatever it was
            raised.append(error)

    threads = [threading.Thread(target=run, args=(task,)) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


@pytest.mark.usefixtures("hurried")
def test_who_reads_while_others_ask_and_tell_sees_one_moment() -> None:
    optimizer = carbo.Optimizer(SPACE, seed=0, settings=TINY)
    first = SPACE.decode_many(SPACE.all_rows()[::512])
    optimizer.tell(first, [value(p) for p in first])
    asked: list[str] = []

    def write() -> None:
        for _ in range(WRITES):
            params = optimizer.ask()
            asked.append(str(params))
            optimizer.tell(params, value(params))

    def look_back() -> None:
        for _ in range(READS):
            points, values = optimizer.history()
            assert [value(p) for p in points] == values.tolist()
            best = optimizer.best
            assert best is not None
            assert value(best.params) == best.value <= values.min()
            state = optimizer.state()
            assert state["values"] == [value(p) for p in SPACE.decode_many(state["rows"])]

    def look_ahead() -> None:
        for _ in range(READS // 8):
            mean, sd = optimizer.predict(SPACE.decode(SPACE.all_rows()[0]))
            assert np.isfinite([mean, sd]).all()
            assert set(optimizer.relevance().variables) == set(SPACE.names)
            means, _ = optimizer.leave_one_out()
            assert np.isfinite(means).all()

    assert all_at_once(write, write, look_back, look_ahead, look_ahead) == []
    assert len(asked) == len(set(asked)) == 2 * WRITES
    assert len(optimizer) == 8 + 2 * WRITES
