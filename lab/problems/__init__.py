"""The laboratory's problems: those of the paper, random ones that need no download, and families of other kinds.

>>> ising = problem("ising-1e-2", run=1)
>>> values = [ising.evaluate(params) for params in ising.initial()]
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from carbo.errors import SettingsError
from lab.problems.ackley import ackley53
from lab.problems.assignment import assignment
from lab.problems.base import LAMBDAS, Problem, Relocated
from lab.problems.branin import branin
from lab.problems.colouring import colouring
from lab.problems.contamination import contamination
from lab.problems.ehrlich import SHAPES, ehrlich
from lab.problems.feature_selection import feature_selection
from lab.problems.flags import flags
from lab.problems.ising import ising
from lab.problems.knapsack import knapsack
from lab.problems.labs import labs
from lab.problems.maxsat import FILES, RAW, STANDARDISED, maxsat, paper_maxsat, random_maxcut, random_maxsat
from lab.problems.measured import TABLES, known_table
from lab.problems.mixed import mixed
from lab.problems.nas import nas
from lab.problems.nk import nk
from lab.problems.pest_control import pest_control
from lab.problems.quantised import quantised
from lab.problems.rna import rna
from lab.problems.seeds import GROUP, RUNS, check_run
from lab.problems.sparse import sparse
from lab.problems.sparse_categories import sparse_categories
from lab.problems.third_order import third_order


class Folders(NamedTuple):
    """Folders with files that some problems need."""

    data: str | Path | None = None
    """Downloaded files: .wcnf, CIFAR-10, measured tables."""
    trained: str | Path | None = None
    """The folder where architecture searches keep accuracies of trained networks."""


Builder = Callable[[int, Folders], Problem]
"""A function from a run in 1..25 and the folders to the problem of that run."""


def _without_data(make: Callable[[int], Problem]) -> Builder:
    return lambda run, _folders: make(run)


def _random_case(make: Callable[[int, int], Problem]) -> Builder:
    """A random problem with five instances of five starts each, like the paper's cases."""
    return lambda run, _folders: make((check_run(run) - 1) // GROUP, run)


def _own_case(make: Callable[[int, int], Problem]) -> Builder:
    """An instance for each run: odd runs are to choose by, even ones to report."""
    return lambda run, _folders: make(check_run(run), run)


def _measured(name: str) -> Builder:
    return lambda run, folders: known_table(name, run, folders.data)


def _from_folder(name: str, weights: str) -> Builder:
    return lambda run, folders: paper_maxsat(name, run, folders.data, weights)


def _search(data: str) -> Builder:
    return lambda run, folders: nas(data, run, *folders)


PROBLEMS: dict[str, Builder] = {
    **{f"ising-{text}": _without_data(partial(ising, lam=lam)) for text, lam in LAMBDAS.items()},
    **{f"contamination-{text}": _without_data(partial(contamination, lam=lam)) for text, lam in LAMBDAS.items()},
    "branin": _without_data(branin),
    "branin-published": _without_data(partial(branin, graph="published")),
    "pest-control": _without_data(pest_control),
    "pest-control-fixed": _without_data(partial(pest_control, variant="fixed")),
    "pest-control-path": _without_data(partial(pest_control, graph="path")),
    **{name: _from_folder(name, STANDARDISED) for name in FILES},
    **{f"{name}-raw": _from_folder(name, RAW) for name in FILES},
    "maxcut-random": _random_case(random_maxcut),
    "maxsat-random": _random_case(random_maxsat),
    **{f"sparse-{matter}": _random_case(partial(sparse, matter)) for matter in (3, 8, 40)},
    "nk": _random_case(nk),
    "labs": _without_data(labs),
    "assignment": _random_case(assignment),
    "mixed": _random_case(mixed),
    "knapsack": _random_case(knapsack),
    **{name: _measured(name) for name in TABLES},
    "sparse-categories": _own_case(sparse_categories),
    "flags": _own_case(flags),
    "quantised": _own_case(quantised),
    **{shape.name: _own_case(partial(ehrlich, shape)) for shape in SHAPES},
    "ackley53": _without_data(ackley53),
    "feature-selection": _own_case(feature_selection),
    "rna": _without_data(rna),
    "third-order": _own_case(third_order),
    "graph-colouring": _own_case(colouring),
    "nas-digits": _search("digits"),
    "nas-cifar10": _search("cifar10"),
}
"""Every problem by its name; use `problem` to build one."""


def problem(name: str, run: int, data: str | Path | None = None, trained: str | Path | None = None) -> Problem:
    """The problem of that name as it is in a run, 1..25, of the paper.

    data: the folder of downloaded files: .wcnf for the MaxSAT problems of the paper (names in `FILES`, and with
    "-raw"), CIFAR-10 for "nas-cifar10", measured tables for those in `TABLES`.
    trained: a folder where architecture searches keep accuracies and look them up.
    SettingsError on an unknown name or run; DataError when a file is missing or malformed.
    """
    if name not in PROBLEMS:
        close = difflib.get_close_matches(str(name), PROBLEMS, n=1)
        meant = f"; did you mean {close[0]!r}?" if close else "; choose one of these"
        raise SettingsError(f"problem: expected one of {', '.join(PROBLEMS)}, got {name!r}{meant}")
    return PROBLEMS[name](run, Folders(data, trained))


__all__ = [
    "FILES",
    "PROBLEMS",
    "RUNS",
    "SHAPES",
    "TABLES",
    "Problem",
    "Relocated",
    "ackley53",
    "assignment",
    "branin",
    "colouring",
    "contamination",
    "ehrlich",
    "feature_selection",
    "flags",
    "ising",
    "knapsack",
    "labs",
    "maxsat",
    "mixed",
    "nas",
    "nk",
    "pest_control",
    "problem",
    "quantised",
    "random_maxcut",
    "random_maxsat",
    "rna",
    "sparse",
    "sparse_categories",
    "third_order",
]
