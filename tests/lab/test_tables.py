"""Tables of results: statistics by hand, the paper's numbers by its main text, formats that parse back."""

from __future__ import annotations

import csv
import io
import math
import re
import shutil
import subprocess
from functools import partial
from pathlib import Path

import pytest

from carbo.errors import DataError
from carbo.settings import DEFAULT
from lab import cli
from lab.methods import METHODS
from lab.problems import PROBLEMS
from lab.runs.record import Record, line, read
from lab.tables import (
    anytime as areas,
)
from lab.tables import (
    cost_tables as effort,
)
from lab.tables import (
    formats,
    losses,
    paper,
    rankings,
    statistics,
    tables,
)
from lab.tables import (
    page as results_page,
)
from lab.tables.formats import Cell, Row, Table
from lab.tables.results import FORMS, ORIGINAL, RELOCATED, Case, Results, Selection, arrange, optimum, paper_optima
from tests.records import falling, record

ROOT = Path(__file__).parents[2]
CONTAMINATION = "contamination-0"


def table(found: list[Table], name: str, form: str = ORIGINAL) -> Table:
    return next(each for each in found if (each.name, each.form) == (name, form))


def cell(found: Table, label: str, column: str | None = None) -> Cell:
    row = next(each for each in found.rows if each.label == label)
    return row.cells[(found.keys or found.columns).index(column) if column else 0]


def branin(method: str, ends: dict[int, float], **more: object) -> list[Record]:
    """Runs of Branin that end at these values."""
    return [record("branin", method, run, falling(end, 100), **more) for run, end in ends.items()]  # type: ignore[arg-type]


# --- statistics, by hand


def test_mean_and_standard_error() -> None:
    # sample variance of 1, 2, 3, 6: (4 + 1 + 0 + 9) / 3
    mean, error, runs = statistics.summary([1.0, 2.0, 3.0, 6.0])
    assert (mean, runs) == (3.0, 4)
    assert error == pytest.approx(math.sqrt(14 / 3 / 4))


def test_a_single_run_has_no_standard_error() -> None:
    assert statistics.summary([7.0]) == (7.0, None, 1)


def test_equals_share_the_mean_of_their_ranks() -> None:
    assert statistics.ranks([3.0, 1.0, 3.0, 2.0]) == [3.5, 1.0, 3.5, 2.0]
    assert statistics.ranks([5.0, 5.0, 5.0]) == [2.0, 2.0, 2.0]
    assert statistics.ranks([0.1 + 0.2, 0.3]) == [1.5, 1.5]  # not equal as floats
    assert statistics.ranks([0.3001, 0.3]) == [2.0, 1.0]


def test_every_problem_counts_the_same_in_a_mean_rank() -> None:
    # problem 1 has one run, problem 2 three: ranks (1, 2) and mean of (2, 1), (2, 1), (1.5, 1.5)
    problems = [{1: [0.0, 1.0]}, {1: [1.0, 0.0], 2: [1.0, 0.0], 3: [4.0, 4.0]}]
    assert statistics.mean_ranks(problems) == pytest.approx([(1 + 5.5 / 3) / 2, (2 + 3.5 / 3) / 2])


def test_runs_that_never_got_there_are_above_the_median() -> None:
    assert statistics.median_steps([10, None, 30]) == 30
    assert statistics.median_steps([10, 20, None, None]) is None  # between 20 and never
    assert statistics.median_steps([10, 20, 30, None]) == 25
    assert statistics.median_steps([None]) is None


def test_steps_to_reach_counts_evaluations_and_knows_how_values_are_printed() -> None:
    best = record(values=[5, 4, 2.00004, 2]).best
    assert [statistics.steps_to_reach(best, target) for target in (5.0, 4.5, 2.0, 1.9)] == [1, 2, 3, None]


def test_paired_differences_use_only_shared_runs() -> None:
    theirs, ours = {1: 5.0, 2: 7.0, 9: 100.0}, {1: 4.0, 2: 4.0, 3: -50.0}
    assert statistics.paired_differences(theirs, ours) == (2.0, 1.0, 2)
    assert statistics.paired_differences({1: 0.0}, {2: 0.0}) is None


def test_methods_compared_share_runs_on_every_problem() -> None:
    runs = {"a": [[1, 2, 3], [1, 2, 3]], "b": [[2, 3], [1, 2]], "alone": [[9], [1]], "absent": [[1], []]}
    assert statistics.shared_runs(runs) == (["a", "b"], [[2, 3], [1, 2]])


# --- the paper's numbers


MAIN_TEXT = """
contamination-0     SMAC 21.61 0.04   TPE 21.64 0.04  SA 21.47 0.04  BOCS-SDP 21.37 0.03   COMBO 21.28 0.03
contamination-1e-4  SMAC 21.50 0.03   TPE 21.69 0.04  SA 21.49 0.04  BOCS-SDP 21.38 0.03   COMBO 21.28 0.03
contamination-1e-2  SMAC 21.68 0.04   TPE 21.84 0.04  SA 21.61 0.04  BOCS-SDP 21.52 0.03   COMBO 21.44 0.03
ising-0             SMAC 0.152 0.040  TPE 0.404 0.109 SA 0.095 0.033 BOCS-SDP 0.105 0.031  COMBO 0.103 0.035
ising-1e-4          SMAC 0.219 0.052  TPE 0.444 0.095 SA 0.117 0.035 BOCS-SDP 0.059 0.013  COMBO 0.081 0.028
ising-1e-2          SMAC 0.350 0.045  TPE 0.609 0.107 SA 0.334 0.064 BOCS-SDP 0.300 0.039  COMBO 0.317 0.042
maxsat28            SMAC -20.05 0.67  TPE -25.20 0.88 SA -31.81 1.19 BOCS-SDP -29.49 0.53  COMBO -37.80 0.27
maxsat43            SMAC -57.42 1.76  TPE -52.39 1.99 SA -75.76 2.30 BOCS-SDP -51.13 1.69  COMBO -85.02 2.14
maxsat60            SMAC -148.60 1.01 TPE -137.21 2.83 SA -187.55 1.50 BOCS-SDP -153.67 2.01 COMBO -195.65 0.00
"""
DIFFERENT = {("contamination-0", "SMAC"), ("contamination-1e-2", "SMAC"), ("contamination-0", "BOCS-SDP")}
"""Where the main text is no rounding of the supplement, as the module says."""


@pytest.mark.parametrize("text", MAIN_TEXT.strip().splitlines(), ids=lambda text: text.split()[0])
def test_the_main_text_rounds_the_numbers(text: str) -> None:
    problem, *words = text.split()
    for name, mean, error in zip(words[::3], words[1::3], words[2::3], strict=True):
        printed = paper.COLUMNS[problem].printed[name]
        same = all(
            abs(exact - float(short)) <= 0.501 * 10 ** -len(short.split(".")[1])
            for exact, short in ((printed.mean, mean), (printed.error, error))
        )
        assert same != ((problem, name) in DIFFERENT), (problem, name)


def test_columns_are_problems_of_the_laboratory_and_rows_its_methods() -> None:
    assert set(paper.COLUMNS) <= set(PROBLEMS)
    assert {name for column in paper.COLUMNS.values() for name in column.printed} == set(paper.COUNTERPARTS)
    assert set(paper.COUNTERPARTS.values()) <= set(METHODS)


def test_no_printed_mean_is_below_the_best_possible() -> None:
    for name, column in paper.COLUMNS.items():
        optima = paper_optima(name) if name in PROBLEMS else None
        if optima is not None:
            assert min(printed.mean for printed in column.printed.values()) >= sum(optima) / len(optima)


@pytest.mark.parametrize(
    ("problem", "mean"),
    [("contamination-0", 21.236), ("contamination-1e-4", 21.23756), ("contamination-1e-2", 21.392),
     ("ising-0", 0.0), ("ising-1e-4", 0.002060), ("ising-1e-2", 0.184101), ("branin", 0.403770)],
)  # fmt: skip
def test_the_best_possible_means_over_the_papers_runs(problem: str, mean: float) -> None:
    optima = paper_optima(problem)
    assert optima is not None
    assert sum(optima) / len(optima) == pytest.approx(mean, abs=1e-6)


# --- what is left


def test_the_area_is_the_mean_share_of_the_initial_distance() -> None:
    least = optimum(record("branin"))
    assert least is not None
    # two initial points, the better one 8 above the best possible; then 4, 4, 2 and 0 are left
    one = record("branin", "default", 1, [least + 9, least + 8, least + 4, least + 5, least + 2, least])
    assert areas.area(one) == pytest.approx((0.5 + 0.5 + 0.25 + 0.0) / 4)
    assert areas.area(record("branin", "default", 1, [least, least, least])) is None  # there from the beginning
    assert areas.area(record("pest-control", "default", 1, [3.0, 2.0, 1.0])) is None  # the best possible is not known
    assert areas.area(record("branin", "default", 1, [3.0, 2.0])) is None  # nothing but initial points


def test_areas_are_compared_on_shared_runs_alone() -> None:
    least = optimum(record("branin"))
    assert least is not None

    def run(method: str, number: int, later: float) -> Record:
        return record("branin", method, number, [least + 2.0, least + 2.0, *[least + later] * 98])

    shown = arrange([run("default", 1, 1.0), run("default", 2, 0.0), run("random", 1, 2.0), run("random", 9, 0.0)])
    found = areas.areas(shown, ORIGINAL)
    for column in ("all", "branin"):
        assert cell(found, "carbo, preset default", column).text == "0.2500 ± 0.2500 (2)"
        assert cell(found, "Random search", column).text == "+0.5000 (1)"
    assert not areas.areas(arrange([run("random", 1, 2.0)]), ORIGINAL).rows


# --- sorting the records


def test_the_newest_settings_of_a_method_are_shown_and_the_older_ones_on_request() -> None:
    old = branin("default", {1: 5.0, 2: 5.0}, settings={"x": 1}, revision="aaa", finished="2026-01-01T00:00:00Z")
    new = branin("default", {1: 4.0}, settings={"x": 2}, revision="bbb", finished="2026-02-01T00:00:00Z")
    shown = arrange(new + old)
    assert [len(shown.of("branin", ORIGINAL, version)) for version in shown.versions] == [1]
    assert shown.hidden == {"default": 2}
    assert effort.runs(shown, ORIGINAL).notes == ("carbo, preset default: 2 runs with older settings not shown",)
    every = arrange(old + new, Selection(all_versions=True))
    assert list(every.labels.values()) == ["carbo, preset default", "carbo, preset default [aaa]"]
    assert [row.label for row in effort.runs(every, ORIGINAL).rows] == list(every.labels.values())


def test_where_the_newest_settings_have_no_runs_older_runs_stand_in_and_are_named() -> None:
    early, late = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"
    ancient = branin("default", {1: 9.0}, settings={"x": 0}, revision="zzz", finished="2025-01-01T00:00:00Z")
    old = [
        *branin("default", {1: 5.0}, settings={"x": 1}, revision="aaa", finished=early),
        record("ising-0", "default", 1, falling(0.2, 170), settings={"x": 1}, revision="aaa", finished=early),
    ]
    new = branin("default", {1: 4.0}, settings={"x": 2}, revision="bbb", finished=late)
    shown = arrange(ancient + old + new)
    (version,) = shown.versions
    assert shown.ends("branin", ORIGINAL, version) == {Case(1, None): 4.0}
    assert shown.ends("ising-0", ORIGINAL, version) == {Case(1, None): pytest.approx(0.2)}
    assert shown.stand_ins == {("ising-0", ORIGINAL, "default"): "aaa"}
    assert shown.hidden == {"default": 2}
    notes = [note for table in tables.measure_tables(shown, ORIGINAL, tables.at_the_end()) for note in table.notes]
    assert "carbo, preset default on Ising λ=0: runs with the settings before its newest, revision aaa" in notes
    every = arrange(ancient + old + new, Selection(all_versions=True))
    assert (every.stand_ins, len(every.versions)) == ({}, 3)


def test_settings_for_noisy_values_belong_to_the_version_that_has_them() -> None:
    usual, noisy = METHODS["default"].settings, METHODS["default"].version_for(noisy=True).settings
    early, late = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"
    pest = partial(record, "pest-control", "default", instance={"variant": "noisy"})
    records = [
        *branin("default", {1: 4.0}, settings=dict(usual), finished=late),
        pest(1, falling(12.0, 320), settings=dict(noisy), finished=late),
        pest(1, falling(13.0, 320), settings=dict(usual), finished=early),  # before points could be evaluated again
        *branin("default", {1: 5.0}, settings=dict(noisy), finished=early),
    ]
    shown = arrange(records)
    (version,) = shown.versions
    assert shown.ends("branin", ORIGINAL, version) == {Case(1, None): 4.0}
    assert shown.ends("pest-control", ORIGINAL, version) == {Case(1, None): 12.0}
    assert shown.hidden == {"default": 2}


def test_a_variants_settings_for_noisy_values_belong_to_it_too_whatever_the_preset_is_by_now() -> None:
    old = {"replicate": False, "x": 1}  # no settings of today's
    records = [
        *branin("default:doubt=0.0", {1: 4.0}, settings=old),
        record("pest-control", "default:doubt=0.0", 1, falling(12.0, 320), settings={**old, "replicate": True}),
        *branin("paper", {1: 4.0}, settings=old),
        record("pest-control", "paper", 1, falling(12.0, 320), settings={**old, "replicate": True}),
    ]
    assert [version.method for version in arrange(records, Selection(all_versions=True)).versions] == [
        "paper", "paper", "default:doubt=0.0"]  # fmt: skip


def test_three_versions_of_one_revision_have_three_labels() -> None:
    records = [each for x in range(3) for each in branin("m", {1: 1.0}, settings={"x": x})]
    assert len(set(arrange(records, Selection(all_versions=True)).labels.values())) == 3


def test_a_run_recorded_twice_counts_once() -> None:
    shown = arrange(branin("default", {1: 4.0}) + branin("default", {1: 5.0}) + branin("default", {2: 6.0}))
    assert cell(tables.measure_tables(shown, ORIGINAL, tables.at_the_end())[0], "carbo, preset default").text == (
        "5.0000 ± 1.0000 (2)"
    )


def test_runs_with_another_budget_are_left_out_and_noted() -> None:
    short = record("branin", "default", 2, falling(0.5, 30))
    shown = arrange([*branin("default", {1: 4.0}), short])
    assert cell(effort.runs(shown, ORIGINAL), "carbo, preset default").text == "1"
    assert effort.runs(shown, ORIGINAL).notes == (
        "carbo, preset default on branin: left out 1 run with another budget than 100 evaluations",
    )
    only = arrange([*branin("default", {1: 4.0}), short], Selection(budget=30))
    assert cell(effort.runs(only, ORIGINAL), "carbo, preset default").text == "2"
    with pytest.raises(DataError, match="got runs of 30 evaluations"):
        arrange([short])


def test_relocated_runs_are_compared_among_themselves() -> None:
    shown = arrange(branin("default", {1: 4.0}) + branin("random", {1: 3.0}, relocated=1))
    assert [each.name for each in tables.everything(shown, FORMS) if each.name == "difference"] == []
    assert shown.problems(ORIGINAL) == shown.problems(RELOCATED) == ["branin"]


# --- tables


def three_methods() -> Results:
    """On two problems; the rival lacks a run of Branin."""
    records = branin("default", {1: 0.41, 2: 0.43}) + branin("paper", {1: 0.5, 2: 0.7}) + branin("random", {1: 0.4})
    ends = {"default": 12.0, "paper": 13.0, "random": 14.0}
    records += [record("pest-control", m, 1, falling(end, 320), seconds=end) for m, end in ends.items()]
    return arrange(records)


def test_values_stand_above_the_papers_own_and_below_comes_the_best_possible() -> None:
    (found,) = tables.measure_tables(three_methods(), ORIGINAL, tables.at_the_end())
    assert [row.label for row in found.rows] == [
        "carbo, preset default", "carbo, preset paper", "COMBO, printed", "Random search",
        "SA, printed", "SMAC, printed", "TPE, printed", "best possible",
    ]  # fmt: skip
    ours = cell(found, "carbo, preset default", "branin")
    assert (ours.text, ours.runs, ours.bold) == ("0.4200 ± 0.0100 (2)", 2, True)
    assert ours.value == pytest.approx(0.42)
    assert ours.error == pytest.approx(0.01)
    assert cell(found, "Random search", "branin").text == "0.4000 (1)"  # better, but of other runs: not bold
    assert not cell(found, "Random search", "branin").bold
    assert cell(found, "COMBO, printed", "pest-control").text == "12.0012 ± 0.0033 (25)"
    assert cell(found, "best possible", "branin").text == "0.4038"
    assert cell(found, "best possible", "pest-control").text == ""  # not known
    assert any("best *observed* value" in note for note in found.notes)


def test_values_after_some_evaluations_leave_out_problems_that_have_fewer() -> None:
    first, second = (table(tables.everything(three_methods(), [ORIGINAL], [n]), f"value@{n}") for n in (50, 200))
    # the 50th of 100 values from 30 down to 0.5, and to 0.7
    assert cell(first, "carbo, preset paper", "branin").value == pytest.approx(30 + 49 / 99 * (0.6 - 30))
    assert second.keys == ("pest-control",)
    assert not any("printed" in row.label for row in first.rows)


def test_the_distance_from_the_best_possible_compares_different_cases() -> None:
    records = [
        record(CONTAMINATION, "default", run, falling(end, 270), instance={"case_seed": case})
        for run, end, case in ((1, 21.35, 758), (6, 21.28, 1203))  # best possible 21.35 and 21.18
    ]
    shown = arrange(records)
    found = table(tables.everything(shown, [ORIGINAL]), "distance")
    assert cell(found, "carbo, preset default").value == pytest.approx(0.05)
    assert cell(found, "COMBO, printed").value == pytest.approx(21.2752 - 21.236)
    assert any("2 of the 5 cases" in note for note in found.notes)
    # the paper's distance is 0.0392: reached by run 1 at its last evaluation, never by run 6
    assert cell(effort.steps(shown, ORIGINAL), "carbo, preset default").text == ">270 (1/2)"
    assert cell(effort.steps(shown, ORIGINAL), "COMBO, printed mean").text == "21.2752"


def test_evaluations_to_the_papers_value() -> None:
    records = [
        record("branin", "default", run, [5.0] * (at - 1) + [0.41] * (101 - at)) for run, at in ((1, 10), (2, 30))
    ]
    records += [record("branin", "random", run, [5.0] * 100) for run in (1, 2)]
    shown = arrange(records)
    assert cell(effort.steps(shown, ORIGINAL), "carbo, preset default").text == "20 (2/2)"
    assert cell(effort.steps_of_mean(shown, ORIGINAL), "carbo, preset default").text == "30 (2)"
    assert cell(effort.steps(shown, ORIGINAL), "Random search").text == ">100 (0/2)"
    assert cell(effort.steps(shown, ORIGINAL), "Random search").value is None


def test_seconds_are_the_median_of_all_suggestions() -> None:
    records = [
        record("branin", "default", run, falling(1, 100), seconds=[time] * 98) for run, time in ((1, 1.0), (2, 2.0))
    ]
    fast = record("branin", "random", 1, falling(1, 100), seconds=1e-5)
    found = effort.seconds(arrange([*records, fast]), ORIGINAL)
    assert cell(found, "carbo, preset default").value == 1.5
    assert cell(found, "Random search").text == "<0.001"


def test_differences_to_the_default_preset_are_run_by_run() -> None:
    found = tables.differences(three_methods(), ORIGINAL)[0]
    assert [row.label for row in found.rows] == ["carbo, preset paper", "Random search"]
    assert cell(found, "carbo, preset paper", "branin").text == "+0.1800 ± 0.0900 (2)"
    assert cell(found, "Random search", "branin").text == "-0.0100 (1)"


def test_ranks_are_of_methods_with_runs_on_all_problems() -> None:
    shown = arrange([*three_methods().records(), *branin("annealing", {1: 0.1, 2: 0.1})])
    (comparison,) = rankings.comparisons(shown, ORIGINAL)
    assert [version.method for version in comparison.versions] == ["default", "paper", "random"]
    assert [[case.run for case in cases] for cases in comparison.cases] == [[1], [1]]
    assert [version.method for version in comparison.absent] == ["annealing"]
    assert rankings.ranks_at(shown, ORIGINAL, comparison, None) == [1.5, 2.5, 2.0]
    (found,) = rankings.rankings(shown, ORIGINAL)
    assert [row.label for row in found.rows] == ["carbo, preset default", "Random search", "carbo, preset paper"]
    assert [each.text for each in found.rows[0].cells] == ["1.50", "1.50", "1.50", "1.50"]
    assert "problems and shared runs: branin 1, pest-control 1" in found.notes
    assert "left out for want of shared runs: Simulated annealing" in found.notes


def test_without_the_default_preset_the_others_are_ranked_all_the_same() -> None:
    (found,) = rankings.comparisons(arrange(branin("smac", {1: 1.0}) + branin("random", {1: 2.0})), ORIGINAL)
    assert found.problems == ("branin",)


def test_a_problem_that_one_method_alone_was_run_on_does_not_hinder_the_ranking_on_others() -> None:
    records = [record("branin", m, 1, falling(1, 100)) for m in ("default", "random")]
    records.append(record("ising-1e-4", "default", 1, falling(1, 170)))
    assert [found.problems for found in rankings.comparisons(arrange(records), ORIGINAL)] == [("branin",)]


def test_a_variant_of_a_problem_is_ranked_nowhere() -> None:
    records = [record(p, m, 1, falling(1, 100)) for p in ("branin", "branin-published") for m in ("default", "random")]
    assert rankings.comparisons(arrange(records), ORIGINAL)[0].problems == ("branin",)


def test_binary_problems_have_a_ranking_of_their_own_where_more_methods_take_part() -> None:
    records = [record("branin", m, 1, falling(1, 100)) for m in ("default", "random")]
    records += [record("ising-0", m, 1, falling(1, 170)) for m in ("default", "random", "binary-only")]
    found = rankings.comparisons(arrange(records), ORIGINAL)
    assert [(each.what, len(each.versions)) for each in found] == [("all problems", 2), ("binary problems", 3)]


def test_other_families_have_a_ranking_of_their_own() -> None:
    """Methods without runs on them stay in the ranking of the paper's problems."""
    records = [record("branin", m, 1, falling(1, 100)) for m in ("default", "random", "annealing")]
    records += [record("mixed", m, 1, falling(1, 150)) for m in ("default", "random")]
    records += [record("nk", m, 1, falling(1, 200)) for m in ("default", "random", "binary-only")]
    found = [
        (each.what, each.problems, len(each.versions)) for each in rankings.comparisons(arrange(records), ORIGINAL)
    ]
    assert found == [
        ("all problems", ("branin",), 3),
        ("other families", ("nk", "mixed"), 2),
        ("binary ones of other families", ("nk",), 3),
    ]


def test_methods_with_many_runs_are_also_ranked_without_those_with_few() -> None:
    records = branin("default", dict.fromkeys(range(1, 6), 1.0)) + branin("random", dict.fromkeys(range(1, 6), 2.0))
    found = rankings.comparisons(arrange(records + branin("smac", {1: 0.5})), ORIGINAL)
    assert [(len(each.versions), len(each.cases[0])) for each in found] == [(3, 1), (2, 5)]


def test_runs_are_written_as_spans() -> None:
    shown = arrange(branin("default", dict.fromkeys((1, 2, 3, 5, 9, 10), 1.0)))
    assert cell(effort.runs(shown, ORIGINAL), "carbo, preset default").text == "1–3, 5, 9–10"


# --- formats


NASTY = Table("value", "original", "50% of $a_b$ & {c} \\ ~^", ("λ=0", "x|y"),
              (Row("a, \"b\" & c_d", (Cell("-1.5 ± 0.5 (2)", -1.5, 0.5, 2, bold=True), Cell())),
               Row("<0.001", (Cell(">270 (0/2)", None, None, 2), Cell("1–3", 3.0)))), ("a note, 100%",))  # fmt: skip


def test_csv_parses_back() -> None:
    lines = list(csv.DictReader(io.StringIO(formats.comma_separated([NASTY]))))
    assert len(lines) == 3  # a line a cell that says something
    assert lines[0] == {
        "table": "value", "form": "original", "row": 'a, "b" & c_d', "source": "here", "column": "λ=0",
        "value": "-1.5", "standard_error": "0.5", "runs": "2", "text": "-1.5 ± 0.5 (2)",
    }  # fmt: skip
    assert lines[1]["value"] == ""


def test_csv_keeps_numbers_in_full() -> None:
    end = 0.1 + 0.2
    text = formats.comma_separated(tables.everything(arrange(branin("default", {1: end})), FORMS))
    values = [row["value"] for row in csv.DictReader(io.StringIO(text)) if row["table"] == "value"]
    assert float(values[0]) == end


def test_markdown_has_the_same_cells_in_every_line() -> None:
    text = formats.markdown([NASTY, *tables.everything(three_methods(), FORMS)])
    blocks = re.findall(r"(?:^\|.*\|\n)+", text, re.MULTILINE)
    assert len(blocks) == 1 + len(tables.everything(three_methods(), FORMS))
    for block in blocks:
        widths = {len(re.split(r"(?<!\\)\|", each)) for each in block.splitlines()}
        assert len(widths) == 1
    assert "| **-1.5 ± 0.5 (2)** |" in blocks[0]
    assert "- a note, 100%" in text


def unescaped(text: str, sign: str) -> int:
    return len(re.findall(rf"(?<!\\){re.escape(sign)}", text))


@pytest.mark.parametrize("found", [[NASTY], tables.everything(three_methods(), FORMS)], ids=["nasty", "real"])
def test_latex_is_balanced_and_escaped(found: list[Table]) -> None:
    text = formats.latex(found)
    assert unescaped(text, "{") == unescaped(text, "}")
    assert unescaped(text, "$") % 2 == 0
    assert unescaped(text, "_") == unescaped(text, "#") == 0
    assert unescaped(text, "%") == 1  # the comment
    begun, ended = re.findall(r"\\begin{(\w+)}", text), re.findall(r"\\end{(\w+)}", text)
    assert sorted(begun) == sorted(ended) == sorted(["table", "tabular"] * len(found))
    for body, each in zip(re.findall(r"\\toprule(.*?)\\bottomrule", text, re.DOTALL), found, strict=True):
        rows = [row for row in body.replace(r"\midrule", "").split(r"\\") if row.strip()]
        assert len(rows) == 1 + len(each.rows)
        assert {unescaped(row, "&") for row in rows} == {len(each.columns)}
    assert not set(text) & set("±λ−–≤")


# --- what is lost, and the page


def test_a_lost_comparison_is_listed_and_a_won_one_counted() -> None:
    ends = dict.fromkeys(range(1, 6), 0.5)
    better = {run: 0.45 + 0.001 * run for run in ends}
    shown = arrange(branin("default", ends) + branin("smac", better) + branin("random", dict.fromkeys(ends, 0.9)))
    found = losses.against_rivals(shown, ORIGINAL, "default")
    assert [(each.other, each.sign, each.clear) for each in found] == [("Random search", -1, True), ("SMAC3", 1, True)]
    assert [str(each) for each in losses.lost(found)] == [
        "Branin, original: SMAC3 by 0.0470 ± 0.0007 (5 runs), clearly"
    ]
    assert losses.score(found) == (
        "better in 1 of 2 comparisons (clearly in 1), the same in 0, worse in 1 (clearly in 1)"
    )


def test_two_runs_need_more_than_two_standard_errors_to_be_clear() -> None:
    shown = arrange(branin("default", {1: 0.50, 2: 0.50}) + branin("smac", {1: 0.46, 2: 0.48}))
    (verdict,) = losses.against_rivals(shown, ORIGINAL, "default")
    assert verdict.behind.mean == pytest.approx(3 * (verdict.behind.error or 0))
    assert verdict.limit == pytest.approx(12.7062, abs=1e-4)  # Student's t with one degree of freedom
    assert not verdict.clear


@pytest.mark.parametrize(("end", "short"), [(0.4113, False), (0.4136, False), (0.4138, True)])
def test_the_paper_preset_falls_short_beyond_two_standard_errors(end: float, short: bool) -> None:
    # printed 0.4113 ± 0.0012; ours without spread
    shown = arrange(branin("paper", {1: end, 2: end}))
    assert bool(losses.short_of_paper(shown)) == short


def test_the_page_says_how_it_is_made_what_is_lost_and_where_it_comes_from(tmp_path: Path) -> None:
    page, *figures = results_page.write(three_methods(), tmp_path / "docs" / "results.md", figures=False)
    text = page.read_text(encoding="utf-8")
    assert figures == []
    for said in ("python -m lab page", "8 runs of 3 methods on 2 problems", "## What is lost", "cpu an abacus, cores 2",
                 "Branin, original: Random search by 0.0100 (1 run)", "carbo at revision abc123: 8 runs",
                 "![Branin, original](figures/branin-original.png)"):  # fmt: skip
        assert said in text
    assert results_page.render(three_methods()) == text


def test_the_page_says_when_a_preset_has_changed_since_its_runs() -> None:
    now, then = DEFAULT.to_dict(), {**DEFAULT.to_dict(), "patience": 4, "initial": 1}
    for settings, said in (({**now, "initial": 1}, False), (then, True)):
        runs = [record("branin", "default", run, falling(1.0, 100), settings=settings) for run in (2, 4)]
        text = results_page.render(arrange(runs))
        assert (
            "The runs of `default` were made with other settings than those of today: `patience` 4." in text
        ) is said


def test_the_committed_page_is_what_the_committed_results_give() -> None:
    page = ROOT / "docs" / "results.md"
    if not (ROOT / "results" / "runs").is_dir():
        pytest.skip("no results here")
    if being_added() and not page.exists():
        pytest.skip("the first results are not committed yet")
    text = page.read_text(encoding="utf-8")
    last = re.search(r"the last one finished (\S+)\.$", text, re.MULTILINE)
    assert last is not None
    records = read(ROOT / "results")
    if being_added():  # a benchmark is going on: the page is as of its last run
        records = [each for each in records if each.finished <= last[1]]
    assert results_page.render(arrange(records)) == text, "docs/results.md is stale: python -m lab page"


def being_added() -> bool:
    """Whether git sees results that are not committed yet."""
    if shutil.which("git") is None:
        return False
    said = subprocess.run(
        ["git", "-C", str(ROOT), "status", "--porcelain", "--", "results/runs"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return bool(said.stdout.strip())


# --- the commands


def command(*words: str) -> int:
    return cli.main([*words])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "runs").mkdir()
    for each in three_methods().records():
        with (tmp_path / "runs" / f"{each.problem}.jsonl").open("a", encoding="utf-8") as file:
            file.write(line(each))
    return tmp_path


def test_table_prints_what_is_recorded(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command("table", "--results", str(folder)) == 0
    assert capsys.readouterr().out == formats.markdown(tables.everything(three_methods(), FORMS))


def test_table_selects_and_writes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = folder / "out.csv"
    assert command("table", "--results", str(folder), "--problem", "branin", "--method", "default,random",
                   "--at", "20, 50", "--form", "original", "--format", "csv", "--out", str(out)) == 0  # fmt: skip
    lines = list(csv.DictReader(io.StringIO(out.read_text(encoding="utf-8"))))
    assert {row["table"] for row in lines} >= {"value@20", "value@50", "seconds", "runs"}
    assert {row["column"] for row in lines if row["table"] == "runs"} == {"branin"}
    assert {row["row"] for row in lines if row["table"] == "runs"} == {"carbo, preset default", "Random search"}
    assert str(out) in capsys.readouterr().out


def test_page_writes_the_text(folder: Path) -> None:
    assert command("page", "--results", str(folder), "--out", str(folder / "page.md"), "--no-figures") == 0
    assert (folder / "page.md").read_text(encoding="utf-8") == results_page.render(three_methods())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["table", "--results", "{folder}/absent"], "lab run"),
        (["plot", "--results", "{folder}/absent"], "lab run"),
        (["page", "--results", "{folder}/absent"], "lab run"),
        (["table", "--results", "{folder}", "--problem", "ising-0"], "problem: .* branin, pest-control, got 'ising-0'"),
        (["table", "--results", "{folder}", "--method", "x"], "method: .* default, paper, random, got 'x'"),
        (["table", "--results", "{folder}", "--form", "relocated"], "--form: .* got 'relocated'"),
        (["table", "--results", "{folder}", "--budget", "7"], "got runs of 100, 320 evaluations"),
        (["table", "--results", "{folder}", "--out", "{folder}"], "--out: expected a file"),
        (["page", "--results", "{folder}", "--out", "{folder}"], "page .*: expected a file"),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_2(
    folder: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(*(word.format(folder=folder) for word in words)) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert re.search(message, said)


@pytest.mark.parametrize("words", [["--at", "0"], ["--at", "x"], ["--problem", ","], ["--format", "x"]])
def test_wrong_options_end_with_exit_code_2(words: list[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        command("table", *words)
