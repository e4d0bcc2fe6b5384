"""The architecture search in the laboratory: what --data means, who is spared invalid cells, tables. Without torch."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from carbo.numerics.types import Ints
from examples.nas.cell import is_valid, reduced
from examples.nas.objective import INVALID
from lab import cli, methods
from lab.methods import METHODS
from lab.problems import Problem, problem
from lab.runs import runner
from lab.runs.grid import Task, settings_key
from lab.runs.record import Record
from lab.tables import plots, tables
from lab.tables.formats import markdown
from lab.tables.rankings import comparisons
from lab.tables.results import ORIGINAL, Results, arrange
from tests.records import falling, record


def made_up(row: Ints) -> float:
    """A value without training: cells of two nodes are best."""
    found = reduced(row)
    return INVALID if found is None else 0.1 + 0.05 * abs(len(found.kinds) - 2)


def run_search(method: str, budget: int, run: int = 1, relocated: int | None = None) -> Record:
    task = Task("nas-digits", relocated, method, settings_key(METHODS[method]), run, budget)
    built = task.build()
    objective = (
        made_up
        if relocated is None
        else dataclasses.replace(untrained_problem(), valid=None).relocated(relocated).objective
    )
    replaced = dataclasses.replace(built, objective=objective, packages=())
    return runner.perform(task, replaced, lambda *_: None)


def untrained_problem() -> Problem:
    return dataclasses.replace(problem("nas-digits", 1), objective=made_up)


def pretend_installed(monkeypatch: pytest.MonkeyPatch, *missing: str) -> None:
    monkeypatch.setattr(methods, "_installed", lambda name: name not in missing)


# ---------------------------------------------------------------- methods


@pytest.mark.parametrize("relocated", [None, 2])
def test_evolution_proposes_valid_cells_only(relocated: int | None) -> None:
    found = run_search("evolution", 160, relocated=relocated)
    assert found.values.max() < INVALID


def test_without_that_privilege_it_would_propose_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METHODS, "evolution", dataclasses.replace(METHODS["evolution"], valid_only=False))
    assert max(run_search("evolution", 60, run).values.max() for run in (1, 2, 3)) == INVALID


def test_the_others_are_not_spared_invalid_cells() -> None:
    """A random cell is valid with a chance of about 0.93: none among 250 has one of 1e-8."""
    assert run_search("random", 260).values.max() == INVALID


def test_evolution_on_valid_cells_still_mutates_one_bit() -> None:
    rows = run_search("evolution", 60).rows
    for n in range(10, len(rows)):
        assert min(int((rows[n] != earlier).sum()) for earlier in rows[max(0, n - 50) : n]) <= 1


def test_problems_without_invalid_rows_start_methods_with_their_own_space() -> None:
    given = problem("ising-0", 1)
    assert runner._space(METHODS["evolution"], given) is given.space
    assert runner._space(METHODS["random"], untrained_problem()).constraint is None
    constrained = runner._space(METHODS["evolution"], untrained_problem())
    assert [is_valid(row) for row in constrained.random_rows(np.random.default_rng(0), 50)] == [True] * 50


@pytest.mark.parametrize("method", ["bocs-sdp", "default"])
def test_the_methods_of_the_papers_comparison_take_the_search(method: str) -> None:
    if method == "bocs-sdp":
        pytest.importorskip("scs", reason="scs is not installed: pip install 'carbo[bench]'")
    found = run_search(method, 12)
    assert found.rows.shape == (12, 31)
    assert found.initial == 10


# ---------------------------------------------------------------- the command


def error_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert cli.main(["run", "--method", "random", *arguments]) == 2
    return capsys.readouterr().err


def plan_of(capsys: pytest.CaptureFixture[str], out: Path, *arguments: str) -> str:
    command = ["run", "--method", "random", "--runs", "1", "--dry-run", "--out", str(out), *arguments]
    assert cli.main(command) == 0
    return capsys.readouterr().out


def test_nas_is_the_search_that_data_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pretend_installed(monkeypatch)
    for name in ("data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"):
        (tmp_path / name).touch()  # looked into only when a network is trained
    folder = ("--data", str(tmp_path))
    assert "nas-digits  " in plan_of(capsys, tmp_path, "--problem", "nas")
    assert "nas-digits  " in plan_of(capsys, tmp_path, "--problem", "nas", "--data", "digits")
    assert "nas-digits  " in plan_of(capsys, tmp_path, "--problem", "nas", *folder)
    assert "nas-cifar10  " in plan_of(capsys, tmp_path, "--problem", "nas", "--data", "cifar10", *folder)
    assert "nas-cifar10  " in plan_of(capsys, tmp_path, "--problem", "nas-cifar10", *folder)
    both = plan_of(capsys, tmp_path, "--problem", "nas", "--data", "digits", "--data", "cifar10", *folder)
    assert "nas-digits  " in both
    assert "nas-cifar10  " in both
    assert "2 runs wanted" in both


def test_the_folder_of_the_environment_serves_the_search_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pretend_installed(monkeypatch)
    monkeypatch.setenv("CARBO_WCNF", str(tmp_path))
    (tmp_path / "cifar-10-binary.tar.gz").touch()
    assert "nas-cifar10  " in plan_of(capsys, tmp_path, "--problem", "nas", "--data", "cifar10")


def test_cifar10_without_its_files_says_where_to_get_them_and_how_to_name_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("CARBO_WCNF", raising=False)
    said = error_of(capsys, "--problem", "nas", "--data", "cifar10")
    assert "download the binary version from https://" in said
    assert said.endswith("and name its folder with --data or CARBO_WCNF\n")


def test_two_folders_are_one_too_many(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--data: expected one folder, got a and b" in error_of(
        capsys, "--problem", "ising-0", "--data", "a", "--data", "b"
    )


@pytest.mark.parametrize("missing", ["torch", "scikit-learn"])
def test_an_absent_package_is_named_before_anything_is_run(
    missing: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pretend_installed(monkeypatch, missing)
    said = error_of(capsys, "--problem", "nas")
    assert said == (f"lab: problem 'nas-digits': expected the package {missing} to be installed, got none; "
                    "pip install 'carbo[nas]'\n")  # fmt: skip


def test_tasks_know_where_accuracies_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    task = Task("nas-digits", None, "random", "{}", 1, 260, None, "somewhere")
    objective: Any = task.build().objective
    assert (objective.data, objective.folder, objective.trained) == ("digits", None, "somewhere")


def test_a_record_names_the_packages_that_trained() -> None:
    task = Task("nas-digits", None, "random", settings_key(METHODS["random"]), 1, 11)
    done = runner.perform(task, dataclasses.replace(untrained_problem(), packages=("pytest",)), lambda *_: None)
    assert "pytest" in done.versions
    assert json.loads(json.dumps(done.instance)) == {"data": "digits", "seeds": 4, "epochs": 20}


# ---------------------------------------------------------------- tables and figures


def digits_results(*more: Record) -> Results:
    runs = [
        record("nas-digits", method, run, falling(end, 260, start=0.05))
        for method, end in (("default", 0.012), ("paper", 0.013), ("random", 0.016), ("evolution", 0.015))
        for run in (1, 2, 3)
    ]
    return arrange([*runs, *more])


def test_the_papers_numbers_are_shown_and_called_another_data_set() -> None:
    text = markdown(tables.measure_tables(digits_results(), ORIGINAL, tables.at_the_end()))
    lines = {line.split("|")[1].strip(): line for line in text.splitlines() if line.startswith("| ")}
    assert [cell.strip() for cell in lines["method"].split("|")[2:4]] == [
        "Architecture search, digits",
        "Architecture search, CIFAR-10",
    ]
    for name, mean in (("COMBO", 0.1846), ("RE", 0.1895), ("RS", 0.1969), ("BOCS-SDP", 0.1978)):
        digits, cifar = lines[f"{name}, printed"].split("|")[2:4]
        assert digits.strip() == ""
        assert cifar.strip().startswith(f"{mean} ±")
        assert cifar.strip().endswith("(4)")
    assert "another data set, and not to be compared with ours" in text


def test_runs_on_cifar10_stand_in_the_column_of_the_papers_numbers_once() -> None:
    more = [record("nas-cifar10", "default", 1, falling(0.19, 260, start=0.4))]
    (table,) = tables.measure_tables(digits_results(*more), ORIGINAL, tables.at_the_end())
    assert table.columns == ("Architecture search, CIFAR-10", "Architecture search, digits")


def test_only_the_table_of_values_at_the_end_shows_them() -> None:
    results = digits_results()
    for table in tables.everything(results, [ORIGINAL]):
        assert (len(table.columns) == 2) == (table.name == "value") or table.name == "rank"


def test_digits_do_not_count_in_ranks_of_the_papers_problems() -> None:
    more = [record("branin", m, r, falling(0.5, 100)) for m in ("default", "random", "annealing") for r in (1, 2, 3)]
    for comparison in comparisons(digits_results(*more), ORIGINAL):
        assert comparison.problems == ("branin",)


def test_the_figure_names_the_papers_numbers_and_draws_no_level_of_them() -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'carbo[plot]'")
    figure = plots.progress(digits_results(), "nas-digits", ORIGINAL)
    left = figure.axes[0]
    assert "COMBO 0.1846, RE 0.1895, RS 0.1969, BOCS-SDP 0.1978" in left.get_title(loc="left")
    assert "another data set" in left.get_title(loc="left")
    assert len(left.lines) == 4  # the methods
    low, high = left.get_ylim()
    assert high < 0.1846
    assert low < 0.012
