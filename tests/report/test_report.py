"""The report: one page that parses, asks for nothing, tells the study's own numbers and nobody's secrets."""

from __future__ import annotations

import json
import math
import re
import shutil
import stat
import subprocess
import sys
import webbrowser
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState

import carbo
from carbo import cli
from carbo.integrations.optuna.claims import CLAIM
from carbo.integrations.optuna.evaluations import evaluations
from carbo.kernels import cross
from carbo.report import html, write
from carbo.report import model_data as model_module
from carbo.report.axis import counting, linear, logarithmic, range_to_draw
from carbo.report.model_data import Fitted
from carbo.report.numbers import MINUS, column, figure
from carbo.report.report_data import gather
from carbo.report.secrets import mask_arguments, mask_text
from carbo.report.trials import times_of
from carbo.settings import preset
from carbo.state import belief_from, generator_from
from carbo.surrogate.surrogate import Posterior, Surrogate
from carbo.tune.errors import StudyError
from carbo.tune.reading import of_study
from carbo.tune.storage import public_name
from tests.reports import CHEAP, START, Page, binary, browser, filled, looked_at, study, trial
from tests.tuning import tuned
from tests.tuning import write as write_study

PANELS = {"headline", "convergence", "settings", "relevance", "predictions", "time", "definition", "versions"}
VALUES: list[float | None] = [5.0, None, 7.5, 3.25, 9.0, 3.25, None, 1.125, 4.0, 2.5]
"""Of trials 0 to 9."""
HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)>'


def page(made: optuna.Study, model: bool = False) -> Page:
    text = html(made, model=model)
    found = Page(text)
    assert set(found.ids) >= PANELS
    assert len(found.ids) == len(set(found.ids))
    assert_asks_for_nothing(text, found)
    return found


def assert_asks_for_nothing(text: str, found: Page) -> None:
    """No address, nothing that is loaded, nothing that is run."""
    assert not {tag for tag, _ in found.elements} & {"script", "img", "link", "iframe", "object", "embed", "a", "form"}
    for tag, attributes in found.elements:
        for name, value in attributes.items():
            assert not name.startswith("on"), name
            assert name not in ("src", "srcset", "action", "xlink:href", "background")
            if name == "href":
                assert (tag, (value or "")[:1]) == ("use", "#")
    style = next(text for text in re.findall(r"<style>(.*?)</style>", text, re.DOTALL))
    assert "url(" not in style
    assert "@import" not in style
    assert not re.search(r"https?:", text)


# ---------------------------------------------------------------- numbers


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_the_headline_tells_what_the_trials_say(direction: str) -> None:
    found = page(filled(VALUES, direction))
    known = {number: value for number, value in enumerate(VALUES) if value is not None}
    best = (min if direction == "minimize" else max)(known.values())
    assert found.number("best-value") == best
    assert found.number("best-trial") == next(number for number, value in known.items() if value == best)
    assert found.number("start-value") == 5.0
    assert found.number("improvement") == best - 5.0
    assert found.number("evaluations") == 10
    assert found.number("failed") == 2
    assert found.number("duration") == 9 * 20 + 10
    sign = MINUS if direction == "minimize" else "+"
    assert f"{sign}{abs(best - 5.0) / 5.0 * 100:.3g} %" in found.text("headline")


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_the_table_of_evaluations_holds_every_value_and_the_best_so_far(direction: str) -> None:
    found = page(filled(VALUES, direction))
    rows = found.rows["convergence"][1:]
    assert [row[0] for row in rows] == [str(i) for i in range(10)]
    so_far: float | None = None
    for row, value in zip(rows, VALUES, strict=True):
        if value is None:
            assert row[1:3] == ["failed", "–"]
        else:
            assert row[1:3] == ["done", f"{value:.3f}"]
            so_far = value if so_far is None else (min if direction == "minimize" else max)(so_far, value)
        assert so_far is not None
        assert float(row[3]) == so_far


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_best_settings_are_the_five_best_that_differ_and_what_differs_is_marked(direction: str) -> None:
    made, space = study(direction), binary(3)
    rng = np.random.default_rng(5)
    for number in range(30):
        params = {name: bool(rng.integers(2)) for name in space}
        made.add_trial(trial(number, params, space, float(rng.normal())))
    sign = 1.0 if direction == "minimize" else -1.0
    groups: dict[tuple[Any, ...], list[tuple[float, int]]] = {}
    for each in made.trials:
        assert each.value is not None
        groups.setdefault(tuple(each.params.values()), []).append((sign * each.value, each.number))
    best = sorted((min(group), params) for params, group in groups.items())[:5]

    text = html(made, model=False)
    rows = Page(text).rows["settings"]
    assert [f"trial {number}" in cell for ((_, number), _), cell in zip(best, rows[0][1:], strict=True)] == [True] * 5
    shown = [float(cell.replace(MINUS, "-")) for cell in rows[1][1:]]
    assert shown == pytest.approx([sign * loss for (loss, _), _ in best], abs=1e-3)
    for i, name in enumerate(space):
        row = next(row for row in rows if row[0] == name)
        assert row[1:] == ["true" if params[i] else "false" for _, params in best]
    assert text.count("<mark>") == sum(params[i] != best[0][1][i] for _, params in best[1:] for i in range(len(space)))


def test_a_repeated_setting_is_shown_once_with_its_mean() -> None:
    made, space = study(), binary(1)
    for number, value in enumerate([1.0, 3.5, 2.0, 4.0]):
        made.add_trial(trial(number, {"v0": number < 3}, space, value))
    rows = page(made).rows["settings"]
    assert len(rows[0]) == 3
    assert rows[2][0] == "mean of repeats"
    assert rows[2][1:] == ["2.1667 (3)", "–"]


def test_an_improvement_across_zero_is_told_in_units_not_in_per_cent() -> None:
    found = page(filled([2.0, -1.5]))
    assert f"{MINUS}3.5" in found.text("improvement")
    assert "%" not in found.text("headline")


def test_a_starting_configuration_is_named_as_what_it_is() -> None:
    made, space = study(), binary(1)
    made.add_trial(trial(0, {"v0": True}, space, 4.0, system_attrs={"fixed_params": {"v0": True}}))
    made.add_trial(trial(1, {"v0": False}, space, 3.0))
    assert "starting configuration" in page(made).text("headline")


# ---------------------------------------------------------------- standings and times


def test_only_usable_values_count_as_done() -> None:
    made, space = study(), binary(4)
    params = [{name: bool(n >> i & 1) for i, name in enumerate(space)} for n in range(8)]
    failed, pruned, running = TrialState.FAIL, TrialState.PRUNED, TrialState.RUNNING
    made.add_trial(trial(0, params[0], space, 1.0, system_attrs={"constraints": [0.5]}))
    made.add_trial(trial(1, params[1], space, -math.inf))
    made.add_trial(trial(2, params[2], space, None, state=pruned, intermediate_values={0: -9.0}))
    made.add_trial(trial(3, params[3], space, None, state=failed))
    made.add_trial(trial(4, params[3], space, 5.0, system_attrs={"retry_history": [3]}))
    made.add_trial(trial(5, params[5], space, None, state=running, datetime_complete=None))
    made.add_trial(trial(6, params[6], space, None, state=failed))
    rows = evaluations(made.get_trials(), tuned=False)
    assert [row.standing for row in rows] == ["failed", "failed", "pruned", "abandoned", "done", "running", "failed"]
    assert rows[0].reason == "a constraint was violated"
    assert rows[1].reason == "the value was not finite"
    found = page(made)
    assert (found.number("best-value"), found.number("evaluations"), found.number("failed")) == (5.0, 5, 3)
    assert "1 stopped early, 1 running" in found.text("headline")


def test_times_are_those_of_the_trial_and_what_is_not_known_is_not_made_up() -> None:
    made, space = study(), binary(2)
    params = {"v0": True, "v1": False}
    result = {"carbo:result": {"values": [1.0], "seconds": 7.5}}
    made.add_trial(trial(0, params, space, 1.0))
    made.add_trial(trial(1, params, space, 1.0, user_attrs=result))
    made.add_trial(trial(2, params, space, 1.0, system_attrs={CLAIM: {"point": "", "seconds": 0.5}}))
    made.add_trial(trial(3, params, space, 1.0, system_attrs={CLAIM: {"point": "", "seconds": 0.5}}, user_attrs=result))
    made.add_trial(trial(4, params, space, 1.0, datetime_complete=START))  # another machine's clock
    times = [times_of(row) for row in evaluations(made.get_trials(), tuned=False)]
    assert times[0] == (None, None, 10.0)
    assert times[1] == (None, 7.5, 10.0)
    assert times[2] == (0.5, 9.5, 10.0)
    assert times[3] == (0.5, 7.5, 10.0)
    assert times[4] == (None, None, None)
    found = page(made)
    rows = {row[0]: row[1:] for row in found.rows["time"][1:4]}
    assert rows["suggestion"] == ["2", "0.5 s", "0.5 s", "1 s"]
    assert rows["evaluation"] == ["3", "7.5 s", "9.5 s", "24 s"]
    assert rows["both together"] == ["1", "10 s", "10 s", "10 s"]


def test_reasons_of_failures_are_counted() -> None:
    made, space = study(), binary(3)
    for number in range(7):
        params = {name: bool(number >> i & 1) for i, name in enumerate(space)}
        attributes = {"carbo:reason": "exit code 1" if number < 4 else "timed out\nafter 5 s"}
        made.add_trial(trial(number, params, space, None, user_attrs=attributes))
    said = page(made).text("convergence")
    assert "4 × exit code 1" in said
    assert "3 × timed out after 5 s" in said


# ---------------------------------------------------------------- the model


@pytest.fixture(scope="module", params=["minimize", "maximize"])
def modelled(request: pytest.FixtureRequest) -> tuple[optuna.Study, carbo.Optimizer]:
    """A study with failures, and the engine that has been told of it."""
    rng = np.random.default_rng(1)
    made, space = study(request.param), binary(5)
    for number, bits in enumerate(rng.permutation(32)[:18]):
        params = {name: bool(bits >> i & 1) for i, name in enumerate(space)}
        value = 3.0 * params["v0"] - 2.0 * params["v1"] * params["v2"] + 0.1 * rng.normal()
        made.add_trial(trial(number, params, space, None if number in (4, 9) else 100.0 + value))
    assert isinstance(made.sampler, carbo.CarboSampler)
    return made, made.sampler.optimizer(made)


def looked_at_again(optimizer: carbo.Optimizer) -> Posterior:
    """The posterior that the optimiser predicts from, by the engine's own rooms."""
    state = optimizer.state()
    surrogate, rng = Surrogate(optimizer.space.rows, optimizer.settings), np.random.default_rng(0)
    rng.bit_generator.state = generator_from(state["generator"])
    return surrogate.advance(rng, belief_from(state, surrogate), optimizer.observations, failures=False)[1]


def refitted(optimizer: carbo.Optimizer, keep_it: bool = False) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Each value predicted by a Gaussian process from which it has been removed: one dense solve each.

    keep_it: the broken twin, which forgets to remove it.
    """
    model, view, _ = looked_at_again(optimizer)
    data = view.data
    n, means, variances = len(data.y), [], []
    for hyper in model.hypers:
        K = cross.cross(model.kernel, hyper.scales, np.exp(hyper.log_w), data.X, data.X)
        C = K + math.exp(hyper.log_noise) * np.eye(n)
        mean, variance = np.empty(n), np.empty(n)
        for i in range(n):
            others = [j for j in range(n) if keep_it or j != i]
            weights = np.linalg.solve(C[np.ix_(others, others)], K[others, i])
            mean[i] = hyper.mean + weights @ (data.y[others] - hyper.mean)
            variance[i] = C[i, i] - weights @ K[others, i]
        means.append(mean)
        variances.append(variance)
    return view.scale.moments(np.array(means), np.sqrt(variances))


def test_leave_one_out_in_closed_form_is_refitting_without_each(modelled: tuple[optuna.Study, carbo.Optimizer]) -> None:
    _, optimizer = modelled
    means, sds = optimizer.leave_one_out()
    right, wrong = refitted(optimizer), refitted(optimizer, keep_it=True)
    np.testing.assert_allclose(means, right[0], rtol=1e-6)
    np.testing.assert_allclose(sds, right[1], rtol=1e-6)
    assert not np.allclose(means, wrong[0], rtol=1e-6)


def test_the_page_shows_the_engines_predictions_and_relevance(modelled: tuple[optuna.Study, carbo.Optimizer]) -> None:
    made, optimizer = modelled
    sign = 1.0 if made.direction.name == "MINIMIZE" else -1.0
    means, sds = refitted(optimizer)
    report = gather(of_study(made))
    assert isinstance(report.model, Fitted)
    done = [t for t in made.trials if t.state == TrialState.COMPLETE]
    assert [check.number for check in report.model.checks] == [t.number for t in done]
    assert [check.observed for check in report.model.checks] == [t.value for t in done]
    np.testing.assert_allclose([check.predicted for check in report.model.checks], sign * means, rtol=1e-6)
    np.testing.assert_allclose([check.sd for check in report.model.checks], sds, rtol=1e-5)
    assert report.model.relevance == optimizer.relevance()

    found = page(made, model=True)
    shares = [row for row in found.rows["relevance"] if row[0] in optimizer.space.names]
    assert [row[0] for row in shares] == list(optimizer.relevance().variables)
    values = np.array([t.value for t in done])
    error = np.sqrt(np.mean((values - sign * means) ** 2))
    assert found.number("typical-error") == pytest.approx(error, rel=1e-6)
    assert found.number("explained") == pytest.approx(1 - error**2 / values.var(), rel=1e-6)
    assert found.number("inside") == np.sum(np.abs(values - sign * means) <= model_module.WIDTH * sds)
    assert "leave-one-out" in found.text("predictions")
    assert "orders" in found.ids


def test_what_lies_between_variables_next_to_each_other_is_said_where_the_model_has_it() -> None:
    """Twelve stages, each acting with the next one; in the names' order, which has stage 2 before stage 10."""
    rng = np.random.default_rng(1)
    effects, two = rng.normal(size=(11, 2, 2)), CategoricalDistribution([0, 1])

    def made_of(names: list[str]) -> optuna.Study:
        made, numbers = study(), np.random.default_rng(2)
        for number in range(60):
            x = numbers.integers(0, 2, 12).tolist()
            value = float(sum(effects[i, x[i], x[i + 1]] for i in range(11)))
            made.add_trial(trial(number, dict(zip(names, x, strict=True)), dict.fromkeys(names, two), value))
        return made

    sentence = "between variables next to each other"
    assert sentence in page(made_of([f"stage {i}" for i in range(12)]), model=True).text("relevance")
    mixed = [f"stage {i}" for i in (0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11)]
    assert sentence not in page(made_of(mixed), model=True).text("relevance")


def test_parameters_that_only_some_trials_have_are_named_as_outside_the_model() -> None:
    made = study()
    always, sometimes = CategoricalDistribution(["a", "b", "c"]), IntDistribution(1, 9)
    for number in range(8):
        params: dict[str, Any] = {"always": "abc"[number % 3]}
        params |= {"sometimes": number + 1} if number % 2 else {}
        space = {"always": always, "sometimes": sometimes}
        made.add_trial(trial(number, params, {name: space[name] for name in params}, float(number % 5)))
    said = page(made, model=True)
    assert "not every trial had them: sometimes" in said.text("relevance")
    assert "From 8 evaluations only" in said.text("relevance")
    assert "1 to 9" in said.text("definition")


# ---------------------------------------------------------------- few, many, odd


def odd_studies() -> dict[str, Callable[[], optuna.Study]]:
    def nothing() -> optuna.Study:
        return study()

    def unevaluated() -> optuna.Study:
        made = study()
        made.enqueue_trial({"x": 1})
        return made

    return {
        "no trials": nothing,
        "one waiting": unevaluated,
        "one": lambda: filled([3.0]),
        "two": lambda: filled([3.0, 2.0], "maximize"),
        "one failure": lambda: filled([None]),
        "all failed": lambda: filled([None] * 6),
        "one success": lambda: filled([None, None, 2.0]),
        "constant": lambda: filled([1.5] * 9),
        "zeros": lambda: filled([0.0] * 3),
        "largest": lambda: filled([1.7e308, -1.7e308, 0.0, 1e300]),
        "smallest": lambda: filled([5e-324, 1e-320, 0.0]),
        "an outlier": lambda: filled([*map(float, range(14)), 1e9], "minimize"),
        "whole and large": lambda: filled([123456789012.0, 123456789013.0, 2.0]),
    }


@pytest.mark.parametrize("name", odd_studies())
def test_odd_studies_have_a_page_with_every_panel(name: str) -> None:
    found = page(odd_studies()[name](), model=True)
    assert "nan" not in found.text("headline").lower().split()
    numbers = [value for _, attrs in found.elements for key, value in attrs.items() if key in ("cx", "cy", "x1", "y1")]
    assert all(0 <= float((value or "x").removesuffix("%")) <= 100 for value in numbers)


def test_equal_values_say_nothing_about_relevance() -> None:
    assert "All values are equal" in page(filled([1.5] * 9), model=True).text("relevance")


def test_an_outlier_does_not_flatten_the_chart_and_is_marked() -> None:
    found = page(filled([*map(float, range(14)), 1e9]))
    assert "beyond the axis (1)" in found.text("convergence")
    assert "1e9" not in [text for ids, text in found.texts if "convergence" in ids and text == "1e9"]


def test_hundreds_of_trials_of_sixty_variables_with_long_names() -> None:
    made, rng = study(), np.random.default_rng(0)
    space = {f"a_rather_long_name_of_a_variable_{i}_{'x' * 80}": CategoricalDistribution([0, 1]) for i in range(60)}
    for number in range(300):
        params = {name: int(rng.integers(2)) for name in space}
        made.add_trial(trial(number, params, space, None if number % 10 == 3 else float(rng.normal())))
    text = html(made, model=False)
    found = Page(text)
    assert len(text) < 1_000_000
    assert found.number("evaluations") == 300
    assert len([row for row in found.rows["settings"] if row[0].startswith("a_rather")]) == 60
    assert "45 more variables" in found.text("settings")


def test_a_study_of_two_objectives_is_refused() -> None:
    with pytest.raises(StudyError, match="expected one objective, got 2"):
        html(optuna.create_study(directions=["minimize", "minimize"]))


# ---------------------------------------------------------------- hostile text and secrets


def test_hostile_names_choices_and_reasons_are_text_and_nothing_else() -> None:
    made = study(name=HOSTILE)
    odd = "line\nbreak\u202e\x00"
    choices = [HOSTILE, "'", '"', "&amp;", odd, "", " x "]
    space = {HOSTILE: CategoricalDistribution(choices), odd: FloatDistribution(0, 1)}
    for number, choice in enumerate(choices):
        made.add_trial(trial(number, {HOSTILE: choice, odd: number / 10}, space, float(number)))
    made.add_trial(trial(7, {HOSTILE: "'", odd: 0.9}, space, None, user_attrs={"carbo:reason": HOSTILE}))
    found = page(made, model=True)
    for panel in ("headline", "convergence", "settings", "relevance", "definition"):
        assert HOSTILE in found.text(panel), panel
    assert "&amp;" in found.text("settings")
    assert "line\\nbreak\\u202e\\x00" in found.text("definition")
    assert not set("\x00\u202e") & set(found.text())


def test_text_that_is_no_unicode_can_still_be_written(tmp_path: Path) -> None:
    made = study(name="broken \ud800 name")
    assert Page(write(made, tmp_path / "r.html", model=False).read_text(encoding="utf-8")).text("headline")


SECRET = "hunter2"


@pytest.mark.parametrize(
    "arguments",
    [
        ["prog", f"--db=postgresql://me:{SECRET}@host/db"],
        ["prog", f"--db=postgresql://me:{SECRET}/@x@host/db"],
        ["prog", f"https://{SECRET}@host/x.git"],
        ["prog", "--password", SECRET],
        ["prog", f"--password={SECRET}"],
        ["prog", f"--db-passwd={SECRET}"],
        ["prog", "--api-key", SECRET],
        ["prog", f"API_KEY={SECRET}"],
        ["prog", "--auth-token", SECRET],
        ["prog", f"TOKEN={SECRET}"],
        ["prog", "-H", f"Authorization: Bearer {SECRET}"],
        ["prog", f'{{"secret": "{SECRET}", "x": 1}}'],
    ],
)
def test_what_looks_like_a_secret_is_hidden(arguments: list[str]) -> None:
    assert SECRET not in mask_arguments(arguments)
    assert SECRET not in mask_text(" ".join(arguments))
    assert "***" in mask_arguments(arguments)


@pytest.mark.parametrize(
    "line", ["gcc -O2 --passes=3 -fkeep {level}", "train --max-tokens=100 --monkey=2", "run --password={choice} x@y"]
)
def test_what_is_no_secret_is_left_alone(line: str) -> None:
    assert mask_text(line) == line
    assert mask_arguments(line.split()) == line


@pytest.mark.parametrize(
    ("url", "said"),
    [
        (f"postgresql://me:{SECRET}@db.example/tuning", "PostgreSQL, tuning"),
        (f"postgresql+psycopg://me:{SECRET}@h/t?password={SECRET}", "PostgreSQL, t"),
        (f"mysql+pymysql://me:{SECRET}@h", "MySQL"),
        ("sqlite:////home/me/private/study.db", "SQLite, study.db"),
    ],
)
def test_a_database_is_told_by_kind_and_name_alone(url: str, said: str) -> None:
    assert public_name(url) == said


# ---------------------------------------------------------------- writing


def test_a_page_replaces_an_older_page_and_nothing_else(tmp_path: Path) -> None:
    made, out = filled([1.0]), tmp_path / "report.html"
    write(made, out, model=False)
    out.chmod(0o640)
    made.add_trial(trial(1, {f"v{i}": i == 0 for i in range(4)}, binary(4), 0.5))
    write(made, out, model=False)
    assert Page(out.read_text(encoding="utf-8")).number("best-value") == 0.5
    assert stat.S_IMODE(out.stat().st_mode) == 0o640
    for other in ("", "<html>mine</html>"):
        out.write_text(other)
        with pytest.raises(StudyError, match="expected nothing or an older carbo report"):
            write(made, out, model=False)
        assert out.read_text() == other
    write(made, out, model=False, force=True)
    assert Page(out.read_text(encoding="utf-8")).number("best-value") == 0.5


def test_a_page_that_cannot_be_put_in_place_leaves_the_old_one_and_no_rubbish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "report.html"
    write(filled([1.0]), out, model=False)
    before = out.read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(StudyError, match="got: No space left on device"):
        write(filled([2.0]), out, model=False)
    assert out.read_bytes() == before
    assert list(tmp_path.iterdir()) == [out]


def test_a_page_goes_to_where_a_link_points(tmp_path: Path) -> None:
    (tmp_path / "link.html").symlink_to(tmp_path / "real.html")
    write(filled([1.0]), tmp_path / "link.html", model=False)
    assert (tmp_path / "link.html").is_symlink()
    assert Page((tmp_path / "real.html").read_text(encoding="utf-8")).number("best-value") == 1.0


# ---------------------------------------------------------------- the command


SCRIPT = 'if [ "$2" = x ]; then echo "cannot reach postgresql://u:hunter2@h/d" >&2; exit 4; fi\necho $(( $1 * $3 ))\n'
STARTS = "".join(f"[[start]]\na = {a}\nb = '{b}'\nc = true\nd = 9\n" for a, b in ((7, "y"), (3, "x"), (4, "z")))


@pytest.fixture(scope="module")
def tuned_study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study that `carbo tune` has run: 7 × 9, a failure, 4 × 9, and three more."""
    folder = tmp_path_factory.mktemp("tuned")
    path = write_study(folder, SCRIPT, 'budget = 6\nname = "times"\nconstraints = ["a < d"]', STARTS)
    text = path.read_text().replace('"{c}"]', f'"{{c}}", "--password", "{SECRET}"]')
    path.write_text(text)
    tuned(path)
    return path


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = cli.main(["report", *map(str, arguments)])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_the_command_writes_the_page_of_a_study_file(
    tuned_study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "page.html"
    code, said, _ = run(capsys, tuned_study, "--out", out, "--json", "--no-model")
    told = json.loads(said)
    found = Page(out.read_text(encoding="utf-8"))
    assert (code, told["report"], told["study"], told["evaluations"]) == (0, str(out), "times", 6)
    assert found.number("best-value") == told["best"]["value"] <= 36
    assert found.number("best-trial") == told["best"]["trial"]
    assert found.number("start-value") == 63
    assert found.number("failed") == told["failed"] >= 1
    assert "over the starting configuration" in found.text("headline")
    assert "budget 6" in found.text("headline")
    assert "a < d" in found.text("definition")
    assert "/bin/sh run.sh {a} {b} {d} {c} --password ***" in found.text("definition")
    assert "/bin/sh run.sh" in found.text("settings")
    assert "stderr ends: cannot reach postgresql://***@h/d" in found.text("convergence")
    assert "SQLite, study.db" in found.text("definition")
    assert SECRET not in out.read_text(encoding="utf-8")
    assert str(tuned_study.parent) not in out.read_text(encoding="utf-8")
    assert "suggestion" in found.text("time")


def test_the_command_reads_a_storage_and_agrees_with_carbo_relevance(
    tuned_study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("carbo.integrations.optuna.sampler.resolve", lambda *_: preset("default").changed(CHEAP))
    monkeypatch.chdir(tmp_path)
    code, said, _ = run(capsys, tuned_study.with_suffix(".db"), "--study", "times")
    assert (code, said.count("\n")) == (0, 1)
    assert said.startswith("report.html: times, 6 evaluations, best ")
    cli.main(["relevance", str(tuned_study), "--json"])
    shares = json.loads(capsys.readouterr().out)["variables"]
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert len(shares) == 4
    assert all(f'<data value="{share["mean"]!r}">' in text for share in shares.values())


def test_the_command_reads_a_study_of_another_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"sqlite:///{tmp_path / 'mine.db'}"
    made = optuna.create_study(storage=url, study_name="mine", direction="maximize")
    for number, value in enumerate([1.0, 4.0, None]):
        made.add_trial(trial(number, {"v0": number > 0}, binary(1), value))
    optuna.create_study(storage=url, study_name="other")
    shown: list[str] = []

    def no_browser(address: str) -> bool:
        shown.append(address)
        return False

    monkeypatch.setattr(webbrowser, "open", no_browser)
    out = tmp_path / "r.html"
    code, _, said = run(capsys, url, "--study", "mine", "--out", out, "--no-model", "--open")
    found = Page(out.read_text(encoding="utf-8"))
    assert (code, found.number("best-value"), found.number("failed")) == (0, 4.0, 1)
    assert "a program" in found.text("definition")
    assert shown == [out.as_uri()]
    assert "no browser could be started" in said


@pytest.fixture(scope="module")
def two_studies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A storage with a study of one objective and one of two."""
    path = tmp_path_factory.mktemp("storage") / "two.db"
    optuna.create_study(storage=f"sqlite:///{path}", study_name="one")
    optuna.create_study(storage=f"sqlite:///{path}", study_name="two", directions=["minimize", "maximize"])
    return path


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["missing.toml"], "expected a study file"),
        (["missing.db"], "expected a database, got no such file"),
        (["two.db"], "expected one study, got one, two; name one with --study"),
        (["two.db", "--study", "tow"], "did you mean 'two'?"),
        (["two.db", "--study", "one", "--out", "."], "expected a file, got a directory"),
        (["two.db", "--study", "one", "--out", "nowhere/r.html"], "expected a directory to write into"),
        (["two.db", "--study", "one", "--out", "two.db"], "pass --force"),
        (["two.db", "--study", "two"], "expected one objective, got 2"),
        (["postgresql://me:hunter2@127.0.0.1:1/x"], "postgresql"),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_2(
    arguments: list[str],
    said: str,
    two_studies: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(two_studies, tmp_path)
    code, out, error = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert said in error
    assert error.startswith("carbo: ")
    assert error.count("\n") == 1
    assert SECRET not in error
    assert [path.name for path in tmp_path.iterdir()] == ["two.db"]


def test_without_optuna_one_line_says_what_to_install() -> None:
    program = "import sys; sys.modules['optuna'] = None; from carbo.cli import main; sys.exit(main(['report', 'x.db']))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "pip install 'carbo[tune]'" in done.stderr


# ---------------------------------------------------------------- numbers and axes


@given(st.floats(allow_nan=False, allow_infinity=False))
@example(0.1 + 0.2)
@example(-1e15)
def test_a_figure_is_the_number_to_six_digits(value: float) -> None:
    text = figure(value).replace(MINUS, "-").replace(",", "")
    assert float(text) == pytest.approx(value, rel=5.1e-6)
    assert len(figure(value)) <= 22


def test_figures_say_no_more_than_they_know() -> None:
    assert [figure(v) for v in (0.30000000000000004, 1234567.0, -0.5, 1e-9, 2.5e12, 1234.5678)] == [
        "0.3", "1,234,567", f"{MINUS}0.5", "1e-9".replace("-", MINUS), "2,500,000,000,000", "1,234.57",
    ]  # fmt: skip
    assert column([7.0594, 7.1, 12.0]) == ["7.059", "7.100", "12.000"]
    assert column([3.0, 12.0]) == ["3", "12"]


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
@example(-1.7e308, 1.7e308)
@example(-2.2e-309, 3e15)
@example(1.7e308, 1.7e308)
@example(1e16, 1e16 + 2)
def test_an_axis_holds_its_values_between_ticks_in_order(one: float, two: float) -> None:
    low, high = sorted((one, two))
    axis = linear(low, high)
    assert axis.low <= low <= high <= axis.high
    assert list(axis.ticks) == sorted(set(axis.ticks))
    assert 2 <= len(axis.ticks) <= 9
    assert 0 <= axis.place(low) <= axis.place(high) <= 100
    assert len(axis.labels) == len(axis.ticks)


@given(st.integers(0, 5000), st.integers(0, 5000))
def test_an_axis_of_trials_has_whole_ticks_among_them(first: int, more: int) -> None:
    axis = counting(first, first + more)
    assert all(tick.is_integer() and first <= tick <= first + more for tick in axis.ticks)
    assert len(axis.ticks) <= 8
    assert 0 < axis.place(first) <= axis.place(first + more) < 100


@pytest.mark.parametrize(
    ("low", "high", "labels"),
    [
        (31.2e6, 44e6, ("30M", "35M", "40M", "45M")),
        (-2e9, 3.9e9, (f"{MINUS}2G", "0", "2G", "4G")),
        (0.0, 900_000.0, ("0", "200,000", "400,000", "600,000", "800,000", "1,000,000")),
        (31_787_000.0, 31_787_900.0, ("31.787M", "31.7872M", "31.7874M", "31.7876M", "31.7878M", "31.788M")),
    ],
)
def test_large_numbers_on_an_axis_are_in_millions_and_more(low: float, high: float, labels: tuple[str, ...]) -> None:
    assert linear(low, high, 5).labels == labels


def test_labels_side_by_side_are_left_out_evenly_where_they_would_touch() -> None:
    axis = linear(31_787_000.0, 31_787_900.0, 5)
    assert axis.thinned(60) == axis
    assert axis.thinned(32).labels == ("31.787M", "31.7874M", "31.7878M")
    assert axis.thinned(1).labels == ("31.787M",)


def test_an_axis_of_seconds_goes_by_powers_of_ten() -> None:
    axis = logarithmic(0.02, 47.0)
    assert axis.labels == ("10 ms", "100 ms", "1 s", "10 s", "100 s")
    assert axis.place(1.0) == pytest.approx(50.0)


def test_a_range_leaves_out_what_is_far_off_on_the_worse_side_only() -> None:
    values = [*map(float, range(20)), 1e6]
    assert range_to_draw(values, "minimize") == (0.0, 19.0)
    assert range_to_draw(values, "maximize") == (0.0, 1e6)
    assert range_to_draw([1.0, 1e6], "minimize") == (1.0, 1e6)


# ---------------------------------------------------------------- to be seen


def luminance(colour: str) -> float:
    """WCAG 2.2's relative luminance of #rrggbb."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, two: str) -> float:
    dark, light = sorted((luminance(one), luminance(two)))
    return (light + 0.05) / (dark + 0.05)


def test_text_and_marks_stand_out_in_light_dark_and_print() -> None:
    style = files("carbo.report").joinpath("style.css").read_text(encoding="utf-8")
    blocks = re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    schemes = [dict(re.findall(r"--(\w+): (#\w{6})", block)) for block in blocks]
    assert len(schemes) == 3
    for colours in schemes:
        for ground in ("paper", "sheet"):
            for text in ("ink", "quiet", "strong", "failure"):
                assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
        assert contrast(colours["ink"], colours["differs"]) >= 4.5
        for mark in ("strong", "dots", "failure", "second"):
            assert contrast(colours[mark], colours["paper"]) >= 3.0, mark
    assert contrast("#ffffff", "#000000") == pytest.approx(21.0)


def test_charts_are_told_in_words_too() -> None:
    made = filled([3.0, 2.0, 4.0, None, 1.0])
    found = page(made, model=True)
    charts = [attrs for tag, attrs in found.elements if tag == "svg" and attrs.get("role") == "img"]
    assert len(charts) == 3
    for chart in charts:
        for name in (chart["aria-labelledby"] or "").split():
            assert found.text(name).strip()
    others = [attrs for tag, attrs in found.elements if tag == "svg" and attrs.get("role") != "img"]
    assert all(attrs.get("aria-hidden") == "true" for attrs in others)
    assert "from 3 at trial 0 to 1 at trial 4; 1 failed" in found.text("convergence-told")
    for panel in ("convergence", "predictions", "time"):
        assert "as a table" in found.text(panel)


def test_a_browser_shows_the_page_at_both_widths_without_asking_for_anything(tmp_path: Path) -> None:
    program = browser()
    if program is None:
        pytest.skip("no Chromium: install Debian's package chromium to check the page in a browser")
    write(filled([*map(float, range(15, 0, -1)), None]), tmp_path / "plain.html")
    made = study(name="W" * 120)
    space = {"x" * 120: CategoricalDistribution(["y" * 90, HOSTILE, *map(str, range(30))]), **binary(30)}
    for number in range(12):
        params: dict[str, Any] = {name: bool(number >> i & 1) for i, name in enumerate(binary(30))}
        choice = ["y" * 90, HOSTILE, "3"][number % 3]
        reason = {"carbo:reason": "z" * 200}
        made.add_trial(trial(number, {"x" * 120: choice, **params}, space, None if number == 5 else -1e300 * number,
                             user_attrs=reason))  # fmt: skip
    write(made, tmp_path / "wide.html")
    policy = "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; style-src 'unsafe-inline'\">"
    (tmp_path / "control.html").write_text(
        f'<!DOCTYPE html><head>{policy}</head><body><p style="width:2000px">x</p><img src="http://127.0.0.1:9/x"></body>'
    )
    frames = [(name, width) for name in ("plain.html", "wide.html") for width in (1280, 390)]
    seen, console = looked_at(program, tmp_path, [*frames, ("control.html", 390)])
    *pages, control = seen
    assert [(each["page"], each["given"]) for each in pages] == frames
    for each in pages:
        assert each["needed"] <= each["width"] <= each["given"], each
        assert (each["outside"], each["requests"], each["sections"]) == ([], [], 6), each
        assert each["dots"] >= 11
    # The control overflows, asks for something and complains: the checks above can fail.
    assert control["needed"] > control["width"]
    assert control["outside"] == ["P"]
    assert control["requests"] == ["http://127.0.0.1:9/x"]
    assert len(console) == 1
    assert "control.html" in console[0]
