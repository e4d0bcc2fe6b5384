"""The laboratory's methods: carbo's presets and their rivals, all with the same two methods, tell and ask.

>>> run = method("annealing").start(space, seed, evaluations)
>>> run.tell(row, value)  # the initial points first
>>> row = run.ask()
"""

from __future__ import annotations

import difflib
import importlib.metadata
from collections.abc import Iterable

from carbo.errors import SettingsError
from lab.methods.annealing import ANNEALING
from lab.methods.base import Method, Start, Strategy
from lab.methods.bocs import BOCS_SA3, BOCS_SDP
from lab.methods.evolution import EVOLUTION
from lab.methods.genetic import GENETIC
from lab.methods.hyperopt_tpe import TPE_HYPEROPT
from lab.methods.known_kernel import KNOWN_KERNEL
from lab.methods.known_kernel import variant as known_kernel_variant
from lab.methods.optuna_gp import GP
from lab.methods.optuna_tpe import TPE
from lab.methods.presets import COMBO_GM, DEFAULT_PRESET, PAPER_PRESET, PENALISED, variant
from lab.methods.random_search import RANDOM
from lab.methods.smac import SMAC

METHODS: dict[str, Method] = {
    entry.name: entry
    for entry in (
        RANDOM,
        ANNEALING,
        EVOLUTION,
        GENETIC,
        TPE_HYPEROPT,
        TPE,
        SMAC,
        GP,
        PAPER_PRESET,
        DEFAULT_PRESET,
        KNOWN_KERNEL,
        PENALISED,
        COMBO_GM,
        BOCS_SDP,
        BOCS_SA3,
    )
}
"""Every method by its name; use `method` to get one."""


NOT_IN_EXTRA = {
    ("bench", "torch"): "pip install torch, in the build (CPU or CUDA) that suits the machine",
    ("nas", "ViennaRNA"): "pip install ViennaRNA",
}


def method(name: str) -> Method:
    """The method of that name, or a preset with settings changed, such as "default:warp=none+doubt=0.0".

    SettingsError when there is no such method, or when a package that it needs is missing.
    """
    base, colon, changes = str(name).partition(":")
    if colon:
        return known_kernel_variant(changes) if base == KNOWN_KERNEL.name else variant(name)
    if name not in METHODS:
        close = difflib.get_close_matches(str(name), METHODS, n=1)
        meant = f"; did you mean {close[0]!r}?" if close else "; choose one of these"
        raise SettingsError(f"method: expected one of {', '.join(METHODS)}, got {name!r}{meant}")
    found = METHODS[name]
    require(f"method {name!r}", found.packages)
    return found


def require(who: str, packages: Iterable[str], extra: str = "bench") -> None:
    """Raise SettingsError with the first of these packages that is not installed; `who` needs them."""
    for package in packages:
        if not _installed(package):
            way_out = NOT_IN_EXTRA.get((extra, package), f"pip install 'carbo[{extra}]'")
            raise SettingsError(f"{who}: expected the package {package} to be installed, got none; {way_out}")


def _installed(distribution: str) -> bool:
    try:
        importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


__all__ = ["METHODS", "Method", "Start", "Strategy", "method", "require"]
