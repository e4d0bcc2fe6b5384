"""Settings: errors for wrong values, saved settings, and the presets."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from typing import Any

import pytest

import carbo
from carbo import DEFAULT, PAPER, Settings
from carbo.inference.priors import BETA_TAU, Priors, Supports
from carbo.settings import GONE

NAMES = [field.name for field in dataclasses.fields(Settings)]
PRIOR_NAMES = [field.name for field in dataclasses.fields(Priors)]


# ---------------------------------------------------------------- presets


def test_the_paper_preset_is_the_papers() -> None:
    """Supplement B and C as the design's section 5 reads them."""
    assert (PAPER.kernel, PAPER.graph_scale, PAPER.acquisition) == ("product", "published", "ei")
    assert PAPER.sampling[:4] == (10, 100, 1.0, 10)
    assert (PAPER.random_starts, PAPER.spray_starts, PAPER.climbers) == (20_000, 20, 20)
    assert (PAPER.reference, PAPER.leaps, PAPER.replicate) == ("observed", False, False)
    priors = PAPER.priors
    assert (priors.beta, priors.level, BETA_TAU) == ("published", "published", 5.0)
    assert priors.supports.beta == pytest.approx((-12.0, math.log(100.0)))
    assert priors.supports.noise == pytest.approx((-12.0, math.log(1e4)))


def test_presets_are_plain_values_of_one_class() -> None:
    assert type(PAPER) is type(DEFAULT) is Settings
    assert Settings() == DEFAULT != PAPER
    assert hash(PAPER) == hash(dataclasses.replace(PAPER))
    assert DEFAULT.kernel == "orders"
    with pytest.raises(dataclasses.FrozenInstanceError):
        PAPER.samples = 3  # type: ignore[misc]


@pytest.mark.parametrize("settings", [PAPER, DEFAULT], ids=["paper", "default"])
def test_presets_print_every_field_with_its_value(settings: Settings) -> None:
    for name in NAMES:
        assert f"{name}={getattr(settings, name)!r}" in repr(settings)
    scope = {"Settings": Settings, "Priors": Priors, "Supports": Supports}
    assert eval(repr(settings), scope) == settings


def test_every_field_is_explained() -> None:
    text = Settings.__doc__ or ""
    assert [name for name in NAMES if not re.search(rf"\b{name}\b", text)] == []
    text = Priors.__doc__ or ""
    assert [name for name in PRIOR_NAMES if not re.search(rf"\b{name}\b", text)] == []


# ---------------------------------------------------------------- round trips

VARIANTS: list[dict[str, Any]] = [
    {},
    {"samples": 1, "burn_in": 0, "random_starts": 1, "spray_starts": 0, "exhaustive": 0},
    {"acquisition": "ucb", "reference": "observed", "leaps": False},
    {"kernel": "product", "replicate": True, "graph_scale": "published"},
    {"priors": Priors(beta="gamma", supports=Supports(beta=(-3.0, 3.0)), weight_sd=0.25)},
]


@pytest.mark.parametrize("base", [PAPER, DEFAULT], ids=["paper", "default"])
@pytest.mark.parametrize("changes", VARIANTS, ids=lambda v: ", ".join(v) or "none")
def test_settings_survive_json(base: Settings, changes: dict[str, Any]) -> None:
    settings = dataclasses.replace(base, **changes)
    text = json.dumps(settings.to_dict(), allow_nan=False)
    again = Settings.from_dict(json.loads(text))
    assert again == settings
    assert hash(again) == hash(settings), "lists are tuples again"
    assert json.dumps(again.to_dict()) == text
    assert set(settings.to_dict()) == set(NAMES)


def test_missing_fields_take_their_defaults() -> None:
    assert Settings.from_dict({}) == DEFAULT
    assert Settings.from_dict({"samples": 3}) == dataclasses.replace(DEFAULT, samples=3)
    assert Settings.from_dict({"priors": {"beta": "gamma"}}).priors.beta == "gamma"


def test_writing_down_does_not_share() -> None:
    written = PAPER.to_dict()
    written["samples"] = 99
    written["priors"]["beta"] = "gamma"
    assert PAPER.samples == 10
    assert PAPER.priors.beta == "published"


def test_a_function_cannot_be_written_down_and_is_asked_for_again() -> None:
    settings = Settings(acquisition=lambda mu, sd, best: -mu.mean(axis=0))
    written = json.loads(json.dumps(settings.to_dict()))
    assert written["acquisition"] is None
    with pytest.raises(carbo.SettingsError, match=r"acquisition.*function"):
        Settings.from_dict(written)
    assert Settings.from_dict(written | {"acquisition": settings.acquisition}) == settings


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize("name", ["kernels", "sample", "", "Samples", "prior"])
def test_unknown_names_are_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(carbo.SettingsError, match=re.escape(repr(name))) as refused:
        Settings.from_dict({"samples": 3, name: 1})
    assert all(known in str(refused.value) for known in NAMES)


def test_unknown_names_of_priors_are_refused_with_the_known_ones() -> None:
    with pytest.raises(carbo.SettingsError, match="bta") as refused:
        Settings.from_dict({"priors": {"bta": "gamma"}})
    assert all(known in str(refused.value) for known in PRIOR_NAMES)


COUNTS = {
    "highest_order": 1,
    "samples": 1,
    "burn_in": 0,
    "random_starts": 1,
    "spray_starts": 0,
    "climbers": 1,
    "exhaustive": 0,
    "initial": 1,
}


@pytest.mark.parametrize(("name", "least"), COUNTS.items())
def test_counts_are_whole_numbers_of_at_least_this(name: str, least: int) -> None:
    assert getattr(Settings.from_dict({name: least}), name) == least
    for wrong in (least - 1, -5, least + 0.5, 2.0, "2", None, True, math.nan, [2]):
        with pytest.raises(carbo.SettingsError) as refused:
            Settings.from_dict({name: wrong})
        for part in (f"setting {name!r}", "expected", f">= {least}", f"got {wrong!r}"):
            assert part in str(refused.value)


WORDS: dict[str, tuple[str, ...]] = {
    "graph_scale": ("connectivity", "published"),
    "reference": ("observed", "posterior"),
}


@pytest.mark.parametrize(("name", "words"), WORDS.items())
def test_words_are_these_and_the_refusal_lists_them(name: str, words: tuple[str, ...]) -> None:
    for word in words:
        assert getattr(Settings.from_dict({name: word}), name) == word
    for wrong in ("other", words[0].upper(), "", 1, [words[0]]):
        with pytest.raises(carbo.SettingsError) as refused:
            Settings.from_dict({name: wrong})
        assert f"setting {name!r}" in str(refused.value)
        assert f"got {wrong!r}" in str(refused.value)
        assert all(word in str(refused.value) for word in words)


@pytest.mark.parametrize("name", ["leaps", "replicate"])
@pytest.mark.parametrize("wrong", ["no", "False", 2, None, 0.0])
def test_yes_or_no_is_true_or_false(name: str, wrong: Any) -> None:
    """Otherwise the string 'no' would mean yes."""
    with pytest.raises(carbo.SettingsError, match=name):
        Settings.from_dict({name: wrong})


@pytest.mark.parametrize("wrong", ["published", None, 3, ["published"]])
def test_priors_are_priors(wrong: Any) -> None:
    with pytest.raises(carbo.SettingsError, match="priors"):
        Settings.from_dict({"priors": wrong})


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("beta", "horsehoe"),
        ("level", "other"),
        ("weight_sd", -1.0),
        ("noise_scale", "small"),
        ("supports", [[3.0, -3.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]]),
        ("supports", [[-3.0, 3.0], [0.0], [0.0, 1.0], [0.0, 1.0]]),
        ("supports", "wide"),
    ],
)
def test_a_wrong_prior_is_refused_by_name(name: str, wrong: Any) -> None:
    """Otherwise a misspelt word would choose another prior silently."""
    with pytest.raises(carbo.SettingsError, match=name):
        Settings.from_dict({"priors": {name: wrong}})


def test_all_refusals_are_value_errors_of_carbo() -> None:
    assert issubclass(carbo.SettingsError, carbo.CarboError)
    assert issubclass(carbo.SettingsError, ValueError)


@pytest.mark.parametrize("name", [name for name in GONE if "." not in name])
def test_a_deleted_setting_is_said_to_be_deleted(name: str) -> None:
    with pytest.raises(carbo.SettingsError, match=rf"setting '{name}': .* got one that was deleted; leave it out"):
        Settings.from_dict({name: 1})
