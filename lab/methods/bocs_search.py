"""Minimisation of a polynomial of binary variables, by semidefinite relaxation or by annealing.

Notation
    d       number of variables
    x       (d,) in {0, 1}
    s       (d + 1,) in {-1, 1}: s_0 s_j = 2 x_j - 1
    C       (d + 1, d + 1) symmetric, zero diagonal: the quadratic polynomial is constant + s'Cs
    S       (d + 1, d + 1) the relaxation of ss': positive semidefinite, unit diagonal
    g       (r, d) derivative of the polynomial by each variable, at r rows: flipping x_i adds (1 - 2 x_i) g_i
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from carbo.errors import NumericalError, SettingsError
from carbo.numerics.types import Floats, Ints

ACCURACY, ITERATIONS = 1e-4, 5_000
"""Settings of the semidefinite solver: relative and absolute residuals, and most steps."""
DIRECTIONS = 100
"""Number of random hyperplanes of the rounding."""
RESTARTS, SWEEPS = 20, 100
"""Numbers of chains of the annealing, and of sweeps of each, which propose to flip every variable once."""
HOT, COLD = 1.0, 1e-3
"""First and last temperature of the annealing, in units of a flip's root mean square change at random rows."""


class Polynomial(NamedTuple):
    """sum_i linear_i x_i + sum_{i<j} pairs_ij x_i x_j + sum_{i<j<k} triples_ijk x_i x_j x_k, constant left out.

    The arrays are symmetric in all indices and zero wherever two indices are equal.
    """

    linear: Floats
    """(d,)"""
    pairs: Floats
    """(d, d)"""
    triples: Floats | None = None
    """(d, d, d)"""

    def slopes(self, rows: Floats) -> tuple[Floats, Floats]:
        """First derivatives (r, d) and mixed second ones (r, d, d) at rows (r, d); the latter shared if constant."""
        if self.triples is None:
            return self.linear + rows @ self.pairs, np.broadcast_to(self.pairs, (len(rows), *self.pairs.shape))
        inner = np.tensordot(rows, self.triples, axes=1)
        return self.linear + rows @ self.pairs + 0.5 * np.einsum("rij,rj->ri", inner, rows), self.pairs + inner

    def values(self, rows: Floats) -> Floats:
        """(r,) at rows (r, d)."""
        out = rows @ self.linear + 0.5 * np.einsum("ri,ri->r", rows @ self.pairs, rows)
        if self.triples is not None:
            inner = np.tensordot(rows, self.triples, axes=1)
            out = out + np.einsum("rij,ri,rj->r", inner, rows, rows, optimize=True) / 6.0
        return np.asarray(out)


# ---- semidefinite relaxation


class Relaxation(NamedTuple):
    """The solver's solution of: minimise <C, S> over positive semidefinite S of unit diagonal."""

    matrix: Floats
    """(d + 1, d + 1): S up to the solver's accuracy."""
    bound: float
    """A lower bound of the polynomial with its constant; it holds for any accuracy of the solver."""


def as_signs(polynomial: Polynomial) -> tuple[Floats, float]:
    """C and the constant of a quadratic polynomial in signs."""
    pairs, linear = polynomial.pairs, polynomial.linear
    cost = np.zeros((len(linear) + 1, len(linear) + 1))
    cost[1:, 1:] = pairs / 8.0
    cost[0, 1:] = cost[1:, 0] = linear / 4.0 + pairs.sum(axis=1) / 8.0
    return cost, float(linear.sum() / 2.0 + pairs.sum() / 8.0)


def relax(polynomial: Polynomial) -> Relaxation:
    """Solve the relaxation with SCS, with S as the variable.

    The bound is that of weak duality at the solver's multipliers, made feasible by a shift: sum y + (d + 1) times
    the least eigenvalue of C - Diag(y) where that is negative. NumericalError when the solver gives nothing usable.
    """
    cost, constant = as_signs(polynomial)
    scale = float(np.abs(cost).max()) or 1.0
    matrix, multipliers = _solve(cost / scale)
    least = float(np.linalg.eigvalsh(cost / scale - np.diag(multipliers))[0])
    return Relaxation(matrix, constant + scale * float(multipliers.sum() + len(cost) * min(least, 0.0)))


def _solve(cost: Floats) -> tuple[Floats, Floats]:
    """S and the multipliers of its diagonal."""
    from scipy import sparse

    scs = _solver()
    size = len(cost)
    column, row = np.triu_indices(size)  # SCS stacks the columns of the lower triangle, off-diagonals times sqrt 2
    weight = np.where(row == column, 1.0, np.sqrt(2.0))
    diagonal = np.flatnonzero(row == column)
    unit = sparse.csc_array((np.ones(size), (np.arange(size), diagonal)), shape=(size, len(row)))
    data = {
        "A": sparse.vstack([unit, -sparse.eye_array(len(row))], format="csc"),
        "b": np.concatenate([np.ones(size), np.zeros(len(row))]),
        "c": weight * cost[row, column],
    }
    solver = scs.SCS(data, {"z": size, "s": [size]}, verbose=False, eps_abs=ACCURACY, eps_rel=ACCURACY,
                     max_iters=ITERATIONS)  # fmt: skip
    found = solver.solve()
    matrix = np.zeros((size, size))
    matrix[row, column] = matrix[column, row] = found["x"] / weight
    multipliers = -np.asarray(found["y"][:size])
    if not (np.all(np.isfinite(matrix)) and np.all(np.isfinite(multipliers))):
        raise NumericalError(f"relaxation: expected finite numbers of SCS, got status {found['info']['status']!r}")
    return matrix, multipliers


def _solver() -> Any:
    try:
        import scs
    except ImportError:
        raise SettingsError("bocs-sdp: expected the package scs to be installed, got none; "
                            "pip install 'carbo[bench]'") from None  # fmt: skip
    return scs


def round_relaxation(rng: np.random.Generator, matrix: Floats, directions: int = DIRECTIONS) -> Ints:
    """Rows (directions, d): on which side of a random hyperplane each row of a factor of S lies (Goemans and
    Williamson 1995), seen from the side of s_0."""
    eigenvalues, vectors = np.linalg.eigh(matrix)
    factor = vectors * np.sqrt(np.maximum(eigenvalues, 0.0))
    side = rng.standard_normal((directions, len(matrix))) @ factor.T >= 0.0
    return np.asarray(side[:, 1:] == side[:, :1], dtype=np.intp)


def by_relaxation(rng: np.random.Generator, polynomial: Polynomial) -> Ints:
    """A row (d,) of small value: the best row of the rounding."""
    rows = round_relaxation(rng, relax(polynomial).matrix)
    best: Ints = rows[np.argmin(polynomial.values(rows.astype(np.float64)))]
    return best


# ---- simulated annealing


def by_annealing(rng: np.random.Generator, polynomial: Polynomial) -> Ints:
    """A row (d,) of small value: the best row of RESTARTS chains, cooled geometrically over SWEEPS.

    The chains run side by side. They share the order of variables, which is drawn for each sweep. Each chain has its
    own starting row and its own acceptances.
    """
    d = len(polynomial.linear)
    walk = _Walk(polynomial, rng.integers(0, 2, size=(RESTARTS, d)).astype(np.float64))
    unit = float(np.sqrt(np.mean(walk.g**2)))
    for temperature in unit * np.geomspace(HOT, COLD, SWEEPS):
        thresholds = temperature * rng.exponential(size=(d, RESTARTS))
        for i in rng.permutation(d):
            walk.flip(int(i), thresholds[i])
    return walk.best_row()


class _Walk:
    """Rows of several chains with their derivatives; a flip updates them in O(d^2) for each chain, not O(p)."""

    def __init__(self, polynomial: Polynomial, rows: Floats) -> None:
        self._triples = polynomial.triples
        self.rows = rows
        self.value = polynomial.values(rows)
        self.g, self._second = polynomial.slopes(rows)
        self._best, self._least = rows.copy(), self.value.copy()

    def flip(self, i: int, threshold: Floats) -> None:
        """Flip variable i in chains whose value rises by less than their threshold (r,); T * Exp(1): Metropolis."""
        step = 1.0 - 2.0 * self.rows[:, i]
        rise = step * self.g[:, i]
        chains = np.flatnonzero(rise < threshold)
        if not len(chains):
            return
        step = step[chains]
        self.rows[chains, i] += step
        self.value[chains] += rise[chains]
        self.g[chains] += step[:, None] * self._second[chains, i]
        if self._triples is not None:
            self._second[chains] += step[:, None, None] * self._triples[i]
        self._remember(chains[self.value[chains] < self._least[chains]])

    def _remember(self, chains: Ints) -> None:
        self._best[chains], self._least[chains] = self.rows[chains], self.value[chains]

    def best_row(self) -> Ints:
        return np.asarray(self._best[np.argmin(self._least)], dtype=np.intp)
