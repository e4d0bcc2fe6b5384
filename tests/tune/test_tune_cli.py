"""The commands around the tuner, as they are typed."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from optuna.distributions import CategoricalDistribution
from optuna.trial import TrialState

from carbo import cli
from carbo.integrations.optuna.evaluations import Evaluation, evaluation
from carbo.tune.display import Page, Plain, display, remaining
from carbo.tune.live_relevance import Insight
from carbo.tune.study_file import load
from carbo.tune.tuner import Snapshot
from tests.reports import trial
from tests.tuning import LOG, ended, start, until, write

VALUE = LOG + 'if [ "$2" = x ]; then echo "no $2" >&2; exit 3; fi\necho $(( $1 * $3 ))\n'
STARTS = "".join(
    f"[[start]]\na = {a}\nb = '{b}'\nc = {c}\nd = 2\n"
    for a, b, c in ((4, "y", "true"), (2, "z", "false"), (1, "x", "true"), (8, "y", "false"))
)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished study of four known points: values 8, 4, a failure, 16."""
    folder = tmp_path_factory.mktemp("study")
    path = write(folder, VALUE, "budget = 4\nname = 'demo'", STARTS)
    assert cli.main(["tune", str(path)]) == 0
    return path


def said(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    """What a command prints; for an error, its one line."""
    capsys.readouterr()
    assert cli.main(arguments) == code
    out, err = capsys.readouterr()
    if code:
        assert len(err.splitlines()) == 1
        assert err.startswith("carbo: ")
    return str(err if code else out)


# ---------------------------------------------------------------- looking at a study


@pytest.mark.parametrize("suffix", [".toml", ".db"])
def test_best_shows_value_settings_and_command(study: Path, suffix: str, capsys: pytest.CaptureFixture[str]) -> None:
    where = str(study.with_suffix(suffix))
    text = said(capsys, "best", where)
    assert "best 4: trial 1 of 4 evaluations, 1 failed" in text
    assert "command: /bin/sh run.sh 2 z 2\n" in text
    found = json.loads(said(capsys, "best", where, "--json"))
    assert (found["value"], found["params"]) == (4.0, {"a": 2, "b": "z", "c": False, "d": 2})
    assert said(capsys, "best", where, "--command") == "/bin/sh run.sh 2 z 2\n"


def test_trials_as_a_table_csv_and_json(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = said(capsys, "trials", str(study)).splitlines()
    assert len(table) == 5
    assert table[1].split()[:3] == ["0", "done", "8"]
    assert "a=1 b=x c=true d=2  (exit code 3; stderr ends: no x)" in table[3]
    rows = list(csv.DictReader(io.StringIO(said(capsys, "trials", str(study), "--csv"))))
    assert [(row["standing"], row["value"], row["a"], row["c"]) for row in rows] == [
        ("done", "8.0", "4", "True"),
        ("done", "4.0", "2", "False"),
        ("failed", "", "1", "True"),
        ("done", "16.0", "8", "False"),
    ]
    listed = json.loads(said(capsys, "trials", str(study), "--json"))
    assert [entry["value"] for entry in listed] == [8.0, 4.0, None, 16.0]
    assert listed[2]["reason"] == "exit code 3; stderr ends: no x"


def test_relevance_names_every_variable(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "variance by order of interaction" in said(capsys, "relevance", str(study))
    found = json.loads(said(capsys, "relevance", str(study), "--json"))
    assert set(found["variables"]) == {"a", "b", "c", "d"}
    assert found["adjacent"] is None
    assert all(0 <= share["low"] <= share["mean"] <= share["high"] <= 1 for share in found["variables"].values())


def test_equal_values_say_nothing_about_relevance(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, "echo 7\n", "budget = 1", STARTS)
    assert cli.main(["tune", str(path)]) == 0
    assert "expected evaluations with different values, got 1 of them" in said(capsys, "relevance", str(path), code=2)
    assert cli.main(["tune", str(path), "--budget", "4"]) == 0
    for arguments in (["relevance", str(path)], ["relevance", str(path), "--json"]):
        assert "expected evaluations with different values, got 4 that are all 7" in said(capsys, *arguments, code=2)


def test_what_cannot_be_shown_is_one_line_and_exit_code_2(
    study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "expected a database, got no such file" in said(capsys, "best", str(tmp_path / "none.db"), code=2)
    assert not (tmp_path / "none.db").exists()
    assert "expected a study file, got: No such file" in said(capsys, "best", str(tmp_path / "none.toml"), code=2)
    assert "expected a study 'x', got demo" in said(
        capsys, "trials", str(study.with_suffix(".db")), "--study", "x", code=2
    )
    (tmp_path / "text.db").write_text("nothing" * 1000)
    assert "got a file that is none" in said(capsys, "relevance", str(tmp_path / "text.db"), code=2)
    assert "no such file" in said(capsys, "dashboard", str(tmp_path / "none.db"), code=2)


# ---------------------------------------------------------------- tune


def test_a_dry_run_shows_the_study_and_runs_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, VALUE, 'budget = 9\nconstraints = ["a < d"]\ntimeout = "2s"')
    text = said(capsys, "tune", str(path), "--dry-run", "--budget", "3", "--workers", "2")
    for part in ("3 evaluations", "2 at a time", "time-out 2 s", "432 combinations", "a < d", "/bin/sh run.sh "):
        assert part in text
    found = json.loads(said(capsys, "tune", str(path), "--dry-run", "--json"))
    assert (found["budget"], found["points"], found["constraints"]) == (9, 432, ["a < d"])
    assert sorted(each.name for each in tmp_path.iterdir()) == ["run.sh", "study.toml"]


def test_the_summary_is_for_people_or_for_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, VALUE, "budget = 1\ndirection = 'maximize'", STARTS)
    text = said(capsys, "tune", str(path), "--budget", "2")
    assert "study: the budget is used up" in text
    assert "best 8 (trial 0): a=4 b=y c=true d=2" in text
    capsys.readouterr()
    assert cli.main(["tune", str(path), "--budget", "4", "--json"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert (found["evaluations"], found["failed"], found["evaluations_of_this_run"]) == (4, 1, 2)
    assert found["best"]["value"] == 16.0
    assert "[3/4] trial 2: failed: exit code 3" in err


@pytest.mark.parametrize(
    ("edit", "part"),
    [
        (("/bin/sh", "/no/such/sh"), "command.run: expected a program that can be executed"),
        (("{a}", "{aa}"), "command.run: expected a placeholder out of a, b, c, d"),
        (("[study]", "[study"), "line 1"),
        (("budget", "bugdet"), "line 2: study.bugdet: expected a key out of"),
        (("budget = 5", "budget = 5\nstorage = 'x://y'"), "storage x://y: expected a database"),
    ],
)
def test_a_wrong_study_file_is_one_line_and_exit_code_2(
    tmp_path: Path, edit: tuple[str, str], part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, VALUE)
    path.write_text(path.read_text().replace(*edit, 1))
    assert part in said(capsys, "tune", str(path), code=2)


def test_a_command_that_never_gives_a_number_is_one_line_and_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, "echo hello\n", "budget = 9\ngive_up = 1")
    assert cli.main(["tune", str(path)]) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("carbo: study 'study': expected some evaluations to succeed, got none of 1: the last failed")
    assert "expected a number in the output, got 'hello'; try it by hand: /bin/sh run.sh" in last


def test_a_budget_of_failures_alone_is_exit_code_2_each_time_unless_meant(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, "echo nan\n", "budget = 2")
    for _ in range(2):
        assert cli.main(["tune", str(path)]) == 2
        last = capsys.readouterr().err.splitlines()[-1]
        assert "got none of 2: the last failed with: expected a finite value, got nan" in last
    path.write_text(path.read_text().replace("budget = 2", "budget = 3\ngive_up = 0"))
    assert cli.main(["tune", str(path)]) == 0
    assert "no evaluation has succeeded" in capsys.readouterr().out


def test_a_file_that_is_missing_or_not_text_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "No such file" in said(capsys, "tune", str(tmp_path / "none.toml"), code=2)
    assert "Is a directory" in said(capsys, "tune", str(tmp_path), code=2)
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    assert "not UTF-8" in said(capsys, "tune", str(tmp_path / "binary.toml"), code=2)


# ---------------------------------------------------------------- the display


def snapshot(*rows: Evaluation, left: float | None = None) -> Snapshot:
    return Snapshot(list(rows), list(rows), 0, 10.0, left)


def row(number: int, value: float | None, params: dict[str, Any], reason: str | None = None) -> Evaluation:
    """An evaluation of one second; without value and reason it is still running."""
    space = {name: CategoricalDistribution([choice]) for name, choice in params.items()}
    said = {} if reason is None else {"carbo:reason": reason}
    changes: dict[str, Any] = {"user_attrs": {"carbo:result": {"seconds": 1.0}} | said}
    if value is None and reason is None:
        changes = {"state": TrialState.RUNNING, "datetime_complete": None}
    return evaluation(trial(number, params, space, value, **changes), tuned=True)


ROWS = (
    row(0, 5.0, {"a": 1, "b": "x y"}),
    row(1, None, {"a": 2, "b": "x y"}, "exit code 1\x1b[2J"),
    row(2, 3.0, {"a": 3, "b": "z"}),
    row(3, None, {"a": 4, "b": "z"}),
)


class Known(Insight):
    def __init__(self) -> None:
        self.shares = {"a": 0.75, "b": 0.25}

    def consider(self, now: Snapshot) -> None: ...


def test_the_page_shows_best_progress_time_left_last_evaluations_and_what_matters(tmp_path: Path) -> None:
    from rich.console import Console

    file = load(write(tmp_path, VALUE, "budget = 6"))
    console = Console(width=100, file=io.StringIO(), force_terminal=True, color_system=None)
    page = Page(file, Known())
    page.say("a remark")
    console.print(page.page(snapshot(*ROWS)))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    for part in ("3/6", "10 s left", "1 running, 1 failed", "best so far: 3", "a=3 b=z", "trial 2, 0 evaluations ago",
                 "a=1 b='x y'", "exit code 1", "a=4", "which variables matter", "0.75", "! a remark"):  # fmt: skip
        assert part in text, part
    assert "\x1b[2J" not in text


def test_time_left_comes_from_the_pace_and_the_deadline(tmp_path: Path) -> None:
    file = load(write(tmp_path, VALUE, "budget = 6\ndeadline = '1h'"))
    assert remaining(file, snapshot(*ROWS, left=4.0)) == 4.0
    assert remaining(file, snapshot(*ROWS, left=400.0)) == pytest.approx(10.0)
    assert remaining(file, snapshot()) is None


def test_without_a_terminal_there_is_one_line_an_evaluation(tmp_path: Path) -> None:
    file, stream = load(write(tmp_path, VALUE, "budget = 6")), io.StringIO()
    plain = Plain(file, stream)
    plain.update(snapshot(*ROWS[:2]))
    plain.update(snapshot(*ROWS[:3]))
    assert [text.split(";")[0] for text in stream.getvalue().splitlines()] == [
        "[2/6] trial 0: 5 (1 s)",
        "[2/6] trial 1: failed: exit code 1 [2J",
        "[3/6] trial 2: 3 (1 s)",
    ]
    assert isinstance(display(file, Known()), Plain)


def test_on_a_terminal_the_page_is_drawn_and_ctrl_c_ends_with_a_summary(tmp_path: Path) -> None:
    """A pseudo-terminal, with the interrupt typed as a user types it."""
    write(tmp_path, LOG + 'if [ "$1" = 8 ]; then touch up; exec sleep 600; fi\necho $1\n', "budget = 4", STARTS)
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", "import os, sys; os.setsid(); import fcntl, termios; "
         "fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.executable, [sys.executable, *sys.argv[1:]])",
         "-m", "carbo", "tune", "study.toml"],
        cwd=tmp_path, stdin=terminal, stdout=terminal, stderr=terminal,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100", "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    os.close(terminal)
    seen = bytearray()

    def read() -> None:
        with open(controller, "rb", buffering=0, closefd=False) as stream:
            try:
                while chunk := stream.read(4096):
                    seen.extend(chunk)
            except OSError:  # the other side is closed
                return

    reader = threading.Thread(target=read)
    reader.start()
    try:
        until(lambda: (tmp_path / "up").exists() and b"3/4" in seen and b"1 running" in seen)
        os.write(controller, b"\x03")
        assert process.wait(300) == 130
    finally:
        process.kill()
        process.wait()
        reader.join(60)
        os.close(controller)
    text = seen.decode()
    for part in ("best so far: 1", "last evaluations", "study: interrupted", "the same command goes on from here"):
        assert part in text, part
    assert "Traceback" not in text


# ---------------------------------------------------------------- init


def test_init_writes_a_file_from_flags_and_never_overwrites_by_accident(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "new.toml"
    flags = ["--command", "sh run.sh '{a} b' {c} -O{o} --x={x} --f={f}", "--binary", "c=-c", "--ordinal", "o=0,1,2"]
    flags += ["--categorical", "a=it,is", "--integer", "x=1:64:log", "--float", "f=0.5:2", "--constraint", "o < 2 or c"]
    assert "next: carbo tune" in said(capsys, "init", str(path), *flags, "--maximize", "--timeout", "5s")
    file = load(path)
    assert [part.text for part in file.command.run] == ["sh", "run.sh", "{a} b", "{c}", "-O{o}", "--x={x}", "--f={f}"]
    assert (file.direction, file.plan.timeout, file.variables.constraints) == ("maximize", 5.0, ("o < 2 or c",))
    before = path.read_text()
    assert "--force overwrites it" in said(capsys, "init", str(path), *flags, code=2)
    assert path.read_text() == before
    said(capsys, "init", str(path), "--example", "--force")
    assert path.read_text() != before


@pytest.mark.parametrize(
    ("flags", "part"),
    [
        (["--command", "prog {x}"], "expected at least one variable"),
        (["--command", "prog {x}", "--binary", "y"], "expected a placeholder out of y"),
        (["--command", "prog 'x", "--binary", "y"], "expected a line that a shell could split"),
        (["--command", "prog {y}", "--ordinal", "y"], "expected a form like y=1,2,4"),
        ([], "expected --command, or a terminal to ask on"),
    ],
)
def test_init_refuses_what_would_be_no_study(
    tmp_path: Path, flags: list[str], part: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert part in said(capsys, "init", str(tmp_path / "x.toml"), *flags, code=2)
    assert not list(tmp_path.iterdir())


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_init_asks(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter(
        ["./bench --cache={cache} {fast}", "time", "", "wrong", "i", "1-9", "1:9", "b", "--fast", "many", "30", "5s"]
    )
    monkeypatch.setattr("builtins.input", lambda _: next(answers))
    monkeypatch.setattr("sys.stdin", Terminal())
    path = tmp_path / "asked.toml"
    said(capsys, "init", str(path))
    file = load(path)
    assert (file.value.reader, file.direction, file.plan.budget, file.plan.timeout) == (
        "wall-time",
        "minimize",
        30,
        5.0,
    )
    assert file.space.variables["cache"].choices == tuple(range(1, 10))
    assert file.flags == {"fast": ("", "--fast")}
    assert next(answers, None) is None


# ---------------------------------------------------------------- suggest


def asked(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], question: Any, *arguments: str) -> Any:
    monkeypatch.setattr("sys.stdin", io.StringIO(question if isinstance(question, str) else json.dumps(question)))
    return json.loads(said(capsys, "suggest", *arguments))


SPACE = {"x": {"kind": "ordinal", "choices": [1, 2, 3]}, "y": {"kind": "binary"}}
CHEAP = {"samples": 2, "burn_in": 2, "initial": 2}


def test_suggest_answers_with_new_permitted_points(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    question = {
        "space": SPACE,
        "constraints": ["x < 3 or y"],
        "observations": [
            {"params": {"x": 1, "y": False}, "value": 2.0},
            {"params": {"x": 2, "y": False}, "value": None},
        ],
        "pending": [{"x": 3, "y": True}],
        "n": 2,
        "seed": 0,
        "settings": CHEAP,
    }
    answer = asked(monkeypatch, capsys, question)
    assert not answer["exhausted"]
    assert sorted(point["x"] for point in answer["suggestions"]) == [1, 2]
    assert all(point["y"] is True for point in answer["suggestions"])
    assert asked(monkeypatch, capsys, question) == answer
    assert asked(monkeypatch, capsys, {**question, "n": 9}) == {
        **asked(monkeypatch, capsys, question),
        "exhausted": True,
    }


def test_suggest_follows_the_direction(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    space = {"x": {"kind": "integer", "low": 1, "high": 40}}
    known = [{"params": {"x": x}, "value": x} for x in (10, 14, 18, 22, 26, 30)]
    question = {"space": space, "observations": known, "seed": 1, "settings": {"initial": 6}}
    low = asked(monkeypatch, capsys, question)["suggestions"][0]["x"]
    high = asked(monkeypatch, capsys, {**question, "direction": "maximize"})["suggestions"][0]["x"]
    assert low < 10
    assert high > 30


def test_suggest_takes_the_space_of_a_study_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, VALUE, "budget = 1\nconstraints = ['a == 5']")
    answer = asked(monkeypatch, capsys, "", str(path))
    assert [point["a"] for point in answer["suggestions"]] == [5]
    assert set(answer["suggestions"][0]) == {"a", "b", "c", "d"}


@pytest.mark.parametrize(
    ("question", "part"),
    [
        ("{", "stdin: expected a JSON object"),
        ("[]", "stdin: expected a JSON object, got []"),
        ("{}", "stdin: space: expected a table, got nothing"),
        ({"space": SPACE, "observatoins": []}, "did you mean 'observations'?"),
        ({"space": {"x": {"kind": "bool"}}}, "stdin: space.x.kind: expected one of binary"),
        ({"space": SPACE, "n": 0}, "n: expected a whole number >= 1"),
        ({"space": SPACE, "constraints": ["x <"]}, "constraint 'x <'"),
        ({"space": SPACE, "observations": [{"x": 1}]}, "observations: expected objects"),
        ({"space": SPACE, "observations": [{"params": {"x": 1}, "value": 1}]}, "'y' missing"),
        ({"space": SPACE, "observations": [{"params": {"x": 1, "y": True}, "value": "1"}]}, "expected a number"),
        ({"space": SPACE, "pending": [{"x": 7, "y": True}]}, "stdin: pending: variable 'x': expected one of 1, 2, 3"),
        ({"space": SPACE, "settings": {"sample": 3}}, "setting 'sample'"),
        ({"space": SPACE, "preset": "x"}, "preset: expected one of"),
    ],
)
def test_a_wrong_question_is_one_line_and_exit_code_2(
    question: Any, part: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(question if isinstance(question, str) else json.dumps(question)))
    assert part in said(capsys, "suggest", code=2)


# ---------------------------------------------------------------- dashboard, completion, help


def test_the_dashboard_listens_on_this_machine_alone(study: Path) -> None:
    pytest.importorskip("optuna_dashboard")
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = start(["dashboard", str(study), "--port", str(port)], study.parent)

    def answers() -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/studies", timeout=5) as reply:
                return "demo" in reply.read().decode()
        except OSError:
            assert process.poll() is None, ended(process)
            return False

    try:
        until(answers)
    finally:
        process.kill()
        printed = ended(process)
    assert f"http://127.0.0.1:{port}/" in printed


def test_an_absent_package_is_named(
    study: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "optuna_dashboard", None)
    assert "pip install 'carbo[dashboard]'" in said(capsys, "dashboard", str(study), code=2)
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert "pip install 'carbo[tune]'" in said(capsys, "completion", "bash", code=2)
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert "pip install 'carbo[tune]'" in said(capsys, "best", str(study), code=2)
    assert "pip install 'carbo[tune]'" in said(capsys, "tune", str(study), code=2)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_the_commands(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("shtab")
    script = said(capsys, "completion", shell)
    assert all(name in script for name in ("tune", "trials", "relevance", "dashboard", "dry-run"))


@pytest.mark.parametrize(
    "command", ["demo", "tune", "best", "trials", "relevance", "report", "init", "suggest", "dashboard", "completion"]
)
def test_every_command_has_help_with_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main([command, "--help"])
    assert left.value.code == 0
    text = capsys.readouterr().out
    assert "examples:" in text
    assert f"carbo {command}" in text.partition("examples:")[2]


def test_output_may_be_cut_off_by_its_reader(study: Path) -> None:
    process = start(["trials", str(study), "--json"], study.parent)
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(300) == 0
