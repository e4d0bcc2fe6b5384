"""carbo's presets as methods of the laboratory, also with settings changed, and the paper's COMBO/GM."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from carbo.errors import SettingsError
from carbo.inference.priors import Priors
from carbo.numerics.types import Ints
from carbo.settings import DEFAULT, PAPER, PRESETS, Settings
from carbo.space.space import Space
from lab.methods.base import Method

if TYPE_CHECKING:
    from carbo.surrogate.surrogate import Surrogate


class Carbo:
    """carbo's engine with given settings; `surrogate`: another one than the settings ask for."""

    def __init__(
        self,
        settings: Settings,
        space: Space,
        seed: int,
        budget: int,  # noqa: ARG002
        surrogate: Surrogate | None = None,
    ) -> None:
        from carbo.engine import Engine
        from carbo.surrogate.surrogate import Belief

        self._engine, self._rng = Engine(space.rows, settings, surrogate), np.random.default_rng(seed)
        self._belief, self._repeated = Belief(), False
        self._rows: list[Ints] = []
        self._values: list[float] = []

    def tell(self, row: Ints, value: float) -> None:
        self._rows.append(row)
        self._values.append(value)

    def ask(self) -> Ints:
        from carbo.surrogate.surrogate import Observations

        dim = self._engine.space.dim
        observations = Observations(np.array(self._rows, dtype=np.intp).reshape(-1, dim), np.array(self._values))
        nothing = np.empty((0, dim), dtype=np.intp)
        answer = self._engine.ask(self._rng, self._belief, observations, nothing, repeated=self._repeated)
        self._belief, self._repeated = answer.belief, answer.repeated
        return answer.rows[0]


def _method(name: str, title: str, settings: Settings) -> Method:
    # The laboratory tells the initial points, however few: the optimiser must not draw any of its own.
    settings = dataclasses.replace(settings, initial=1)
    return Method(name, title, partial(Carbo, settings), settings.to_dict(), learns_failures=True)


def _replicating(make: Callable[[Settings], Method], settings: Settings) -> Method:
    """The method; on problems with noisy values it may evaluate a point again, as its users can tell it to."""
    return dataclasses.replace(make(settings), when_noisy=make(dataclasses.replace(settings, replicate=True)))


def replicates(name: str) -> bool:
    """Whether the method of that name, a former one too, may evaluate a point again on noisy problems alone."""
    base, _, changes = name.partition(":")
    return base == "default" and "replicate=" not in changes


def variant(name: str) -> Method:
    """A preset with some settings changed, as `settings_of` reads it. Raises SettingsError for any other name.

    On noisy problems points may be evaluated again, as by the preset itself, unless "replicate" is among the changes.
    "initial" counts in the laboratory too: of the problem's initial points only the first so many are evaluated.
    """
    base, _, changes = name.partition(":")
    settings = settings_of(name)
    make = partial(_variant, name, f"carbo, preset {base} with {changes.replace('+', ', ')}")
    return _replicating(make, settings) if replicates(name) else make(settings)


def _variant(name: str, title: str, settings: Settings) -> Method:
    made = _method(name, title, settings)
    if not any(change.startswith("initial=") for change in name.partition(":")[2].split("+")):
        return made
    count = settings.initial
    return dataclasses.replace(made, settings={**made.settings, "initial": count}, initial=count)


def settings_of(name: str) -> Settings:
    """The settings of a preset, or of one with settings changed: "default:doubt=0.0+priors.weight_sd=3.0".

    Values are read as JSON, or as text where they are no JSON. Raises SettingsError for any other name.
    """
    if name in PRESETS:
        return PRESETS[name]
    base, _, changes = name.partition(":")
    if base not in PRESETS:
        raise _not_a_variant(name)
    return with_changes(PRESETS[base], changes, name)


def with_changes(settings: Settings, changes: str, name: str) -> Settings:
    """Settings with changes such as "doubt=0.0+priors.weight_sd=3.0". SettingsError about `name` for other texts."""
    pairs = [change.partition("=") for change in changes.split("+")]
    if not all(key and equals and value for key, equals, value in pairs):
        raise _not_a_variant(name)
    values: dict[str, Any] = {}
    for key, _, text in pairs:
        room, _, inner = key.rpartition(".")
        (values.setdefault(room, {}) if room else values)[inner] = _value_of(text)
    return settings.changed(values)


def _not_a_variant(name: str) -> SettingsError:
    return SettingsError(f"method: expected a preset with settings changed, such as default:doubt=0.0+warp=none, "
                         f"got {name!r}; the presets are {', '.join(PRESETS)}")  # fmt: skip


def _value_of(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


PAPER_PRESET = _method("paper", "carbo, preset paper", PAPER)
DEFAULT_PRESET = _replicating(partial(_method, "default", "carbo, preset default"), DEFAULT)
PENALISED = dataclasses.replace(
    DEFAULT_PRESET,
    name="default-penalty",
    title="carbo, preset default told a penalty for failures",
    settings={**DEFAULT_PRESET.settings, "failures": "penalty"},
    learns_failures=False,
    when_noisy=None,
)
"""What the model of failures is worth: as the other methods that learn none. Asked for by name."""
COMBO_GM = _method("combo-gm", "COMBO/GM", dataclasses.replace(PAPER, priors=Priors(beta="gamma")))
"""beta ~ Gamma(1, 3): shape 1, rate 3."""
