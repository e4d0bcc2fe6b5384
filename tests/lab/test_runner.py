"""python -m lab run, as a user runs it: in processes of their own that are interrupted, killed and started again."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import importlib.util
import io
import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any, NamedTuple

import numpy as np
import pytest

from carbo.errors import DataError, SettingsError
from lab import cli
from lab.methods import METHODS, Method, method
from lab.problems import problem
from lab.runs import cluster, machine, runner
from lab.runs.events import Advanced, Elsewhere, Event, Failed, Finished, Note, Started, Tick
from lab.runs.grid import PAPER, PROBLEM_GROUPS, Task, Wanted, grid, names, run_numbers, settings_key
from lab.runs.listing import spans
from lab.runs.progress import Board, duration
from lab.runs.record import Record, canonical, read
from lab.runs.store import Outcome, Store

SMALL = ("--problem", "maxcut-random,ising-0", "--method", "random,annealing", "--runs", "1-2", "--budget", "30")
LABORATORY = '''
import contextlib, fcntl, os, signal, sys

import lab.methods as methods
from lab.runs.store import Store
from lab.cli import main
from carbo.numerics.threads import bundled_libraries


class Stub:
    """The row of zeros, again and again."""

    def __init__(self, space, seed, evaluations):
        self.row, self.seed, self.asked = space.sizes * 0, seed, 0

    def tell(self, row, value):
        pass

    def ask(self):
        self.asked += 1
        return self.row


class Gated(Stub):
    """In run 1 the third suggestion waits for the lock of the file that GATE names, if there is one."""

    def ask(self):
        if self.asked == 2 and self.seed == 1 and "GATE" in os.environ:
            print("at the gate", flush=True)
            with open(os.environ["GATE"]) as gate:
                fcntl.flock(gate, fcntl.LOCK_EX)
        return super().ask()


class Raising(Stub):
    def ask(self):
        raise RuntimeError("the model" + chr(10) + "broke")


class Dying(Stub):
    def ask(self):
        os.kill(os.getpid(), signal.SIGKILL)


class Outside(Stub):
    def ask(self):
        return self.row + 2


class Threads(Stub):
    def ask(self):
        seen = [os.environ["OPENBLAS_NUM_THREADS"], *(str(library.get()) for library in bundled_libraries())]
        raise RuntimeError("threads " + " ".join(sorted(set(seen))) + f", random hashes {sys.flags.hash_randomization}")


for name, start in {"gated": Gated, "raising": Raising, "dying": Dying, "outside": Outside, "threads": Threads,
                    "pairs": Stub}.items():
    methods.METHODS[name] = methods.Method(name, name, start, {}, (), name == "pairs")
if "NO_CLAIMS" in os.environ:
    Store.claim = lambda self, key: contextlib.nullcontext(True)
if __name__ == "__main__":
    sys.exit(main())
'''
"""carbo with methods that behave in ways of interest; workers import it as their parent's main module."""


def command(*arguments: str, out: Path) -> list[str]:
    return [sys.executable, "-m", "lab", "run", *arguments, "--out", str(out)]


def run(*arguments: str, out: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*arguments, out=out), capture_output=True, text=True, check=False)


Here = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str]) -> Here:
    """`run` in this process, for what starts no other."""

    def main(*arguments: str, out: Path) -> subprocess.CompletedProcess[str]:
        code = cli.main(line := command(*arguments, out=out)[3:])
        return subprocess.CompletedProcess(line, code, *capsys.readouterr())

    return main


class Laboratory:
    """The command with the methods above, and a gate."""

    def __init__(self, home: Path) -> None:
        self.out, self._gate, self._script = home / "results", home / "gate", home / "laboratory.py"
        self._script.write_text(LABORATORY)
        self._gate.touch()

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, str(self._script), "run", *arguments, "--out", str(self.out)]

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*arguments), capture_output=True, text=True, check=False, env={**os.environ, **environment}
        )

    @contextlib.contextmanager
    def at_the_gate(self, *arguments: str, until: str = "", **environment: str) -> Iterator[Visit]:
        """The command in a session of its own; within, its gated run 1 waits, and it has said what was expected."""
        with self._gate.open() as gate:
            fcntl.flock(gate, fcntl.LOCK_EX)
            process = subprocess.Popen(
                self.command(*arguments),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
                env={**os.environ, "GATE": str(self._gate), **environment},
            )
            assert process.stdout is not None
            said = ""
            try:
                while "at the gate" not in said or until not in said:
                    text = process.stdout.readline()
                    assert text, "it ended before it came to the gate"
                    said += text
                yield Visit(process, gate)
            finally:
                process.kill()
                process.communicate()


class Visit(NamedTuple):
    process: subprocess.Popen[str]
    gate: IO[str]

    def end(self) -> tuple[str, str]:
        """What it says until it and all that it started have ended."""
        return self.process.communicate()


@pytest.fixture
def laboratory(tmp_path: Path) -> Laboratory:
    return Laboratory(tmp_path)


def ran(folder: Path) -> list[tuple[str, int | None, str, int]]:
    """All lines, a run that stands there twice twice."""
    records = [json.loads(text) for file in (folder / "runs").glob("*.jsonl") for text in file.read_text().splitlines()]
    return sorted(((each["problem"], each["relocated"], each["method"], each["run"]) for each in records), key=str)


def trail(records: list[Record]) -> dict[Any, tuple[list[list[int]], list[float]]]:
    """What the records found, whenever and however fast."""
    return {each.key: (each.rows.tolist(), each.values.tolist()) for each in records}


# --- the command ---------------------------------------------------------------------------------------------------


def test_a_grid_is_recorded_and_not_done_again(tmp_path: Path, here: Here) -> None:
    first = run(*SMALL, "--jobs", "2", out=tmp_path)
    assert first.returncode == 0, first.stderr
    assert first.stderr == ""
    assert len(first.stdout.splitlines()) == 1 + 8 + 1  # before, a line a run, after
    assert "[8/8]" in first.stdout
    records = read(tmp_path)
    assert ran(tmp_path) == sorted(
        (p, None, m, r) for p in ("ising-0", "maxcut-random") for m in ("annealing", "random") for r in (1, 2)
    )
    content = {file: file.read_bytes() for file in (tmp_path / "runs").iterdir()}
    second = here(*SMALL, out=tmp_path)
    assert second.returncode == 0
    assert "8 recorded already, 0 to do" in second.stdout
    assert {file: file.read_bytes() for file in (tmp_path / "runs").iterdir()} == content
    for each in records:
        check_against_the_problem(each)
    assert [file.name for file in (tmp_path / ".claims").iterdir()] == [".gitignore"]


def check_against_the_problem(record: Record) -> None:
    """Every value is that of its row, the initial points are the paper's, and another time gives the same run."""
    original = problem(record.problem, record.run)
    assert record.initial == 20
    np.testing.assert_array_equal(record.rows[:20], original.design(record.run))
    assert [original.objective(row) for row in record.rows] == record.values.tolist()
    assert record.instance == original.instance
    assert len(record.values) == 30
    assert (record.seconds >= 0).all()
    assert record.seed == record.run
    task = Task(record.problem, None, record.method, canonical(record.settings), record.run, 30)
    assert trail([runner.run_one(task, lambda *_: None)]) == trail([record])


def test_the_relocated_form_has_the_same_initial_values_at_other_rows(tmp_path: Path) -> None:
    done = run(
        "--problem", "ising-0", "--method", "random", "--runs", "3", "--budget", "25", "--both-forms", out=tmp_path
    )
    assert done.returncode == 0, done.stderr
    plain_form, moved = read(tmp_path)
    assert (plain_form.relocated, moved.relocated) == (None, 3)
    np.testing.assert_array_equal(moved.values[:20], plain_form.values[:20])
    assert (moved.rows[:20] != plain_form.rows[:20]).any()
    again = problem("ising-0", 3).relocated(3)
    assert [again.objective(row) for row in moved.rows] == moved.values.tolist()


def test_killed_in_mid_run_it_goes_on_where_it_stood(laboratory: Laboratory) -> None:
    wanted = ("--problem", "ising-0", "--method", "annealing,gated", "--runs", "1-2", "--budget", "30", "--jobs", "2")
    with laboratory.at_the_gate(*wanted, until="[3/4]") as visit:
        visit.process.kill()
        visit.end()
    before = trail(read(laboratory.out))
    assert len(before) == 3
    resumed = laboratory.run(*wanted)
    assert resumed.returncode == 0, resumed.stderr
    assert "3 recorded already, 1 to do" in resumed.stdout
    after = trail(read(laboratory.out))
    assert len(ran(laboratory.out)) == len(after) == 4
    assert after.items() >= before.items()
    for values in (values for _, values in after.values()):
        assert len(values) == 30


def test_ctrl_c_ends_all_processes_with_a_summary_and_exit_code_130(laboratory: Laboratory) -> None:
    wanted = ("--problem", "ising-0", "--method", "gated", "--runs", "1-2", "--budget", "30", "--jobs", "2")
    with laboratory.at_the_gate(*wanted, until="[1/2]") as visit:
        os.killpg(visit.process.pid, signal.SIGINT)  # as a terminal does, to parent and workers
        said, errors = visit.end()
    assert visit.process.returncode == 130
    assert errors == ""
    assert said.splitlines()[0].startswith("1 of 2 runs recorded, 1 of them now")
    assert "give the same command again to continue" in said
    assert [file.name for file in (laboratory.out / ".claims").iterdir()] == [".gitignore"]


SHARED = ("--problem", "ising-0", "--method", "gated,random", "--runs", "1-2", "--budget", "30")


def test_a_run_that_another_process_has_claimed_is_left_to_it(laboratory: Laboratory) -> None:
    with laboratory.at_the_gate(*SHARED) as visit:
        second = laboratory.run(*SHARED)
        assert second.returncode == 0, second.stderr
        assert "ising-0 gated run 1: another process makes this run" in second.stdout
        assert "3 of 4 runs recorded, 3 of them now" in second.stdout
        visit.gate.close()
        said, _ = visit.end()
    assert visit.process.returncode == 0
    assert "4 of 4 runs recorded, 1 of them now" in said
    assert len(ran(laboratory.out)) == len(set(ran(laboratory.out))) == 4


def test_without_claims_it_would_be_done_twice(laboratory: Laboratory) -> None:
    with laboratory.at_the_gate(*SHARED, NO_CLAIMS="1") as visit:
        laboratory.run(*SHARED, NO_CLAIMS="1")
        visit.gate.close()
        visit.end()
    assert len(ran(laboratory.out)) == 5
    assert len(set(ran(laboratory.out))) == 4


def test_two_processes_at_the_same_time_do_each_run_once(tmp_path: Path) -> None:
    both = [subprocess.Popen(command(*SMALL, "--both-forms", out=tmp_path), stdout=subprocess.PIPE, text=True)
            for _ in range(2)]  # fmt: skip
    said = [process.communicate()[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert len(ran(tmp_path)) == len(set(ran(tmp_path))) == 16
    here = [re.search(r"(\d+) of them now", text) for text in said]
    assert sum(int(found[1]) for found in here if found) == 16


def test_a_torn_last_line_is_repaired_and_its_run_done_again(tmp_path: Path, here: Here) -> None:
    assert run(*SMALL, out=tmp_path).returncode == 0
    before = trail(read(tmp_path))
    path = tmp_path / "runs" / "ising-0.jsonl"
    path.write_bytes(path.read_bytes()[:-30])
    dry = here(*SMALL, "--dry-run", out=tmp_path)
    assert "7 recorded, 1 to do" in dry.stdout
    done = run(*SMALL, out=tmp_path)
    assert done.returncode == 0
    assert "torn" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "7 recorded already, 1 to do" in done.stdout
    assert trail(read(tmp_path)) == before


def test_a_damaged_line_stops_before_anything_starts(tmp_path: Path, here: Here) -> None:
    path = tmp_path / "runs" / "ising-0.jsonl"
    path.parent.mkdir()
    path.write_text("nonsense\n")
    done = here(*SMALL, out=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "ising-0.jsonl:1: damaged line" in done.stderr


def test_runs_that_fail_are_told_in_a_line_each_and_the_others_go_on(laboratory: Laboratory) -> None:
    methods = "raising,dying,outside,threads,random"
    done = laboratory.run("--problem", "ising-0", "--method", methods, "--runs", "1", "--budget", "30")
    assert done.returncode == 1
    assert [key[2] for key in ran(laboratory.out)] == ["random"]
    errors = dict(text.removeprefix("lab: ising-0 ").split(" run 1 failed: ") for text in done.stderr.splitlines())
    assert errors["raising"].startswith("RuntimeError: the model broke (laboratory.py:")
    assert errors["dying"] == "its process ended (by SIGKILL)"
    assert errors["outside"].startswith("method 'outside': expected a row of 24 whole numbers")
    assert errors["threads"].startswith("RuntimeError: threads 1, random hashes 0 (")  # of every OpenBLAS there is
    assert len(errors) == 4
    assert "4 failed:" in done.stdout


def test_a_method_of_binary_variables_is_left_out_of_other_problems(laboratory: Laboratory) -> None:
    done = laboratory.run("--problem", "branin,ising-0", "--method", "pairs", "--runs", "1", "--budget", "25")
    assert done.returncode == 0
    assert "pairs is left out of branin: it takes binary variables only" in done.stdout
    assert [key[0] for key in ran(laboratory.out)] == ["ising-0"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--problem isin-0 --method random", "did you mean 'ising-0'"),
        ("--problem ising-0 --method randm", "did you mean 'random'"),
        ("--problem ising-0 --method packaged", "no-such-distribution"),
        ("--problem maxsat28 --method random", "--data"),
        ("--problem maxsat28 --method random --data .", "expected a folder with maxcut-johnson8-2-4.clq.wcnf"),
        ("--problem ising-0 --method random --runs 0-3", "runs: expected numbers from 1 to 25"),
        ("--problem ising-0 --method random --budget 20", "20 initial evaluations"),
        ("--problem ising-0 --method random --ray-address auto", "--engine ray"),
        ("--problem ising-0 --method random --out file", "expected a folder"),
        ("--problem ising-0 --method random --engine ray", "pip install 'carbo[ray]'"),
        ("--method random", "--problem: expected names"),
        ("--problem , --method random", "expected names"),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_2_before_anything_starts(
    arguments: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    packaged = Method("packaged", "packaged", METHODS["random"].start, packages=("no-such-distribution",))
    monkeypatch.setitem(METHODS, "packaged", packaged)
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delenv("CARBO_WCNF", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    assert cli.main(["run", *arguments.split()]) == 2
    errors = capsys.readouterr().err
    assert errors.startswith("lab: ")
    assert errors.count("\n") == 1
    assert said in errors
    assert not list(tmp_path.rglob("*.jsonl"))


def test_list_and_dry_run_show_and_do_nothing(tmp_path: Path, here: Here) -> None:
    listed = here("--list", out=tmp_path / "out")
    assert listed.returncode == 0
    for name in (*PROBLEM_GROUPS["all"], *METHODS):
        assert any(text.split()[:1] == [name] for text in listed.stdout.splitlines())
    planned = here(*SMALL, "--dry-run", out=tmp_path / "out")
    assert planned.returncode == 0
    assert "8 runs wanted, 0 recorded, 8 to do" in planned.stdout
    assert planned.stdout.count("to do: run 1-2") == 4
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(importlib.util.find_spec("rich") is None, reason="needs rich")
def test_a_terminal_shows_a_live_board(tmp_path: Path) -> None:
    above, below = pty.openpty()
    try:
        process = subprocess.Popen(command(*SMALL, out=tmp_path), stdout=subprocess.PIPE, stderr=below, text=True)
        os.close(below)
        shown = drained(above)
        said, _ = process.communicate()
    finally:
        os.close(above)
    assert process.returncode == 0
    assert "8/8" in shown.replace("\x1b[1m", "").replace("\x1b[0m", "").replace("\x1b[36m", "").replace(
        "\x1b[1;36m", ""
    )
    assert "mean of best" in shown
    assert "8 of 8 runs recorded" in said
    assert "[1/8]" not in said


def drained(terminal: int) -> str:
    """All that is written to a terminal until its last writer is gone."""
    content = b""
    with contextlib.suppress(OSError):  # Linux says so with an error
        while part := os.read(terminal, 65536):
            content += part
    return content.decode(errors="replace")


# --- one run -------------------------------------------------------------------------------------------------------


class Clock:
    """Time that passes only where the test says."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_seconds_are_those_of_tell_and_ask_and_not_of_evaluations(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()

    class Timed:
        def __init__(self, space: Any, seed: int, evaluations: int) -> None:
            clock.now += 1000
            self.row = space.sizes * 0

        def tell(self, row: Any, value: float) -> None:
            clock.now += 1

        def ask(self) -> Any:
            clock.now += 10
            return self.row

    def costly(row: Any) -> float:
        clock.now += 100
        return 0.0

    monkeypatch.setitem(METHODS, "timed", Method("timed", "timed", Timed))
    monkeypatch.setattr("lab.runs.runner.process_time", clock)
    task = Task("ising-0", None, "timed", "{}", 1, 24)
    heard: list[tuple[int, float]] = []
    slow = dataclasses.replace(task.build(), objective=costly)
    record = runner.perform(task, slow, lambda evaluations, best: heard.append((evaluations, best)))
    assert record.seconds.tolist() == [20 + 10, 11, 11, 11]
    assert heard == [(20, 0.0), (21, 0.0), (22, 0.0), (23, 0.0)]


def test_a_method_whose_settings_are_not_those_of_the_task_is_refused() -> None:
    with pytest.raises(DataError, match="same version of carbo"):
        runner.run_one(Task("ising-0", None, "annealing", '{"other":1}', 1, 24), lambda *_: None)


def test_a_method_starts_from_its_number_of_the_initial_points() -> None:
    task = Task("ising-0", None, "default:initial=5", settings_key(method("default:initial=5")), 1, 6)
    record = runner.run_one(task, lambda *_: None)
    assert (record.initial, len(record.seconds)) == (5, 1)
    np.testing.assert_array_equal(record.rows[:5], problem("ising-0", 1).design(1)[:5])


def test_a_method_cannot_start_from_more_points_than_there_are() -> None:
    task = Task("ising-0", None, "default:initial=30", settings_key(method("default:initial=30")), 1, 40)
    with pytest.raises(SettingsError, match="expected at most the 20 initial points of ising-0, got 30"):
        runner.run_one(task, lambda *_: None)


def test_a_value_that_is_not_finite_is_no_record() -> None:
    task = Task("ising-0", None, "random", settings_key(METHODS["random"]), 1, 24)
    broken = dataclasses.replace(task.build(), objective=lambda row: float("nan"))
    with pytest.raises(DataError, match="finite"):
        runner.perform(task, broken, lambda *_: None)


def test_the_machine_is_described_without_names_or_paths() -> None:
    assert set(machine.machine()) == {"cpu", "cores", "platform"}
    assert os.sep not in str(machine.machine()["platform"])
    assert set(machine.versions(["pytest"])) == {"python", "carbo", "numpy", "scipy", "pytest"}


def test_the_revision_is_that_of_the_checkout_and_says_when_code_was_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "src" / "carbo"
    home.mkdir(parents=True)
    (home / "code.py").write_text("1")
    monkeypatch.setattr(machine, "HOME", home)
    look = machine.revision.__wrapped__
    assert look().startswith("v")  # no checkout
    git = ["git", "-C", str(tmp_path), "-c", "user.name=x", "-c", "user.email=x@example.org"]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "x"]):
        subprocess.run([*git, *arguments], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout
    assert look() == head[:12]
    (tmp_path / "results").write_text("2")
    assert look() == head[:12]  # results are no code
    (tmp_path / "lab").mkdir()
    (tmp_path / "lab" / "method.py").write_text("2")
    assert look() == head[:12] + "+"  # the laboratory is code
    (tmp_path / "lab" / "method.py").unlink()
    assert look() == head[:12]
    (home / "code.py").write_text("2")
    assert look() == head[:12] + "+"
    inner = tmp_path / "venv" / "carbo"  # installed inside a checkout of something else
    inner.mkdir(parents=True)
    monkeypatch.setattr(machine, "HOME", inner)
    assert look().startswith("v")


# --- the grid ------------------------------------------------------------------------------------------------------


def test_run_1_of_everything_comes_before_run_2() -> None:
    made = grid(Wanted(["ising-0", "branin"], ["random", "annealing"], [1, 2], (False, True)))
    assert [(task.run, task.row, task.method) for task in made.tasks] == [
        (run, name + star, method)
        for run in (1, 2)
        for star in ("", "*")
        for name in ("ising-0", "branin")
        for method in ("random", "annealing")
    ]
    assert {task.budget for task in made.tasks} == {170, 100}
    assert [task.relocated for task in made.tasks[::4]] == [None, 1, None, 2]


def test_the_paper_has_eleven_columns() -> None:
    assert len(PAPER) == len(set(PAPER)) == 11
    assert names("paper,ising-0,branin-published", PROBLEM_GROUPS["all"], PROBLEM_GROUPS) == [
        *PAPER,
        "branin-published",
    ]


def test_a_name_comes_before_a_group_of_that_name() -> None:
    assert names("paper", ["paper", "x"], {"paper": ("x",)}) == ["paper"]


@pytest.mark.parametrize(("text", "wanted"), [("1-3", [1, 2, 3]), ("1,3,5-7", [1, 3, 5, 6, 7]), ("2, 2,1-2", [2, 1])])
def test_runs_are_written_as_ranges_and_lists(text: str, wanted: list[int]) -> None:
    assert run_numbers(text) == wanted


@pytest.mark.parametrize("text", ["", "0", "26", "3-1", "a", "1-", "-3", "1-2-3", "1.5", "²"])
def test_other_runs_are_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="1-5 or 1,3,5-7"):
        run_numbers(text)


def test_spans_write_what_runs_read() -> None:
    assert spans([5, 1, 2, 3]) == "1-3,5"
    assert run_numbers(spans([5, 1, 2, 3])) == [1, 2, 3, 5]


# --- the board -----------------------------------------------------------------------------------------------------


def tasks(*wanted: tuple[str, str, int]) -> list[Task]:
    return [Task(name, None, method, "{}", run, 100) for name, method, run in wanted]


def test_the_time_left_comes_from_similar_runs_before_others(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr("lab.runs.progress.monotonic", clock)
    fast, slow, other, new = tasks(("a", "fast", 1), ("a", "slow", 1), ("b", "slow", 1), ("b", "new", 1))
    board = Board([fast, slow, other, new], {}, at_once=2, began=0.0)
    assert str(board.time_left()) == ""
    board.update(Finished(fast, Outcome(0.0, 2.0)))
    assert board.time_left() == (0, False)  # nothing is known of what is to do
    board.update(Finished(slow, Outcome(0.0, 100.0)))
    assert board.time_left() == (100 / 2, False)  # the method's own on another problem; of the new one nothing
    assert str(board.time_left()) == "more than 50 s left"
    board.update(Started(new))
    clock.now = 30.0
    board.update(Advanced(new, 25, 1.0))
    assert board.time_left() == pytest.approx(((100 + 30 / 25 * 100 * 0.75) / 2, True))  # at its pace, the rest
    assert str(board.time_left()) == "about 95 s left"
    board.update(Failed(new, "broke"))
    board.update(Elsewhere(other))
    assert board.time_left() == (0, True)
    assert board.finished() == 2
    assert board.elapsed == 30


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.25, "0.2 s"), (42.4, "42 s"), (150, "2 min"), (11_100, "3 h 05"), (360_000, "100 h 00")]
)
def test_durations_are_written_for_people(seconds: float, said: str) -> None:
    assert duration(seconds) == said


@pytest.mark.skipif(importlib.util.find_spec("rich") is None, reason="needs rich")
@pytest.mark.parametrize("width", [60, 200])
def test_the_live_board_shows_every_problem_and_method_and_what_is_under_way(
    width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rich.console import Console

    from lab.runs.live_board import drawing

    clock = Clock()
    for module in ("progress", "live_board"):
        monkeypatch.setattr(f"lab.runs.{module}.monotonic", clock)
    several = [f"method{i}" for i in range(8)]
    wanted = tasks(*((name, method, run) for name in ("a", "b") for method in several for run in (1, 2)))
    board = Board(wanted, {}, at_once=2, began=0.0)
    board.update(Finished(wanted[0], Outcome(1.0, 60.0)))
    board.update(Finished(wanted[1], Outcome(2.0, 60.0)))
    board.update(Started(wanted[2]))
    clock.now = 20.4
    board.update(Advanced(wanted[2], 34, 1.25))
    paper = io.StringIO()
    Console(file=paper, width=width).print(drawing(board, width))
    shown = paper.getvalue()
    assert max(map(len, shown.splitlines())) <= width
    for text in (
        *several,
        "2/2 1.5",
        "a method1 run 1",
        "34/100",
        "best 1.25",
        "2/32 runs recorded",
        "20 s so far",
        "more than 3 min left",
    ):
        assert text in shown
    assert shown.count("0/2") == 15


# --- Ray -----------------------------------------------------------------------------------------------------------


class FakeRay:
    """Ray as the engine uses it, in this process; what was put off is done when it is waited for."""

    class exceptions:
        class RayError(Exception):
            pass

        class RayTaskError(RayError):
            def __init__(self, cause: BaseException) -> None:
                self.cause = cause

    def __init__(self) -> None:
        self.cancelled: list[Any] = []

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 2.0}

    def remote(self, **options: Any) -> Any:
        assert options == {"num_cpus": 1}
        return lambda function: SimpleNamespace(remote=lambda *arguments: (function, arguments[0], arguments))

    def wait(self, references: list[Any], timeout: float) -> tuple[list[Any], list[Any]]:
        assert len(references) <= 2
        return references[:1], references[1:]

    def get(self, reference: Any) -> Any:
        function, task, arguments = reference
        if task.run == 2:
            raise self.exceptions.RayTaskError(ZeroDivisionError("broke"))
        return function(*arguments)

    def cancel(self, reference: Any, force: bool) -> None:
        self.cancelled.append(reference)


def on_fake_ray(folder: Path) -> tuple[FakeRay, Iterator[Event]]:
    fake = FakeRay()
    made = grid(Wanted(["ising-0"], ["random"], [1, 2, 3, 4], budget=22))
    return fake, cluster.work(made.tasks, Store(folder, print), cluster.Cluster(fake, None))


def test_the_driver_records_what_a_cluster_sends_back(tmp_path: Path) -> None:
    held = Store(tmp_path, print)
    wanted = grid(Wanted(["ising-0"], ["random"], [1, 2, 3, 4], budget=22)).tasks
    held.append(runner.run_one(wanted[3], lambda *_: None))
    with held.claim(wanted[2].key):
        _, events = on_fake_ray(tmp_path)
        seen = [(type(event).__name__, event.task.run) for event in events if not isinstance(event, Tick | Note)]
    assert seen == [("Started", 1), ("Started", 2), ("Finished", 1), ("Elsewhere", 3), ("Finished", 4), ("Failed", 2)]
    assert [key[3] for key in ran(tmp_path)] == [1, 4]
    assert list((tmp_path / ".claims").iterdir()) == []


def test_a_driver_that_stops_cancels_what_is_under_way(tmp_path: Path) -> None:
    fake, events = on_fake_ray(tmp_path)
    next(events)
    next(events)
    events.close()  # type: ignore[attr-defined]
    assert [reference[1].run for reference in fake.cancelled] == [1, 2]
    assert list((tmp_path / ".claims").iterdir()) == []


def test_an_address_where_nobody_answers_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace())
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = "ray://{}:{}".format(*server.getsockname())  # free again when the server is gone
    with pytest.raises(SettingsError, match="where none answers"), cluster.connection(address, None):
        pass


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs ray")
def test_a_local_ray_records_the_same_runs(tmp_path: Path) -> None:
    far = run(*SMALL, "--engine", "ray", "--jobs", "2", out=tmp_path / "ray")
    assert far.returncode == 0, far.stderr
    assert run(*SMALL, out=tmp_path / "local").returncode == 0
    assert trail(read(tmp_path / "ray")) == trail(read(tmp_path / "local"))
    again = run(*SMALL, "--engine", "ray", out=tmp_path / "ray")
    assert "8 recorded already, 0 to do" in again.stdout
