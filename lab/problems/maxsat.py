"""Weighted maximum satisfiability, of a formula from a file, or of a random formula or graph.

Notation
    x       (V,) truth values
    sat     (C,) 1 where x satisfies the clause
    w       (C,) weights

Objective: -sum w sat. The paper standardises w (float32) by its mean and population standard deviation. Some weights
are then negative, and the best point may differ from that of the raw weights.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from carbo.errors import DataError, SettingsError
from carbo.numerics.types import Ints
from lab.problems.base import Problem, binaries, check_choice, random_design
from lab.problems.seeds import MAXSAT, check_run, check_seed, single_seed
from lab.problems.wcnf import Clause, Formula, read

BUDGET = 270
STANDARDISED, RAW = "standardised", "raw"
ENUMERABLE = 20
"""The optimum of random instances is found by listing all points, up to this many variables."""
FILES = {
    "maxsat28": "maxcut-johnson8-2-4.clq.wcnf",
    "maxsat43": "maxcut-hamming8-2.clq.wcnf",
    "maxsat60": "frb-frb10-6-4.wcnf",
}
SOURCE = "the MaxSAT Evaluation 2018, weighted track (https://maxsat-evaluations.github.io/2018/benchmarks.html)"
OPTIMA: dict[str, dict[str, tuple[float, str]]] = {
    "1b1788ed97e64726": {STANDARDISED: (-38.162170, "full search"), RAW: (-2048.0, "full search")},
    "9600239d9bfe7ca3": {STANDARDISED: (-92.740295, "best known"), RAW: (-7891.0, "best known")},
    "ec7c64de9fe3f87d": {STANDARDISED: (-195.652710, "proved"), RAW: (-38928.0, "proved")},
}
"""fingerprint of the formula -> weights -> least value and how it is known, for maxsat28, 43 and 60.

The last one: standardised, only its unit clauses weigh less than 0, and the all-false point violates just these; raw,
it is a largest independent set of a graph with ten cliques, and one of ten vertices exists.
"""


@dataclass(frozen=True, eq=False)
class Clauses:
    """The objective: offset - sum w sat, summed in the precision of w (float32 repeats the published values)."""

    variable: Ints
    """(C, L) the variable of each literal; 0 in unused places."""
    wanted: Ints
    """(C, L) the value that satisfies each literal; -1 in unused places, which no value equals."""
    w: NDArray[np.floating[Any]]
    offset: float = 0.0

    def __call__(self, row: Ints) -> float:
        sat = np.any(row[self.variable] == self.wanted, axis=1)
        return self.offset - float(np.sum(self.w * sat))


def clauses(formula: Formula, w: NDArray[np.floating[Any]], offset: float = 0.0) -> Clauses:
    """The objective of a formula whose clauses weigh w (C,)."""
    width = max(map(len, formula.clauses))
    padded = np.array([clause + (0,) * (width - len(clause)) for clause in formula.clauses], dtype=np.intp)
    wanted = np.where(padded > 0, 1, np.where(padded < 0, 0, -1))
    return Clauses(np.maximum(np.abs(padded) - 1, 0), wanted, w, offset)


def standardise(weights: tuple[float, ...]) -> NDArray[np.float32]:
    """Weights minus their mean, over their population standard deviation. DataError when they are all the same."""
    w = np.array(weights, dtype=np.float32)
    spread = w.std()
    if not spread > 0:
        raise DataError(f"weights: expected some that differ, got {len(w)} times {weights[0]:g}; "
                        'use weights="raw"')  # fmt: skip
    return np.asarray((w - w.mean()) / spread, dtype=np.float32)


def maxsat(path: str | Path, run: int, weights: str = STANDARDISED) -> Problem:
    """The weighted MaxSAT problem of a .wcnf file. DataError when the file is missing, malformed or has hard clauses.

    The optimum is known for the paper's three formulas, whatever the names of their files.
    """
    check_choice("weights", weights, (STANDARDISED, RAW))
    formula = read(path)
    w = standardise(formula.weights) if weights == STANDARDISED else np.array(formula.weights)
    optimum, how = OPTIMA.get(formula.fingerprint(), {}).get(weights, (None, "unknown"))
    name = f"maxsat-{Path(path).stem}" + "-raw" * (weights == RAW)
    instance = {"file": Path(path).name, "formula": formula.fingerprint(), "weights": weights, "optimum": how}
    return _problem(name, run, formula, clauses(formula, w), optimum, instance)


def paper_maxsat(name: str, run: int, data: str | Path | None, weights: str = STANDARDISED) -> Problem:
    """One of the paper's three problems, from its file in the folder `data`. DataError when the file is missing."""
    file = FILES[name]
    if data is None or not (Path(data) / file).is_file():
        got = "no folder" if data is None else f"{data} without it"
        raise DataError(f"{name}: expected a folder with {file}, got {got}; download the file from {SOURCE}")
    return replace(maxsat(Path(data) / file, run, weights), name=name + "-raw" * (weights == RAW))


def random_maxcut(seed: int, run: int = 1, nodes: int = 20, density: float = 0.5) -> Problem:
    """Weighted MaxCut of a random graph: minus the weight of the edges between the two sides.

    Each pair of nodes is an edge with probability `density`, its weight a whole number from 1 to 10. The optimum is
    given up to ENUMERABLE nodes.
    """
    if nodes < 2 or not 0 < density <= 1:
        raise SettingsError(f"random_maxcut: expected nodes >= 2 and density in (0, 1], got nodes={nodes} and "
                            f"density={density}; for example 20 and 0.5")  # fmt: skip
    rng = np.random.default_rng(check_seed(seed))
    pairs = np.argwhere(np.triu(rng.random((nodes, nodes)) < density, k=1)) + 1
    if len(pairs) == 0:
        raise SettingsError(f"random_maxcut: expected a graph with edges, got none for seed={seed}, nodes={nodes} and "
                            f"density={density}; raise the density")  # fmt: skip
    weights = rng.integers(1, 11, size=len(pairs)).astype(np.float64)
    # a cut edge satisfies both of its clauses, any other edge one of them
    both: tuple[Clause, ...] = tuple((s * u, s * v) for u, v in pairs.tolist() for s in (1, -1))
    formula = Formula(nodes, both, tuple(np.repeat(weights, 2).tolist()))
    instance = {"seed": seed, "nodes": nodes, "density": density, "edges": len(pairs)}
    return _random("maxcut-random", run, formula, float(weights.sum()), instance)


def random_maxsat(seed: int, run: int = 1, variables: int = 20, clause_count: int = 85, width: int = 3) -> Problem:
    """A random weighted MaxSAT problem: `width` distinct variables in each clause, signs by coin, weights 1 to 10.

    The optimum is given up to ENUMERABLE variables.
    """
    if not 1 <= width <= variables or clause_count < 1:
        raise SettingsError(f"random_maxsat: expected 1 <= width <= variables and clause_count >= 1, got "
                            f"width={width}, variables={variables} and clause_count={clause_count}; for example "
                            "3, 20 and 85")  # fmt: skip
    rng = np.random.default_rng(check_seed(seed))
    drawn: tuple[Clause, ...] = tuple(
        tuple((rng.choice([-1, 1], size=width) * (1 + rng.permutation(variables)[:width])).tolist())
        for _ in range(clause_count)
    )
    formula = Formula(variables, drawn, tuple(rng.integers(1, 11, size=clause_count).astype(float).tolist()))
    instance = {"seed": seed, "variables": variables, "clauses": clause_count, "width": width}
    return _random("maxsat-random", run, formula, 0.0, instance)


@cache
def least_value(formula: Formula) -> float:
    """The least -sum w sat over all 2^V points: each clause is violated on one face of the cube."""
    violated = np.zeros((2,) * formula.variables)
    for clause, weight in zip(formula.clauses, formula.weights, strict=True):
        if any(-literal in clause for literal in clause):  # always satisfied
            continue
        face: list[slice | int] = [slice(None)] * formula.variables
        for literal in clause:
            face[abs(literal) - 1] = 0 if literal > 0 else 1
        violated[tuple(face)] += weight
    return float(violated.min()) - sum(formula.weights)


def _random(name: str, run: int, formula: Formula, offset: float, instance: dict[str, Any]) -> Problem:
    optimum = least_value(formula) + offset if formula.variables <= ENUMERABLE else None
    objective = clauses(formula, np.array(formula.weights), offset)
    return _problem(name, run, formula, objective, optimum, instance | {"formula": formula.fingerprint()})


def _problem(
    name: str, run: int, formula: Formula, objective: Clauses, optimum: float | None, instance: dict[str, Any]
) -> Problem:
    space = binaries("x", formula.variables)
    return Problem(
        name=name,
        run=check_run(run),
        space=space,
        budget=BUDGET,
        objective=objective,
        design=random_design(MAXSAT, space),
        optimum=optimum,
        instance=instance | {"start_seed": single_seed(MAXSAT, run)},
    )
