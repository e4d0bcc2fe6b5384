"""The linear algebra runs on so many threads as it was told to, and afterwards on as many as before."""

from __future__ import annotations

import pytest

from carbo.numerics import threads


def counts() -> list[int]:
    return [library.get() for library in threads.bundled_libraries()]


@pytest.fixture(autouse=True)
def two_threads() -> None:
    if not threads.bundled_libraries():
        pytest.skip("numpy and scipy bring no OpenBLAS of their own here")
    for library in threads.bundled_libraries():
        library.set(2)


def test_few_observations_get_one_thread_and_afterwards_all_is_as_before() -> None:
    with threads.limit_threads(10, None):
        assert counts() == [1] * len(counts())
    assert counts() == [2] * len(counts())


def test_many_observations_keep_the_threads_there_are() -> None:
    with threads.limit_threads(600, None):
        assert counts() == [2] * len(counts())


def test_a_number_that_was_asked_for_holds_for_any_size() -> None:
    with threads.limit_threads(10**6, 1):
        assert counts() == [1] * len(counts())


def test_threads_come_back_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), threads.limit_threads(10, None):
        1 / 0  # noqa: B018
    assert counts() == [2] * len(counts())
