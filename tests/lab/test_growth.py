"""`python -m lab growth`: what is measured, kept and drawn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from carbo.errors import DataError
from lab import cli
from lab.measure import growth
from lab.measure.growth import AXES, Point, landscape, measure, read, space_of, trail
from lab.measure.growth_figure import TITLES, draw

TINY = {
    "observations": (Point("observations", 15, 6, observations=15), Point("observations", 25, 6, observations=25)),
    "category": (Point("category", 70, 3, 70, "category", 15),),
}


def record(axis: str, at: int, total: float = 1.0, peak: float | None = 100.0) -> dict[str, Any]:
    return {"axis": axis, "at": at, "preset": "default", "megabytes": {"before": peak, "peak": peak},
            "seconds": {"first": 9.0 * total, "model": 0.6 * total, "search": 0.4 * total, "total": total}}  # fmt: skip


def test_every_axis_grows_and_has_a_title() -> None:
    assert list(AXES) == list(TITLES)
    for axis, points in AXES.items():
        sizes = [point.at for point in points]
        assert sizes == sorted(set(sizes))
        assert {point.axis for point in points} == {axis}
        for point in points:
            by_axis = {"observations": point.observations, "variables": point.variables}
            assert by_axis.get(axis, point.values) == point.at


@pytest.mark.parametrize("point", [Point("variables", 7, 7), *TINY["category"], Point("levels", 90, 3, 90, "levels")])
def test_a_trail_has_distinct_rows_that_get_better(point: Point) -> None:
    rng, space = np.random.default_rng(0), space_of(point)
    assert (space.dim, int(space.sizes.max())) == (point.variables, point.values)
    rows, values = trail(rng, space, landscape(rng, space), 60)
    assert len(np.unique(rows, axis=0)) == len(rows) == len(values) == 60
    assert np.mean(values[30:]) < np.mean(values[:20])


@pytest.mark.parametrize("point", [TINY["observations"][0], TINY["category"][0]])
def test_a_record_holds_seconds_and_units_by_stage_and_memory(point: Point) -> None:
    found = json.loads(json.dumps(measure(point, "default", 1)))
    assert found["name"] == point.name
    assert set(found["seconds"]) == set(found["units"]) == {"tell", "first", "model", "search", "total"}
    assert all(value >= 0 for value in found["seconds"].values())
    assert found["seconds"]["total"] == pytest.approx(found["seconds"]["model"] + found["seconds"]["search"])
    assert found["units"]["total"] == pytest.approx(found["seconds"]["total"] / found["unit_seconds"])
    assert found["megabytes"]["peak"] is None or found["megabytes"]["peak"] >= found["megabytes"]["before"] > 1


def test_the_command_measures_one_axis_keeps_records_and_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(growth, "AXES", TINY)
    out, plot = tmp_path / "sub" / "growth.jsonl", tmp_path / "growth.png"
    wanted = ["growth", "--axis", "observations", "--most", "20", "--repeats", "1", "--out", str(out)]
    assert cli.main([*wanted, "--plot", str(plot)]) == 0
    (line,) = out.read_text().splitlines()
    assert json.loads(line)["at"] == 15
    assert plot.read_bytes().startswith(b"\x89PNG")
    said = capsys.readouterr().out
    assert "6 binary variables, 15 observations: " in said
    assert f"written: {plot}" in said


def test_the_newest_record_of_a_point_counts(tmp_path: Path) -> None:
    path = tmp_path / "growth.jsonl"
    for at, total in ((100, 1.0), (50, 2.0), (100, 3.0)):
        growth.append(path, record("observations", at, total))
    assert [(r["at"], r["seconds"]["total"]) for r in read(path)] == [(50, 2.0), (100, 3.0)]


def test_the_figure_draws_seconds_over_sizes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []

    def save(figure: Any, path: Path) -> Path:
        shown.append(figure)
        return path

    monkeypatch.setattr("lab.measure.growth_figure._save", save)
    records = [record("observations", n, n / 100) for n in (50, 100)] + [record("levels", 10, 1.0, None)]
    draw(records, tmp_path / "x.png")
    upper, other, lower, _ = shown[0].axes
    by_label = {line.get_label(): line for line in upper.lines}
    np.testing.assert_array_equal(by_label["warm"].get_xdata(), [50, 100])
    np.testing.assert_allclose(by_label["warm"].get_ydata(), [0.5, 1.0])
    np.testing.assert_allclose(by_label["first, with burn-in"].get_ydata(), [4.5, 9.0])
    np.testing.assert_array_equal(lower.lines[0].get_ydata(), [100.0, 100.0])
    np.testing.assert_array_equal(other.lines[1].get_xdata(), [10])


@pytest.mark.parametrize("text", [None, "", "{}", "no json", '{"axis": "observations"}'])
def test_a_file_without_records_is_one_clear_error(text: str | None, tmp_path: Path) -> None:
    path = tmp_path / "growth.jsonl"
    if text is not None:
        path.write_text(text)
    with pytest.raises(DataError, match=r"^records: expected"):
        read(path)
