"""RNA inverse folding: which 76 bases fold into the clover leaf of transfer RNA (of phenylalanine, in yeast).

Objective: the number of base pairs that the fold of least free energy has and the target has not, or the other way
round; ViennaRNA folds. Whole numbers; 0 is reached.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

from carbo.errors import SettingsError
from carbo.numerics.types import Ints
from carbo.space.space import Space
from carbo.space.variables import Categorical
from lab.problems.base import Problem, random_design
from lab.problems.seeds import check_run, single_seed

TAG = "carbo_RNA"
TARGET = "(((((((..((((........)))).((((.........)))).....(((((.......))))))))))))...."
BASES = "ACGU"
BUDGET, INITIAL = 200, 10


@dataclass(frozen=True)
class Distance:
    """The objective."""

    target: str

    def __call__(self, row: Ints) -> float:
        try:
            vienna = import_module("RNA")
        except ImportError:
            raise SettingsError("rna: expected the package ViennaRNA to be installed, got none; "
                                "pip install ViennaRNA") from None  # fmt: skip
        structure, _energy = vienna.fold("".join(BASES[base] for base in row.tolist()))
        return float(len(pairs(structure) ^ pairs(self.target)))


def pairs(structure: str) -> set[tuple[int, int]]:
    """The base pairs of a structure in dots and brackets."""
    opened: list[int] = []
    found = set()
    for place, sign in enumerate(structure):
        if sign == "(":
            opened.append(place)
        elif sign == ")":
            found.add((opened.pop(), place))
    return found


def rna(run: int) -> Problem:
    """The search. There is one instance: a run decides where to start; relocated, what each base is called."""
    space = Space({f"base{i}": Categorical(list(BASES)) for i in range(1, len(TARGET) + 1)})
    return Problem(
        name="rna",
        run=check_run(run),
        space=space,
        budget=BUDGET,
        objective=Distance(TARGET),
        design=random_design(TAG, space, INITIAL),
        optimum=0.0,
        instance={"target": TARGET, "start_seed": single_seed(TAG, run)},
        packages=("ViennaRNA",),
    )
