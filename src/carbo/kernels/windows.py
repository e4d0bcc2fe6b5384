"""Windows: variables that stand one after another in the space, a summand of the order kernel.

Stages, stations, layers and positions are listed in their order, and what happens at one tells most about the next. A
window is two, three, ... variables one after another, all on complete graphs (variables of one value do not count).

Notation
    n, N, F, T  observations, any rows, columns of features, windows
    r_i, z_i    relevance and centred table of variable i, as in `base`; a_i = r_i z_i
    rho_t       product of the relevances of window t's variables
    h_q         sum over the windows of q variables of the products of their a_i; h_q(r) that of their rho
    v_q         signal variance of h_q / h_q(r)
    Psi         (n, F) features: Psi_t Psi_t' is the product of the z_i of window t
    W           (n, n) weights: the derivatives are those of sum(W * K)

    K = sum_{q=2..Q} v_q h_q / h_q(r)
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from scipy.linalg import helmert

from carbo.kernels.polynomials import inverse
from carbo.kernels.spectra import Spectrum
from carbo.numerics.types import Floats, Ints

COLUMNS = 64
"""Most features of a window; longer windows, and windows of more values, are left out."""
TOTAL = 2_000
"""Most features of all windows together: the longest windows are left out until there are no more."""


class Windows:
    """The windows of two up to `highest` variables, a summand of the order kernel; `highest` 1: none."""

    def __init__(self, spectra: Sequence[Spectrum], highest: int) -> None:
        each, columns = list[tuple[int, ...]](), 0
        for q in range(2, highest + 1):
            own = windows_of_length(spectra, q)
            columns += sum(_width(spectra, some) for some in own)
            if not own or columns > TOTAL:
                break
            each += own
        self.variables = each
        self.orders = len(each[-1]) - 1 if each else 0
        """How many orders have windows: pairs, triples, ..."""
        self.order = np.array([len(some) - 2 for some in each], dtype=np.intp)
        """(T,) the order of each window, counted from pairs."""
        self.members = np.zeros((len(each), len(spectra)))
        """(T, d) one where a window has the variable."""
        for t, some in enumerate(each):
            self.members[t, list(some)] = 1.0
        self._index_features(spectra, each)

    def _index_features(self, spectra: Sequence[Spectrum], each: list[tuple[int, ...]]) -> None:
        """Where each column's factors are in all variables' features, laid flat after a one."""
        used = sorted({i for some in each for i in some})
        blocks = [features(spectra[i].size).reshape(-1) for i in used]
        self._flat = np.concatenate([[1.0], *blocks])
        offset = dict(zip(used, 1 + np.cumsum([0, *(len(block) for block in blocks)]), strict=False))
        columns = [
            (t, [(i, int(offset[i]) + k, spectra[i].size - 1) for i, k in zip(some, ks, strict=True)])
            for t, some in enumerate(each)
            for ks in itertools.product(*(range(spectra[i].size - 1) for i in some))
        ]
        self.owner = np.array([t for t, _ in columns], dtype=np.intp)
        """(F,) the window that a column belongs to."""
        none = (0, 0, 0)  # the one: no factor
        longest = self.orders + 1
        factors = [[*own, *[none] * (longest - len(own))] for _, own in columns]
        self._factors = np.array(factors, dtype=np.intp).reshape(len(columns), longest, 3)

    def __len__(self) -> int:
        return len(self.variables)

    def features(self, X: Ints) -> Floats:
        """Psi of rows of values X (N, d)."""
        out = np.ones((len(X), len(self.owner)))
        for j in range(self._factors.shape[1]):
            variable, first, stride = self._factors[:, j].T
            out *= self._flat[first + X[:, variable] * stride]
        return out

    def rho(self, log_relevance: Floats) -> Floats:
        """(T,)."""
        return np.asarray(np.exp(self.members @ log_relevance))

    def norms(self, rho: Floats) -> Floats:
        """h_2(r), h_3(r), ..., as many as there are orders."""
        return np.bincount(self.order, rho, self.orders).astype(np.float64)

    def weights(self, rho: Floats, v: Floats) -> Floats:
        """(T,) what multiplies each window's product of tables in the covariance."""
        return np.asarray((v * inverse(self.norms(rho)))[self.order] * rho)

    def parts(self, log_relevance: Floats, X: Ints) -> Floats:
        """(orders, n, n) h_q / h_q(r)."""
        rho, Psi, raw = self.rho(log_relevance), self.features(X), np.zeros((self.orders, len(X), len(X)))
        for q in range(self.orders):
            own = self.order[self.owner] == q
            raw[q] = (Psi[:, own] * rho[self.owner[own]]) @ Psi[:, own].T
        return raw * inverse(self.norms(rho))[:, None, None]

    def slopes(self, W: Floats, Psi: Floats, rho: Floats, weights: Floats) -> tuple[Floats, Floats]:
        """Derivatives of sum(W * K) by the log relevances (d,) and by the logarithms of v."""
        norms = self.norms(rho)
        columns = np.einsum("nf,nf->f", Psi, W @ Psi)
        share = weights * np.bincount(self.owner, columns, len(weights))
        by_order = np.bincount(self.order, share, len(norms)).astype(np.float64)
        of_norm = (by_order * inverse(norms))[self.order] * rho
        return (share - of_norm) @ self.members, by_order


def windows_of_length(spectra: Sequence[Spectrum], q: int) -> list[tuple[int, ...]]:
    """The windows of q variables."""
    active = [i for i, s in enumerate(spectra) if s.size > 1]
    each = (tuple(active[k : k + q]) for k in range(len(active) - q + 1))
    return [
        some for some in each if all(spectra[i].kind == "complete" for i in some) and _width(spectra, some) <= COLUMNS
    ]


def _width(spectra: Sequence[Spectrum], window: tuple[int, ...]) -> int:
    """How many features a window has."""
    return math.prod(spectra[i].size - 1 for i in window)


def features(m: int) -> Floats:
    """(m, m - 1): the rows' inner products are the centred table of a complete graph, (m I - 1 1') / (m - 1)."""
    return np.asarray(helmert(m).T * math.sqrt(m / (m - 1)))
