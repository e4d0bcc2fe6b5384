"""The default preset with a kernel that is known: the function is a sum over pairs of one variance, without noise.

The cut of a complete graph with random weights is such a function. Only its mean and variance are estimated. The method
shows how well the preset's acquisition and search can do with the best possible model. It is no rival, and is run only
when it is asked for by name.
"""

from __future__ import annotations

import dataclasses
from functools import partial

from carbo.settings import DEFAULT, Settings
from carbo.space.space import Space
from lab.methods.base import Method, Strategy
from lab.methods.presets import with_changes

NAME, TITLE = "default-told", "carbo, preset default with a known kernel"
SETTINGS = dataclasses.replace(DEFAULT, initial=1, highest_order=2, warp="none", adjacent="none", doubt=0.0)


def _start(settings: Settings, space: Space, seed: int, budget: int) -> Strategy:
    """One run. The engine is imported here, so that methods can be listed without it."""
    from lab.methods.known_kernel_model import KnownKernel

    return KnownKernel(settings, space, seed, budget)


def variant(changes: str) -> Method:
    """The method with settings changed, as `presets.with_changes` reads them: "acquisition=kg+doubt=0.0"."""
    name, title = f"{NAME}:{changes}", f"{TITLE}, {changes.replace('+', ', ')}"
    return _method(name, title, with_changes(SETTINGS, changes, name))


def _method(name: str, title: str, settings: Settings) -> Method:
    return Method(name, title, partial(_start, settings), {**settings.to_dict(), "told": "pairs"}, binary_only=True)


KNOWN_KERNEL = _method(NAME, TITLE, SETTINGS)
