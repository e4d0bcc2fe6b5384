"""Records: exact, small, and never half-read."""

from __future__ import annotations

import dataclasses
import json
import math
import multiprocessing
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from carbo.errors import DataError
from lab.methods import METHODS
from lab.runs.grid import settings_key
from lab.runs.record import Record, line, parse, read
from lab.runs.store import Store, outcome

LONGEST = -2.2250738585072014e-308
"""No float is written with more characters."""


def record(sizes: tuple[int, ...] = (2, 3), n: int = 4, **changes: Any) -> Record:
    rng = np.random.default_rng(n)
    made = Record(
        problem="made-up",
        instance={"case_seed": 1, "lambda": 0.01},
        relocated=None,
        method="random",
        settings={"restarts": 3},
        run=1,
        seed=1,
        initial=2,
        sizes=sizes,
        rows=rng.integers(0, np.array(sizes), size=(n, len(sizes))),
        values=rng.normal(size=n),
        seconds=np.full(n - 2, 0.25),
        versions={"python": "3.11.7", "carbo": "0.1.0"},
        revision="0123456789ab+",
        machine={"cpu": "some", "cores": 2, "platform": "Linux x86_64"},
        finished="2019-12-08T00:00:00+00:00",
    )
    return dataclasses.replace(made, **changes)


def assert_same(got: Record, wanted: Record) -> None:
    for field in dataclasses.fields(Record):
        np.testing.assert_array_equal(getattr(got, field.name), getattr(wanted, field.name), err_msg=field.name)


# --- lines ---------------------------------------------------------------------------------------------------------


@given(data=st.data(), sizes=st.lists(st.integers(1, 60), min_size=1, max_size=30))
def test_a_record_comes_back_bit_for_bit(data: st.DataObject, sizes: list[int]) -> None:
    n = data.draw(st.integers(2, 6))
    rows = [[data.draw(st.integers(0, size - 1)) for size in sizes] for _ in range(n)]
    finite = st.floats(allow_nan=False, allow_infinity=False)
    values = data.draw(st.lists(finite, min_size=n, max_size=n))
    relocated = data.draw(st.none() | st.integers(0, 99))
    written = record(tuple(sizes), n, rows=np.array(rows), values=np.array(values), relocated=relocated)
    text = line(written)
    assert text.endswith("\n")
    assert text.count("\n") == 1
    assert_same(parse(text), written)
    assert line(parse(text)) == text


def test_rows_are_numbers_in_mixed_radix_the_first_variable_counting_most() -> None:
    written = record((5, 2, 10), 3, rows=np.array([[4, 1, 9], [0, 0, 1], [1, 0, 0]]))
    # by hand: 4 * 20 + 1 * 10 + 9 = 99, 1 and 20, with two digits as the largest needs
    assert json.loads(line(written))["rows"] == "63 01 14"


def test_seconds_are_kept_to_four_digits() -> None:
    written = record(n=5, seconds=np.array([1.23456789e-5, 12345.678, 0.0]))
    assert parse(line(written)).seconds.tolist() == [1.235e-5, 12350.0, 0.0]


@pytest.mark.parametrize(("sizes", "n"), [((2,) * 60, 270), ((5,) * 25, 320), ((2,) * 31, 500)])
def test_a_run_of_the_paper_stays_under_20_kilobytes_whatever_its_floats_and_method(
    sizes: tuple[int, ...], n: int
) -> None:
    instance = {"file": "maxcut-johnson8-2-4.clq.wcnf", "formula": "1b1788ed97e64726", "weights": "standardised",
                "optimum": "full search", "start_seed": 1234, "relocated": 25}  # fmt: skip
    assert len(repr(LONGEST)) == max(len(repr(x)) for x in (LONGEST, -sys.float_info.max, -math.pi * 1e-300))
    longest = max(METHODS.values(), key=lambda method: len(settings_key(method)))
    written = record(
        sizes,
        n,
        instance=instance,
        settings=json.loads(settings_key(longest)),
        initial=20,
        values=np.full(n, LONGEST),
        seconds=np.full(n - 20, 1.2345e-5),
        versions=dict.fromkeys(("python", "carbo", "numpy", "scipy", *longest.packages), "10.11.12"),
        machine={"cpu": "x" * 60, "cores": 128, "platform": "Linux x86_64"},
    )
    limit = 20_000 if n <= 320 else 30_000
    assert len(line(written).encode()) < limit


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"rows": "0 1 2 6"}, "rows: expected numbers below 6, got 6"),
        ({"rows": "0 1 2 z"}, "hexadecimal"),
        ({"rows": "0 1 2 03"}, "1 hexadecimal digits"),
        ({"rows": "0 1 2"}, "3 rows, 4 values and 2 seconds"),
        ({"values": [1.0, 2.0, 3.0]}, "4 rows, 3 values"),
        ({"values": [1.0, 2.0, 3.0, math.nan]}, "values: got"),
        ({"values": [1.0, 2.0, 3.0, True]}, "values: got"),
        ({"seconds": [1.0]}, "1 seconds"),
        ({"initial": -1}, "initial: got -1"),
        ({"sizes": [2, 0]}, "sizes: got"),
        ({"relocated": "no"}, "relocated: got"),
        ({"run": "1"}, "run: got"),
        ({"settings": []}, "settings: got"),
        ({"problem": None}, "problem: got null"),
        ({"format": 2}, "newer"),
        ({"more": 1}, "expected the fields"),
    ],
)
def test_a_line_that_is_no_record_is_refused_in_one_line(change: dict[str, Any], said: str) -> None:
    entries = json.loads(line(record())) | change
    with pytest.raises(DataError) as caught:
        parse(json.dumps(entries))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "\0\0\0", '{"format": 1}', "[" * 100_000])
def test_other_text_is_refused_too(text: str) -> None:
    with pytest.raises(DataError):
        parse(text)


def test_a_value_that_is_no_number_is_never_written() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        line(record(values=np.array([1.0, 2.0, 3.0, np.inf])))


def test_best_is_the_smallest_value_so_far() -> None:
    assert record(values=np.array([3.0, 4.0, 1.0, 2.0])).best.tolist() == [3.0, 3.0, 1.0, 1.0]


# --- files ---------------------------------------------------------------------------------------------------------


def warned() -> tuple[list[str], Any]:
    said: list[str] = []
    return said, said.append


def test_a_folder_is_read_whole_and_a_run_counts_once(tmp_path: Path) -> None:
    store = Store(tmp_path, print)
    store.append(record())
    store.append(record(run=2))
    store.append(record(problem="another"))
    again = record(finished="2020-01-01T00:00:00+00:00")
    store.append(again)  # as when two machines' results come together
    found = read(tmp_path)
    assert [(each.problem, each.run) for each in found] == [("another", 1), ("made-up", 1), ("made-up", 2)]
    assert found[1].finished == record().finished
    assert len(read(tmp_path / "runs" / "made-up.jsonl")) == 2
    assert len(read(tmp_path / "runs")) == 3


@pytest.mark.parametrize(
    "change", [{"relocated": 1}, {"method": "other"}, {"settings": {"restarts": 4}}, {"run": 2}, {"problem": "other"}]
)
def test_different_runs_have_different_keys(change: dict[str, Any]) -> None:
    assert record(**change).key != record().key


def test_the_order_of_settings_and_the_machine_do_not_tell_runs_apart() -> None:
    one, other = record(settings={"a": 1, "b": [2]}), record(settings={"b": [2], "a": 1}, machine={}, revision="v1")
    assert one.key == other.key


def test_a_damaged_line_is_named_by_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(line(record()) + line(record(run=2))[:-40] + "\n" + line(record(run=3)))
    with pytest.raises(DataError, match=r"x\.jsonl:2: damaged line: expected JSON"):
        read(path)


@pytest.mark.parametrize("name", ["absent", "absent.jsonl", ""])
def test_a_place_without_records_is_an_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match="python -m lab run"):
        read(tmp_path / name)


def test_a_torn_last_line_is_dropped_before_the_next_is_added(tmp_path: Path) -> None:
    said, warn = warned()
    store = Store(tmp_path, warn)
    store.append(record())
    path = store.path("made-up")
    with path.open("a") as file:
        file.write(line(record(run=2))[:100])
    store.append(record(run=3))
    assert [each.run for each in read(path)] == [1, 3]
    assert len(said) == 1
    assert "torn, 100 bytes" in said[0]


def test_a_last_line_that_only_lacks_its_newline_is_kept(tmp_path: Path) -> None:
    said, warn = warned()
    store = Store(tmp_path, warn)
    store.append(record())
    path = store.path("made-up")
    path.write_text(path.read_text().rstrip("\n"))
    store.append(record(run=2))
    assert [each.run for each in read(path)] == [1, 2]
    assert not said


def test_a_short_write_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path, print)
    store.append(record())
    before = store.path("made-up").read_bytes()
    write = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda file, content: write(file, content[:50]))
        with pytest.raises(OSError, match="disk full"):
            store.append(record(run=2))
    assert store.path("made-up").read_bytes() == before


def test_only_lines_that_others_appended_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = Store(tmp_path, print), Store(tmp_path, print)
    assert ours.finished("made-up") == {}
    theirs.append(record())
    assert ours.finished("made-up") == {record().key: outcome(record())}
    parsed: list[str] = []
    original = parse
    monkeypatch.setattr("lab.runs.record.parse", lambda text: parsed.append(text) or original(text))  # type: ignore[func-returns-value]
    theirs.append(record(run=2))
    assert set(ours.finished("made-up")) == {record().key, record(run=2).key}
    assert parsed == [line(record(run=2)).rstrip("\n")]


def test_a_file_that_was_replaced_is_read_anew(tmp_path: Path) -> None:
    store = Store(tmp_path, print)
    for run in (1, 2):
        store.append(record(run=run))
    assert len(store.finished("made-up")) == 2
    other = tmp_path / "other"
    other.write_text(line(record(run=3)))
    other.replace(store.path("made-up"))
    assert set(store.finished("made-up")) == {record(run=3).key}


# --- several processes ---------------------------------------------------------------------------------------------


def append_many(folder: Path, process: int, count: int) -> None:
    store = Store(folder, print)
    for number in range(count):
        store.append(record((2,) * 60, 270, run=number, seed=process, settings={"process": process}))


def test_lines_of_several_processes_never_mix(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=append_many, args=(tmp_path, process, 30)) for process in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert sorted((each.seed, each.run) for each in read(tmp_path)) == [(p, r) for p in range(3) for r in range(30)]


def hold(folder: Path, ready: Any) -> None:
    with Store(folder, print).claim(record().key) as is_ours:
        ready.send(is_ours)
        ready.recv()


def test_a_claim_is_exclusive_and_ends_with_a_killed_process(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    holder = context.Process(target=hold, args=(tmp_path, there))
    holder.start()
    assert here.recv() is True
    store = Store(tmp_path, print)
    with store.claim(record().key) as is_ours:
        assert not is_ours
    with store.claim(record(run=2).key) as is_ours:
        assert is_ours
    holder.kill()
    holder.join()
    with store.claim(record().key) as is_ours:
        assert is_ours
    assert list((tmp_path / ".claims").iterdir()) == []
