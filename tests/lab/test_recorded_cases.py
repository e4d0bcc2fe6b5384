"""`python -m lab foresight`, `ascent` and `choice`: told the beginning of a run, and how what they say is judged."""

from __future__ import annotations

import dataclasses
import itertools
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from carbo import Binary, Space
from carbo.acquisition.policy import Request, remaining_rows
from carbo.errors import DataError, SettingsError
from carbo.inference.outcome import Scale, standardise
from carbo.numerics.types import Floats, Ints
from carbo.settings import PRESETS
from carbo.space.row_space import row_keys
from carbo.surrogate.surrogate import Belief, Observations, Surrogate
from lab import cli, problems
from lab.measure import acquisition_search, final_choice, prediction, recorded_cases
from lab.methods.presets import settings_of
from lab.problems import Problem
from lab.runs.record import Record, line
from tests.checks import assert_plausible, assert_rejected
from tests.records import record

CHEAP = "samples=2+burn_in=5+warp=none"


@pytest.fixture
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """The preset with a model drawn in no time."""
    quick = {"samples": 2, "burn_in": 5, "warp": "none"}
    monkeypatch.setitem(PRESETS, "default", PRESETS["default"].changed(quick))


def model_of(mu: Floats, sd: Floats, noise: float) -> Any:
    """Something that predicts mu and sd (S, N) wherever it is asked."""
    hypers = [SimpleNamespace(log_noise=float(np.log(noise)))] * len(mu)
    return SimpleNamespace(predict=lambda _rows: (mu, sd), hypers=hypers)


def mixture(v: float, mu: Floats, spread: Floats, scale: Scale) -> tuple[float, float]:
    """Density and distribution function at v of the value whose y is a mixture of normals; the slope is numerical."""
    step = 1e-6 * scale.size * scale.unit
    low, middle, high = (float(scale.transform(np.array([v + by]))[0][0]) for by in (-step, 0.0, step))
    parts = stats.norm(mu, spread)
    density, below = (float(np.mean(each(middle))) for each in (parts.pdf, parts.cdf))
    return density * (high - low) / (2 * step), below


@pytest.mark.parametrize("multiple", [None, 2.0])
def test_predictions_are_judged_as_densities_of_the_values(multiple: float | None) -> None:
    rng = np.random.default_rng(0)
    told = 100.0 * rng.exponential(size=40) - 7.0
    _, scale = standardise(told, multiple)
    mu, sd, noise = rng.normal(size=(3, 25)), rng.uniform(0.2, 1.0, size=(3, 25)), 0.09
    values = scale.size * scale.value(rng.normal(size=25))
    found = prediction.judge(model_of(mu, sd, noise), scale, told, np.zeros((25, 1), dtype=np.intp), values)
    each = [mixture(v, mu[:, i], np.sqrt(sd[:, i] ** 2 + noise), scale) for i, v in enumerate(values.tolist())]
    plain = stats.norm(told.mean(), told.std()).logpdf(values) + 0.5 * np.log(2 * np.pi)
    log_density = np.log([density for density, _ in each]) + 0.5 * np.log(2 * np.pi)
    assert found["gain"] == pytest.approx(float(np.mean(log_density - plain)), rel=1e-4)
    below = np.array([below for _, below in each])
    assert found["within50"] == np.mean((below > 0.25) & (below < 0.75))
    assert found["within90"] == np.mean((below > 0.05) & (below < 0.95))


def coverage_p_values(stretch: float) -> dict[str, float]:
    """Of intervals whose spread is `stretch` times the true one, against 50 % and 90 %."""
    rng, n = np.random.default_rng(1), 4_000
    mu, sd = rng.normal(size=(1, n)), rng.uniform(0.1, 2.0, size=(1, n))
    values = mu[0] + sd[0] * rng.normal(size=n)
    found = prediction.judge(
        model_of(mu, stretch * sd, 1e-12), Scale(1.0, 0.0, 1.0), values, np.zeros((n, 1), dtype=np.intp), values
    )
    return {
        f"{share}": float(stats.binomtest(round(found[f"within{share}"] * n), n, share / 100).pvalue)
        for share in (50, 90)
    }


def test_true_predictions_cover_what_they_say_and_overconfident_ones_do_not() -> None:
    assert_plausible(coverage_p_values(1.0))
    assert_rejected(coverage_p_values(0.8))


def some_run(n: int = 30, **fields: Any) -> Record:
    """Random evaluations of a function of six binary variables that a model can learn."""
    rng = np.random.default_rng(fields.get("run", 1))
    rows = rng.integers(0, 2, size=(n, 6))
    values = rows @ np.arange(6.0) + 3.0 * rows[:, 0] * rows[:, 1]
    return record(values=values.tolist(), rows=rows, sizes=(2,) * 6, **{"method": "random", **fields})


def six(_: Record) -> Problem:
    """A problem over six binary variables, for the sake of its space."""
    space = Space({f"x{i}": Binary() for i in range(6)})
    return dataclasses.replace(problems.problem("branin", 1), space=space)


def test_runs_are_cut_where_they_are_long_enough_and_relabelled_ones_are_left_out() -> None:
    every = recorded_cases.cases([some_run(30), some_run(19, run=2), some_run(30, relocated=1)], [10, 20], 10)
    assert [(case.record.run, case.observations) for case in every] == [(1, 10), (1, 20)]


@pytest.mark.parametrize("model", [f"default:{CHEAP}", f"default:{CHEAP}@mode", f"paper:{CHEAP}"])
def test_a_model_that_has_learned_gains_on_one_that_only_knows_the_spread(model: str) -> None:
    found = prediction.foreseen(recorded_cases.Case(some_run(50), 40, 10), model, six(some_run()).space)
    assert found["gain"] > 0.5
    assert found["error"] < 0.5
    assert len(found["seconds"]) == 2


def test_cases_in_the_file_are_not_measured_again(tmp_path: Path) -> None:
    out, models = tmp_path / "new" / "foresight.jsonl", [f"default:{CHEAP}", f"default:{CHEAP}+highest_order=1"]
    every = recorded_cases.cases([some_run(), some_run(run=2)], [20], 5)
    first = list(recorded_cases.run(prediction.experiment(models[:1]), every, out, six))
    assert [(each["run"], each["model"]) for each in first] == [(1, models[0]), (2, models[0])]
    more = list(recorded_cases.run(prediction.experiment(models), every, out, six))
    assert [(each["run"], each["model"]) for each in more] == [(1, models[1]), (2, models[1])]
    assert list(recorded_cases.run(prediction.experiment(models), every, out, six)) == []
    assert recorded_cases.read(out) == first + more


def test_changed_settings_of_a_name_are_another_version() -> None:
    names = ["default", "default@mode", "default:highest_order=2", "default:highest_order=2@mode"]
    assert len({prediction.version(name) for name in names}) == len(names)


def measured(model: str, run: int, gain: float) -> dict[str, Any]:
    case = recorded_cases.Case(some_run(run=run), 20, 5).name
    judged = {"version": "v", "gain": gain, "within50": 0.5, "within90": 0.9, "error": 0.1, "seconds": [2.0, 1.0]}
    return {**case, "model": model, **judged}


def test_the_table_compares_on_the_cases_that_all_models_have() -> None:
    lines = [measured("a", 1, 1.0), measured("a", 2, 2.0), measured("a", 3, 99.0), measured("b", 1, 0.5),
             measured("b", 2, 2.5)]  # fmt: skip
    table = prediction.table(lines, ["a", "b"])
    assert "2 cases" in table.title
    assert [row.cells[0].value for row in table.rows] == [1.5, 1.5]
    assert table.rows[0].cells[1].text == ""
    assert table.rows[1].cells[1].text == "+0.000 ± 0.500"
    assert table.rows[1].cells[2].text == "1 : 1"
    with pytest.raises(DataError, match="expected cases that all of a, c"):
        prediction.table(lines, ["a", "c"])


@pytest.mark.parametrize("text", ["no JSON", "[]", '{"problem": "x"}'])
def test_a_damaged_line_is_named(text: str, tmp_path: Path) -> None:
    file = tmp_path / "foresight.jsonl"
    file.write_text(json.dumps(measured("a", 1, 1.0)) + "\n" + text + "\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"foresight\.jsonl:2: expected a line of"):
        recorded_cases.read(file)


def exhaustive(case: recorded_cases.Case, space: Space) -> float:
    """The largest log EI of any point not yet told, under the model that `ascent` draws."""
    n, settings, rng = case.observations, settings_of("default"), np.random.default_rng(case.record.run)
    told = Observations(case.record.rows[:n], case.record.values[:n])
    _, posterior = Surrogate(space.rows, settings).advance(rng, Belief(), told)
    best = told.X[int(np.argmin(told.values))]
    request = Request(space.rows, settings, posterior.model, set(row_keys(told.X)), best, None)
    return float(request.objective.score(remaining_rows(request)).max())


@pytest.mark.usefixtures("cheap")
def test_no_search_exceeds_the_maximum_and_all_reach_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """With forty rounds instead of seconds, which no machine repeats."""

    def forty_rounds(_begin: float, _limit: float) -> acquisition_search.Stop:
        rounds = itertools.count()
        return lambda: next(rounds) / 40

    monkeypatch.setattr(acquisition_search, "_until", forty_rounds)
    names = ["local", "genetic", "annealing", "climbers=1+random_starts=5"]
    for run in (1, 2, 3):
        case = recorded_cases.Case(some_run(30, run=run), 20, 5)
        found = {line["model"]: line["height"] for line in acquisition_search.measure(case, names, six(case.record))}
        top = exhaustive(case, six(case.record).space)
        assert list(found) == names
        assert max(found.values()) <= top + 1e-9
        for name in ("local", "genetic", "annealing"):
            assert found[name] == pytest.approx(top, abs=1e-9)


@pytest.mark.usefixtures("cheap")
def test_a_case_of_which_something_is_missing_is_measured_whole(tmp_path: Path) -> None:
    """Heights only compare where they were reached on one model, in the same seconds."""
    out, every = tmp_path / "acquisition_search.jsonl", recorded_cases.cases([some_run()], [20], 5)
    quick, both = (
        acquisition_search.experiment(["climbers=1", "genetic"]),
        acquisition_search.experiment(["local", "genetic"]),
    )
    for experiment, again in ((quick, 2), (quick, 0), (both, 2), (quick, 0), (both, 0)):
        assert len(list(recorded_cases.run(experiment, every, out, six))) == again
    lines = recorded_cases.read(out)
    assert len(lines) == 4  # genetic search in the seconds of either
    for experiment in (quick, both):
        mine = [
            line
            for line in lines
            if recorded_cases.key_of(line) in {experiment.key(every[0], n) for n in experiment.names}
        ]
        assert [line["model"] for line in mine] == list(experiment.names)
    text = out.read_text(encoding="utf-8").splitlines()
    out.write_text("\n".join(text[1:]) + "\n", encoding="utf-8")
    assert len(list(recorded_cases.run(quick, every, out, six))) == 2


def test_predictions_of_a_changed_preset_are_not_taken_for_those_of_the_present_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, every = tmp_path / "foresight.jsonl", recorded_cases.cases([some_run()], [20], 5)
    quick = PRESETS["default"].changed({"samples": 2, "burn_in": 5, "warp": "none"})
    for preset, again in ((quick, 1), (quick, 0), (quick.changed({"highest_order": 1}), 1)):
        monkeypatch.setitem(PRESETS, "default", preset)
        assert len(list(recorded_cases.run(prediction.experiment(["default"]), every, out, six))) == again


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: acquisition_search.experiment(["genetic", "local"]), "expected first one that ends by itself"),
        (
            lambda: acquisition_search.experiment(["local", "genetc"]),
            "search 'genetc': expected local, genetic, annealing",
        ),
        (lambda: acquisition_search.experiment(["local", "acquisition=ucb"]), "'acquisition=ucb': expected local"),
        (lambda: acquisition_search.experiment(["local", "climbers=0"]), "'climbers': expected a whole number"),
        (lambda: prediction.experiment(["default", "paper@mode"]), "model 'paper@mode': expected a preset of kernel"),
        (lambda: prediction.experiment(["defalt"]), "got 'defalt'"),
    ],
)
def test_wrong_names_are_refused_before_anything_is_measured(make: Any, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        make()


def test_searches_are_compared_with_the_highest_of_each_case() -> None:
    heights = {"a": (1.0, 2.0), "b": (0.5, 2.0)}
    lines = [{**recorded_cases.Case(some_run(run=run), 20, 5).name, "model": name, "version": "v", "height": height,
              "seconds": 1.0}
             for name, each in heights.items() for run, height in enumerate(each, 1)]  # fmt: skip
    rows = {row.label: row.cells for row in acquisition_search.table(lines, ["a", "b"]).rows}
    assert [rows[name][0].value for name in "ab"] == [0.0, 0.25]
    assert [rows[name][1].text for name in "ab"] == ["100%", "50%"]
    with pytest.raises(DataError, match="expected cases that all of a, c"):
        acquisition_search.table(lines, ["a", "c"])


# -- what to take in the end -----------------------------------------------------------------------------------------


NOISE = 0.5


class Coin:
    """1 for the first variable, 0 without it, and noise of half that size, from a stream of its own."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(5)

    def __call__(self, row: Ints) -> float:
        return float(row[0]) + NOISE * self.rng.normal()


@pytest.mark.usefixtures("cheap")
def test_choices_are_worth_their_mean_and_luck_is_not_taken_for_it() -> None:
    problem = dataclasses.replace(six(some_run()), objective=Coin(), noisy=True)
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 2, size=(60, 6))
    told = record("coin", values=[problem.objective(row) for row in rows], rows=rows, sizes=(2,) * 6)
    found = {
        line["model"]: line
        for line in final_choice.measure(recorded_cases.Case(told, 60, 0), final_choice.WAYS, problem)
    }
    assert found["best"]["promised"] == told.values.min()
    luckiest = rows[int(np.argmin(told.values))]
    error = 6.0 * NOISE / np.sqrt(final_choice.DRAWS)  # of a mean: exceeded once in 500 million
    assert abs(found["best"]["true"] - luckiest[0]) < error < 0.2
    assert found["best"]["promised"] < found["recommend"]["promised"]
    assert abs(found["recommend"]["true"]) < error  # 60 evaluations tell a difference of twice the noise


@pytest.mark.usefixtures("cheap")
def test_worth_is_drawn_from_numbers_that_the_run_has_not_seen() -> None:
    problem = problems.problem("pest-control", 1)
    rows = problem.space.random_rows(np.random.default_rng(0), 12)
    told = record("pest-control", values=[problem.objective(row) for row in rows], rows=rows, sizes=(5,) * 25)
    goes_on = [problem.objective(rows[int(np.argmin(told.values))]) for _ in range(final_choice.DRAWS)]
    found = next(
        iter(final_choice.measure(recorded_cases.Case(told, 12, 0), ["best"], problems.problem("pest-control", 1)))
    )
    assert found["true"] == pytest.approx(float(np.mean(goes_on)), abs=1e-12)


def test_a_choice_on_a_problem_without_noise_is_refused() -> None:
    with pytest.raises(DataError, match="expected a noisy problem"):
        list(final_choice.measure(recorded_cases.Case(some_run(), 20, 0), final_choice.WAYS, six(some_run())))


def test_both_choices_are_shown_side_by_side() -> None:
    lines = [{**recorded_cases.Case(some_run(run=run), 20, 5).name, "model": way, "version": "v", "true": true,
              "promised": 0.0}
             for run, both in enumerate([(3.0, 1.0), (4.0, 4.0)], 1)
             for way, true in zip(final_choice.WAYS, both, strict=True)]  # fmt: skip
    best, recommended = final_choice.table(lines, final_choice.WAYS).rows
    assert (best.cells[1].value, recommended.cells[1].value) == (3.5, 2.5)
    assert recommended.cells[2].text == "-1.000 ± 1.000"


def branin_run(folder: Path) -> None:
    """Forty random evaluations of ordinal Branin, on file."""
    problem = problems.problem("branin", 1)
    rows = problem.space.random_rows(np.random.default_rng(0), 40)
    values = [problem.objective(row) for row in rows]
    kept = record("branin", "random", 1, values, rows=rows, sizes=tuple(problem.space.sizes.tolist()))
    (folder / "runs").mkdir()
    (folder / "runs" / "branin.jsonl").write_text(line(kept), encoding="utf-8")


@pytest.mark.usefixtures("cheap")
def test_the_command_measures_and_prints_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    branin_run(tmp_path)
    asked = ["foresight", "--results", str(tmp_path), "--by", "random", "--observations", "20", "--ahead", "10",
             "--out", str(tmp_path / "out.jsonl"), "--model", f"default:{CHEAP},default:{CHEAP}@mode"]  # fmt: skip
    assert cli.main(asked) == 0
    out, err = capsys.readouterr()
    assert "Foresight over 1 cases" in out
    assert f"| default:{CHEAP}@mode |" in out
    assert "1 cases of" in err
    climb = ["ascent", *asked[1:7], "--out", str(tmp_path / "acquisition_search.jsonl"), "--search", "local,genetic"]
    assert cli.main(climb) == 0
    assert "Ascent over 1 cases" in capsys.readouterr().out
    taken = ["choice", *asked[1:7], "--out", str(tmp_path / "choice.jsonl"), "--problem", "branin"]
    assert cli.main(taken) == 2
    assert "branin: expected a noisy problem" in capsys.readouterr().err
    assert cli.main([*asked, "--runs", "7"]) == 2
    assert "expected runs 7 by random" in capsys.readouterr().err
    assert cli.main([*asked, "--runs", "9-7"]) == 2
    assert "runs: expected numbers from 1 to 25 such as" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        cli.main([*asked, "--observations", "x"])
    assert "--observations: expected a whole number >= 1, got 'x'" in capsys.readouterr().err
