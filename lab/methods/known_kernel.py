"""The default preset told what no method knows: that the function is a sum of pairs, of one variance, without noise.

So is the cut of a complete graph with random weights. Mean and variance are estimated, and nothing else is left to be
learned but the function: how far this gets is how far the preset's acquisition and search get at best, whatever its
model. Not a rival; asked for by name.
"""

from __future__ import annotations

import dataclasses
from functools import partial

from carbo.settings import DEFAULT, Settings
from carbo.space.space import Space
from lab.methods.base import Method, Strategy
from lab.methods.presets import changed

NAME, TITLE = "default-told", "carbo, preset default told that there are pairs alone"
SETTINGS = dataclasses.replace(DEFAULT, initial=1, highest_order=2, warp="none", adjacent="none", doubt=0.0)


def start(settings: Settings, space: Space, seed: int, budget: int) -> Strategy:
    """One run; the engine is loaded for it, and not when the methods are listed."""
    from lab.methods.known_kernel_model import KnownKernel

    return KnownKernel(settings, space, seed, budget)


def told(changes: str) -> Method:
    """The method, with settings changed as `combo.changed` reads them: "acquisition=kg+patience=0"."""
    name, title = f"{NAME}:{changes}", f"{TITLE}, {changes.replace('+', ', ')}"
    return _method(name, title, changed(SETTINGS, changes, name))


def _method(name: str, title: str, settings: Settings) -> Method:
    return Method(name, title, partial(start, settings), {**settings.to_dict(), "told": "pairs"}, binary_only=True)


TOLD = _method(NAME, TITLE, SETTINGS)
