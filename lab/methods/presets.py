"""This package's own presets as methods of the laboratory, and the paper's ablation with a Gamma prior (COMBO/GM)."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from functools import partial
from typing import Any

from carbo.errors import SettingsError
from carbo.inference.priors import Priors
from carbo.numerics.types import Ints
from carbo.settings import DEFAULT, PAPER, PRESETS, Settings
from carbo.space.space import Space
from lab.methods.base import Method
from lab.methods.designs import spread

NEWER: dict[str, Any] = {"warp": "none", "adjacent": "none", "patience": 0, "doubt": 0.0}
"""Settings that the first records do not name, with the value that makes suggestions as they were then."""
SPREAD = "design=spread"
LIMITS, LONGEST = ("learn_from", "predict_from"), 400
"""Settings that change nothing where there are fewer evaluations; and more than any problem's budget."""


class Carbo:
    """`carbo.Optimizer` with given settings."""

    def __init__(self, settings: Settings, space: Space, seed: int, budget: int) -> None:  # noqa: ARG002
        from carbo.optimizer import Optimizer

        self._space = space
        self._optimizer = Optimizer(space, seed=seed, settings=settings)

    def tell(self, row: Ints, value: float) -> None:
        self._optimizer.tell(self._space.decode(row), value)

    def ask(self) -> Ints:
        return self._space.encode(self._optimizer.ask())


def _method(name: str, title: str, settings: Settings) -> Method:
    # The laboratory tells the initial points, however few: the optimiser is not to draw more of its own.
    told = dataclasses.replace(settings, initial=1)
    return Method(name, title, partial(Carbo, told), recorded(told), learns_failures=True)


def _replicating(make: Callable[[Settings], Method], settings: Settings) -> Method:
    """The method, which may evaluate a point again where values are noisy, as its users can tell it to."""
    return dataclasses.replace(make(settings), noisy=make(dataclasses.replace(settings, replicate=True)))


def recorded(settings: Settings) -> dict[str, Any]:
    """The settings as records hold them: what is newer than the first records is left out where it changes nothing."""

    def matters(key: str, value: Any) -> bool:
        if key in LIMITS:
            return value is not None and value < LONGEST
        return key not in NEWER or value != NEWER[key]

    return {key: value for key, value in settings.to_dict().items() if matters(key, value)}


def variant(name: str) -> Method:
    """A preset with some settings changed, as `settings_of` reads it. Raises SettingsError when name is none such.

    On noisy problems points may be evaluated again, as by the preset itself, unless "replicate" is among the changes.
    "initial" counts in the laboratory too: of the problem's initial points only the first so many are evaluated; or,
    with "design=spread", as many points that are far from each other.
    """
    base, _, text = name.partition(":")
    changes = text.split("+")
    kept = [change for change in changes if change != SPREAD]
    settings = settings_of(f"{base}:{'+'.join(kept)}" if kept else base)
    make = partial(_variant, name, f"carbo, preset {base} with {', '.join(changes)}", changes)
    said = base != DEFAULT_PRESET.name or any(change.startswith("replicate=") for change in changes)
    return make(settings) if said else _replicating(make, settings)


def _variant(name: str, title: str, changes: list[str], settings: Settings) -> Method:
    made = _method(name, title, settings)
    count = settings.initial if any(change.startswith("initial=") for change in changes) else None
    told: dict[str, Any] = {**made.settings, **({} if count is None else {"initial": count})}
    if SPREAD in changes:
        return dataclasses.replace(made, settings={**told, "design": "spread"}, design=partial(_spread, count))
    return made if count is None else dataclasses.replace(made, settings=told, design=partial(_first, count))


def _first(count: int, space: Space, given: Ints, run: int) -> Ints:  # noqa: ARG001
    if count > len(given):
        raise SettingsError(f"initial: expected at most the problem's {len(given)} initial points, got {count}; "
                            "with design=spread there may be more")  # fmt: skip
    return given[:count]


def _spread(count: int | None, space: Space, given: Ints, run: int) -> Ints:
    return spread(space, len(given) if count is None else count, run)


def settings_of(name: str) -> Settings:
    """Of a preset, or of one with some settings changed: "default:patience=0+priors.weight_sd=3.0".

    Values are read as JSON where they are some, and as text otherwise. Raises SettingsError when name is none such.
    """
    if name in PRESETS:
        return PRESETS[name]
    base, _, changes = name.partition(":")
    if base not in PRESETS:
        raise _unread(name)
    return changed(PRESETS[base], changes, name)


def changed(settings: Settings, changes: str, name: str) -> Settings:
    """Settings with "patience=0+priors.weight_sd=3.0" changed. SettingsError, about `name`, when they cannot be."""
    pairs = [change.partition("=") for change in changes.split("+")]
    if not all(key and equals and value for key, equals, value in pairs):
        raise _unread(name)
    values: dict[str, Any] = {}
    for key, _, text in pairs:
        room, _, inner = key.rpartition(".")
        (values.setdefault(room, {}) if room else values)[inner] = _read(text)
    return settings.changed(values)


def _unread(name: str) -> SettingsError:
    return SettingsError(f"method: expected a preset with settings changed, such as default:patience=0+warp=none, "
                         f"got {name!r}; the presets are {', '.join(PRESETS)}")  # fmt: skip


def _read(text: str) -> Any:
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
    noisy=None,
)
"""What the model of failures is worth: as the other methods that learn none. Asked for by name."""
COMBO_GM = _method("combo-gm", "COMBO/GM", dataclasses.replace(PAPER, priors=Priors(beta="gamma")))
"""beta ~ Gamma(1, 3): shape 1, rate 3."""
