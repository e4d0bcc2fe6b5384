"""The laboratory's command line."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from lab import cli


def test_the_module_is_a_command_whose_help_teaches() -> None:
    done = subprocess.run([sys.executable, "-m", "lab", "--help"], capture_output=True, text=True, check=True)
    assert "examples:" in done.stdout
    assert "python -m lab speed" in done.stdout


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("speed --wings=2", "python -m lab speed: expected no option '--wings'"),
        ("ascent extra", "python -m lab ascent: expected no argument 'extra'"),
        ("speed --repeats 0", "python -m lab speed: argument --repeats: expected a whole number >= 1, got '0'"),
    ],
)
def test_wrong_options_are_refused_in_one_line(line: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        cli.main(line.split())
    assert stopped.value.code == 2
    command = said.partition(":")[0]
    assert capsys.readouterr().err == f"{said}; see `{command} --help`\n"


def test_speed_reports_seconds_and_units_by_stage() -> None:
    from lab.measure import speed

    report = speed.run("paper", 1, 1, "trail", (speed.Point(6, 2, 12, 1000),))
    (point,) = report["points"]
    assert json.loads(json.dumps(report)) == report
    assert point["point"] == "6 binary, 12 observations"
    assert set(point["seconds"]) == set(point["units"]) == {"sampling", "search", "total"}
    for stage, seconds in point["seconds"].items():
        assert point["units"][stage] == pytest.approx(seconds / point["unit_seconds"])
    assert point["times_published_speed"] == pytest.approx(1000 / point["units"]["total"])
    assert report["threads"] == 1
