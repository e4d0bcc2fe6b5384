"""Feature selection: which of the 30 measurements of a tumour a linear classifier needs (scikit-learn's breast cancer).

Objective: the share of wrong answers in five-fold cross-validation, plus PRICE for each feature. The classifier is
ridge regression on labels -1 and 1, with features standardised on each training part: a linear system for each fold.
The run decides the folds, so that the best subset of one run need not be that of another. Without features the
classifier gives every example the more frequent label of the training part.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from carbo.errors import SettingsError
from carbo.numerics.types import Floats, Ints
from lab.problems.base import Problem, binaries, random_design
from lab.problems.seeds import check_run, check_seed, instance_stream, single_seed

TAG = "carbo_FEATURES"
FEATURES, FOLDS, PRICE, RIDGE = 30, 5, 0.001, 1.0
BUDGET, INITIAL = 200, 10


class Fold(NamedTuple):
    """What a fold's classifier is made from, and what it is tried on."""

    gram: Floats
    """(d, d) products of the standardised features in the training part."""
    products: Floats
    """(d,) their products with the centred labels."""
    mean: float
    """Of the labels."""
    X: Floats
    """(m, d) the features of the other part, standardised alike."""
    y: Floats
    """(m,) its labels, -1 and 1."""

    def wrong(self, those: Ints) -> int:
        """How many wrong answers a classifier of those features gives."""
        system = self.gram[np.ix_(those, those)] + RIDGE * np.eye(len(those))
        said = self.X[:, those] @ np.linalg.solve(system, self.products[those]) + self.mean
        return int(np.count_nonzero((said > 0) != (self.y > 0)))


@dataclass(frozen=True)
class Error:
    """The objective."""

    seed: int

    def __call__(self, row: Ints) -> float:
        those, parts = np.flatnonzero(row), folds(self.seed)
        wrong = sum(part.wrong(those) for part in parts)
        return wrong / sum(len(part.y) for part in parts) + PRICE * len(those)


def feature_selection(seed: int, run: int = 1) -> Problem:
    """The folds of a seed. The least value is not known."""
    space = binaries("feature", FEATURES)
    return Problem(
        name="feature-selection",
        run=check_run(run),
        space=space,
        budget=BUDGET,
        objective=Error(check_seed(seed)),
        design=random_design(TAG, space, INITIAL),
        optimum=None,
        instance={"data": "breast_cancer", "seed": int(seed), "folds": FOLDS, "price": PRICE,
                  "start_seed": single_seed(TAG, run)},
        packages=("scikit-learn",),
    )  # fmt: skip


@cache
def folds(seed: int) -> tuple[Fold, ...]:
    """The five folds of a seed: the examples in a random order, dealt out in turn."""
    X, y = examples()
    order = instance_stream(TAG, seed).permutation(len(y))
    return tuple(_fold(X, y, np.isin(np.arange(len(y)), order[k::FOLDS])) for k in range(FOLDS))


@cache
def examples() -> tuple[Floats, Floats]:
    """Features (n, 30) and labels -1 and 1 (n,). SettingsError when scikit-learn is not installed."""
    try:
        from sklearn.datasets import load_breast_cancer
    except ImportError:
        raise SettingsError("feature-selection: expected the package scikit-learn to be installed, got none; "
                            "pip install 'carbo[nas]'") from None  # fmt: skip
    X, labels = load_breast_cancer(return_X_y=True)
    return np.asarray(X, dtype=np.float64), np.where(labels == 1, 1.0, -1.0)


def _fold(X: Floats, y: Floats, tried: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Fold:
    learnt, labels = X[~tried], y[~tried]
    centre, spread = learnt.mean(axis=0), learnt.std(axis=0)
    Z, mean = (learnt - centre) / spread, float(labels.mean())
    return Fold(Z.T @ Z, Z.T @ (labels - mean), mean, (X[tried] - centre) / spread, y[tried])
