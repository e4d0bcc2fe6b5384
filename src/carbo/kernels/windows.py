"""Variables that stand next to each other in the space: the order kernel with parts of their own for these.

Stages, stations, layers and positions are listed in their order, and what happens at one tells most on the next. A row
is two, three, ... variables one after another, all on complete graphs (variables of one value do not count).

Notation
    n, N, F     observations, any rows of values, columns of features
    r_i, z_i    relevance and centred table of variable i, as in `kernel`; a_i = r_i z_i
    rho_t       product of the relevances of row t's variables
    h_q         sum over the rows of q variables of the products of their a_i; h_q(r) that of their rho
    v_q         signal variance of h_q / h_q(r)
    Psi         (n, F) features: Psi_t Psi_t' is the product of the z_i of row t

    K = sum_{q=1..Q} w_q e_q / e_q(r) + sum_{q=2..Q} v_q h_q / h_q(r)
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import helmert

from carbo.kernels.base import Coordinate, Curve, Kernel, Scales
from carbo.kernels.orders import Orders, inverse
from carbo.kernels.spectra import Spectrum
from carbo.numerics.types import Floats, Ints

COLUMNS = 64
"""Most features of a row of variables; a longer one, or one of more values, is left out."""
TOTAL = 2_000
"""Most features of all rows together: the longest rows are left out until there are no more."""


class Rows:
    """The rows of two up to `highest` variables of a space."""

    def __init__(self, spectra: Sequence[Spectrum], highest: int) -> None:
        each, columns = list[tuple[int, ...]](), 0
        for q in range(2, highest + 1):
            own = rows_of_length(spectra, q)
            columns += sum(_width(spectra, some) for some in own)
            if not own or columns > TOTAL:
                break
            each += own
        self.variables = each
        self.orders = len(each[-1]) - 1 if each else 0
        """How many orders have rows: pairs, triples, ..."""
        self.order = np.array([len(some) - 2 for some in each], dtype=np.intp)
        """(T,) of each row, counted from that of pairs."""
        self.members = np.zeros((len(each), len(spectra)))
        """(T, d) one where a row has the variable."""
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
        """(F,) the row that a column belongs to."""
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
        """(T,) what multiplies each row's product of tables in the covariance."""
        return np.asarray((v * inverse(self.norms(rho)))[self.order] * rho)


def rows_of_length(spectra: Sequence[Spectrum], q: int) -> list[tuple[int, ...]]:
    """The rows of q variables."""
    active = [i for i, s in enumerate(spectra) if s.size > 1]
    each = (tuple(active[k : k + q]) for k in range(len(active) - q + 1))
    return [
        some for some in each if all(spectra[i].kind == "complete" for i in some) and _width(spectra, some) <= COLUMNS
    ]


def _width(spectra: Sequence[Spectrum], row: tuple[int, ...]) -> int:
    """How many features a row has."""
    return math.prod(spectra[i].size - 1 for i in row)


@dataclass(frozen=True, eq=False)
class Adjacent(Orders):
    """The order kernel, without the product, and h_2, ..., h_Q besides, as far as there are such rows."""

    def __post_init__(self) -> None:
        assert not self.product

    @cached_property
    def rows(self) -> Rows:
        return Rows(self.spectra, self.highest)

    @property
    def size(self) -> int:
        return self.highest + self.rows.orders

    def parts(self, scales: Scales, X: Ints) -> Floats:
        rho = self.rows.rho(scales.log_relevance)
        Psi, raw = self.rows.features(X), np.zeros((self.rows.orders, len(X), len(X)))
        for q in range(self.rows.orders):
            own = self.rows.order[self.rows.owner] == q
            raw[q] = (Psi[:, own] * rho[self.rows.owner[own]]) @ Psi[:, own].T
        return np.concatenate([super().parts(scales, X), raw * inverse(self.rows.norms(rho))[:, None, None]])

    def swap(self, parts: Floats, scales: Scales, X: Ints, w: Floats, at: Coordinate) -> Curve:  # noqa: ARG002
        """From scratch at every theta: the sampler that wants more of this kernel takes all coordinates at once."""

        def moved(theta: float) -> Floats:
            key = f"log_{at.name}"
            values = getattr(scales, key).copy()
            values[at.variable] = theta
            return self.parts(scales._replace(**{key: values}), X)

        def fill(theta: float, out: Floats) -> None:
            out[:] = np.tensordot(w, moved(theta), 1)

        return Curve(fill, moved)

    def weights(self, scales: Scales, w: Floats) -> Floats:
        """Of the orders alone: `combine` knows nothing of rows."""
        return super().weights(scales, w[: self.highest])

    def row_weights(self, scales: Scales, w: Floats) -> Floats:
        """(T,) what multiplies each row's product of tables."""
        return self.rows.weights(self.rows.rho(scales.log_relevance), w[self.highest :])


def rows_of(kernel: Kernel) -> Rows:
    """The rows that have parts of their own in the kernel: none in most."""
    return kernel.rows if isinstance(kernel, Adjacent) else Rows(kernel.spectra, 1)


def features(m: int) -> Floats:
    """(m, m - 1): the rows' inner products are the centred table of a complete graph, (m I - 1 1') / (m - 1)."""
    return np.asarray(helmert(m).T * math.sqrt(m / (m - 1)))
