"""Windows of consecutive variables of the space: a summand of the order kernel.

Users list stages, stations, layers or positions in their order, and neighbours in this order often interact. A window
is two, three, ... consecutive variables, all on complete graphs; variables of one value are skipped.

Notation
    n, N, F, T  observations, any rows, columns of features, windows
    r_i, z_i    relevance and centred table of variable i, as in `base`; a_i = r_i z_i
    rho_t       product of the relevances of window t's variables
    h_q         sum, over the windows of q variables, of the product of their a_i; h_q(r) is the sum of their rho_t
    v_q         signal variance of h_q / h_q(r)
    Psi         (n, F) features: Psi_t Psi_t' is the product of the z_i of window t's variables
    W           (n, n) weights: the derivatives are those of sum(W * K)

    K = sum_{q=2..Q} v_q h_q / h_q(r)
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from scipy.linalg import helmert

from carbo.kernels.polynomials import inverse_norms
from carbo.kernels.spectra import Spectrum
from carbo.numerics.types import Floats, Ints

COLUMNS = 64
"""Largest number of features of one window. Windows with more, because of many variables or values, are left out."""
TOTAL = 2_000
"""Largest number of features of all windows together. If there are more, the longest windows are left out."""


class Windows:
    """The windows of two to `highest` variables. With `highest` 1 there are none."""

    def __init__(self, spectra: Sequence[Spectrum], highest: int) -> None:
        each, columns = list[tuple[int, ...]](), 0
        for q in range(2, highest + 1):
            windows = windows_of_length(spectra, q)
            columns += sum(_width(spectra, window) for window in windows)
            if not windows or columns > TOTAL:
                break
            each += windows
        self.variables = each
        self.orders = len(each[-1]) - 1 if each else 0
        """Number of orders that have windows: pairs, triples, ..."""
        self.order = np.array([len(window) - 2 for window in each], dtype=np.intp)
        """(T,) the order of each window: 0 for pairs, 1 for triples, ..."""
        self.members = np.zeros((len(each), len(spectra)))
        """(T, d) one where a window contains the variable."""
        for t, window in enumerate(each):
            self.members[t, list(window)] = 1.0
        self._index_features(spectra, each)

    def _index_features(self, spectra: Sequence[Spectrum], each: list[tuple[int, ...]]) -> None:
        """Index the factors of each column of Psi in a flat array: a 1, then the features of all variables."""
        used = sorted({i for window in each for i in window})
        blocks = [features(spectra[i].size).reshape(-1) for i in used]
        self._flat = np.concatenate([[1.0], *blocks])
        offset = dict(zip(used, 1 + np.cumsum([0, *(len(block) for block in blocks)]), strict=False))
        columns = [
            (t, [(i, int(offset[i]) + k, spectra[i].size - 1) for i, k in zip(window, ks, strict=True)])
            for t, window in enumerate(each)
            for ks in itertools.product(*(range(spectra[i].size - 1) for i in window))
        ]
        self.owner = np.array([t for t, _ in columns], dtype=np.intp)
        """(F,) the window that each column belongs to."""
        none = (0, 0, 0)  # points to the 1: no factor
        longest = self.orders + 1
        factors = [[*own, *[none] * (longest - len(own))] for _, own in columns]
        self._factors = np.array(factors, dtype=np.intp).reshape(len(columns), longest, 3)

    def __len__(self) -> int:
        return len(self.variables)

    def features(self, X: Ints) -> Floats:
        """Psi (N, F) of rows X (N, d)."""
        out = np.ones((len(X), len(self.owner)))
        for j in range(self._factors.shape[1]):
            variable, first, stride = self._factors[:, j].T
            out *= self._flat[first + X[:, variable] * stride]
        return out

    def rho(self, log_relevance: Floats) -> Floats:
        """The products of relevances rho (T,)."""
        return np.asarray(np.exp(self.members @ log_relevance))

    def norms(self, rho: Floats) -> Floats:
        """The norms h_2(r), h_3(r), ..., (orders,)."""
        return np.bincount(self.order, rho, self.orders).astype(np.float64)

    def weights(self, rho: Floats, v: Floats) -> Floats:
        """Weights of the windows' products of tables in the covariance, (T,), under signal variances v (orders,)."""
        return np.asarray((v * inverse_norms(self.norms(rho)))[self.order] * rho)

    def parts(self, log_relevance: Floats, X: Ints) -> Floats:
        """The parts h_q / h_q(r) for observations X (n, d), (orders, n, n)."""
        rho, Psi, raw = self.rho(log_relevance), self.features(X), np.zeros((self.orders, len(X), len(X)))
        for q in range(self.orders):
            at = self.order[self.owner] == q
            raw[q] = (Psi[:, at] * rho[self.owner[at]]) @ Psi[:, at].T
        return raw * inverse_norms(self.norms(rho))[:, None, None]

    def slopes(self, W: Floats, Psi: Floats, rho: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """Derivatives of sum(W * K) by the log relevances (d,) and by the logarithms of v (orders,)."""
        norms = self.norms(rho)
        columns = np.einsum("nf,nf->f", Psi, W @ Psi)
        share = weights * np.bincount(self.owner, columns, len(weights))
        by_order = np.bincount(self.order, share, len(norms)).astype(np.float64)
        norm_share = (by_order * inverse_norms(norms))[self.order] * rho
        return (share - norm_share) @ self.members, by_order


def windows_of_length(spectra: Sequence[Spectrum], q: int) -> list[tuple[int, ...]]:
    """The windows of q variables that have at most COLUMNS features."""
    active = [i for i, s in enumerate(spectra) if s.size > 1]
    each = (tuple(active[k : k + q]) for k in range(len(active) - q + 1))
    complete = (window for window in each if all(spectra[i].kind == "complete" for i in window))
    return [window for window in complete if _width(spectra, window) <= COLUMNS]


def _width(spectra: Sequence[Spectrum], window: tuple[int, ...]) -> int:
    """The number of features of a window."""
    return math.prod(spectra[i].size - 1 for i in window)


def features(m: int) -> Floats:
    """Features (m, m - 1) of m values. The inner products of the rows are the centred table of a complete graph,
    (m I - 1 1') / (m - 1).
    """
    return np.asarray(helmert(m).T * math.sqrt(m / (m - 1)))
