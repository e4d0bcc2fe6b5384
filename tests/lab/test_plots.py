"""Figures of results: what is drawn, not how it looks."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from carbo.errors import DataError, SettingsError
from lab.methods import METHODS
from lab.tables import plots
from lab.tables.results import ORIGINAL, RELOCATED, Results, Selection, arrange
from tests.records import falling, record

pytest.importorskip("matplotlib")


def some_results(all_versions: bool = False) -> Results:
    records = [
        record("branin", method, run, falling(end + 0.01 * run, 100), seconds=2.0)
        for method, end in (("random", 0.9), ("default", 0.41), ("annealing", 0.5))
        for run in (1, 2)
    ]
    records.append(
        record("branin", "default", 1, falling(0.45, 100), settings={"old": 1}, finished="2025-01-01T00:00:00Z")
    )
    records.append(record("branin", "default", 1, falling(0.45, 100), relocated=1))
    return arrange(records, Selection(all_versions=all_versions))


def test_a_figure_has_a_line_a_method_and_the_two_levels_on_both_sides() -> None:
    figure = plots.progress(some_results(), "branin", ORIGINAL)
    left, right = figure.axes
    names = ["carbo, preset default (2 runs)", "Simulated annealing (2 runs)", "Random search (2 runs)",
             "COMBO in the paper, at the end", "best possible"]  # fmt: skip
    assert [line.get_label() for line in left.lines] == [line.get_label() for line in right.lines] == names
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == names  # the best at the end comes first
    assert len(left.collections) == len(right.collections) == 3  # bands
    assert right.get_xscale() == "log"


def test_lines_are_the_mean_of_the_best_so_far() -> None:
    left, right = plots.progress(some_results(), "branin", ORIGINAL).axes
    x, y = map(np.asarray, left.lines[0].get_data())
    np.testing.assert_array_equal(x, np.arange(1, 101))
    np.testing.assert_allclose(y, np.linspace(30, 0.425, 100))
    np.testing.assert_allclose(np.asarray(left.lines[3].get_ydata()), 0.4113)
    np.testing.assert_allclose(np.asarray(left.lines[4].get_ydata()), 0.40377, atol=1e-5)
    time, value = map(np.asarray, right.lines[0].get_data())
    np.testing.assert_allclose(time, 2.0 * np.arange(1, 99))  # two of the evaluations were initial
    np.testing.assert_allclose(value, y[2:])


def test_the_papers_level_keeps_its_distance_where_the_best_possible_is_another() -> None:
    # run 1 is of a case whose best possible is 21.35; the paper's mean over all cases is 21.236
    results = arrange([record("contamination-0", "default", 1, falling(21.4, 270))])
    left, _ = plots.progress(results, "contamination-0", ORIGINAL).axes
    assert left.lines[1].get_label() == "COMBO in the paper, as far from the best"
    np.testing.assert_allclose(np.asarray(left.lines[1].get_ydata()), 21.2752 + 21.35 - 21.236)


def test_a_single_run_has_no_band_and_an_unknown_problem_no_levels() -> None:
    left, _ = plots.progress(arrange([record("mine", "default", 1, falling(1, 10))]), "mine", ORIGINAL).axes
    assert len(left.lines) == 1
    assert not left.collections


def test_older_versions_are_fainter_in_the_same_colour() -> None:
    left, _ = plots.progress(some_results(all_versions=True), "branin", ORIGINAL).axes
    old, new = (next(line for line in left.lines if str(line.get_label()).startswith(name))
                for name in ("carbo, preset default [abc123]", "carbo, preset default ("))  # fmt: skip
    assert old.get_color() == new.get_color()
    assert (old.get_alpha() or 1) < (new.get_alpha() or 1)


def test_looks_tell_the_laboratorys_methods_apart() -> None:
    assert set(METHODS) <= set(plots.LOOKS)
    looks = [(style.colour, style.line) for style in plots.LOOKS.values()]
    assert len(set(looks)) == len(looks)
    assert plots.look("somebody else's") == plots.look("somebody else's")


def test_the_figure_of_ranks_labels_every_method() -> None:
    figure = plots.rank_figure(some_results(), ORIGINAL)
    assert figure is not None
    (ax,) = figure.axes
    assert sorted(text.get_text() for text in ax.texts) == sorted(str(line.get_label()) for line in ax.lines)
    assert len(ax.lines) == 3
    assert plots.rank_figure(some_results(), RELOCATED) is None  # a single method


def test_labels_keep_apart() -> None:
    moved = plots._spaced([2.0, 1.0, 1.01, 1.02], 0.1)
    assert moved == pytest.approx([2.0, 1.0, 1.1, 1.2])


@pytest.mark.parametrize(("kind", "begins"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_figures_are_written(tmp_path: Path, kind: str, begins: bytes) -> None:
    only = [each for each in some_results().records() if each.relocated is None]
    written = plots.draw_all(arrange(only), (ORIGINAL, RELOCATED), tmp_path / "new", kind)
    assert [path.name for path in written] == [f"branin-original.{kind}", f"ranks-original.{kind}"]
    assert all(path.read_bytes().startswith(begins) for path in written)


def test_a_figure_that_cannot_be_written_is_an_error_of_one_line(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(DataError, match=r"taken.*expected a file that can be written"):
        plots.draw_all(some_results(), (ORIGINAL,), tmp_path / "taken")


def test_without_matplotlib_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def absent(name: str, *rest: Any, **more: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(SettingsError, match=r"pip install 'carbo\[plot\]'"):
        plots.progress(some_results(), "branin", ORIGINAL)
