"""The command line, run as a user runs it."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from carbo import cli


def carbo(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "carbo", *arguments], capture_output=True, text=True, cwd=cwd, check=False
    )


def test_help_teaches_by_examples() -> None:
    done = carbo("--help")
    assert done.returncode == 0
    assert "examples:" in done.stdout
    assert "carbo tune study.toml" in done.stdout
    assert "lab" not in done.stdout


COMMANDS = ("demo", "tune", "best", "trials", "relevance", "report", "init", "suggest", "dashboard", "completion")


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_fits_a_terminal_of_80_columns(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as left:
        cli.main([*command.split(), "--help"])
    assert left.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if len(line) > 80] == []
    assert any(line.startswith("examples:") for line in lines)


def test_the_first_example_of_suggest_is_answered(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        cli.main(["suggest", "--help"])
    question = capsys.readouterr().out.partition("echo '")[2].partition("' | carbo suggest")[0]
    monkeypatch.setattr("sys.stdin", io.StringIO(question))
    assert cli.main(["suggest"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert len(answer["suggestions"]) == 2
    assert answer["exhausted"] is False


def test_the_demo_shows_progress_the_best_setting_what_matters_and_writes_a_plot(tmp_path: Path) -> None:
    done = carbo("demo", "--budget", "12", "--plot", "out.png", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for said in (
        "12/12",
        "best:",
        "which knobs matter",
        "cache_mb",
        "variance by order of interaction",
        "plot: out.png",
    ):
        assert said in done.stdout
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")


def test_the_demo_with_one_evaluation_ends_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["demo", "--budget", "1"]) == 0


@pytest.mark.parametrize(
    "arguments",
    [[], ["nonsense"], ["demo", "--budget", "0"], ["demo", "--budget", "many"], ["demo", "--preset", "x"]],
)
def test_wrong_input_is_one_clear_line_and_exit_code_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main(arguments)
    assert left.value.code == 2
    assert capsys.readouterr().err.splitlines()[-1].startswith("carbo")


def test_the_exit_code_reaches_the_shell() -> None:
    done = carbo("best", "none.toml")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("carbo: none.toml: expected a study file, got: No such file")
    assert len(done.stderr.splitlines()) == 1


def test_an_error_of_carbo_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from carbo.errors import SpaceError

    def fails(arguments: object) -> int:
        raise SpaceError("variable 'x': expected this, got that; do so")

    monkeypatch.setattr(cli.demo, "_run", fails)
    assert cli.main(["demo"]) == 2
    assert capsys.readouterr().err == "carbo: variable 'x': expected this, got that; do so\n"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("tune x.toml --budgte 5", "carbo tune: expected no option '--budgte' (did you mean --budget?)"),
        ("suggest --wings=2", "carbo suggest: expected no option '--wings'"),
        ("tune x.toml extra", "carbo tune: expected no argument 'extra'"),
        ("tune", "carbo tune: the following arguments are required: FILE"),
        ("demo --budget 0", "carbo demo: argument --budget: expected a whole number >= 1, got '0'"),
    ],
)
def test_wrong_options_are_refused_in_one_line_by_the_command_they_were_given_to(
    line: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(line.split())
    assert stopped.value.code == 2
    command = said.partition(":")[0]
    assert capsys.readouterr().err == f"{said}; see `{command} --help`\n"
