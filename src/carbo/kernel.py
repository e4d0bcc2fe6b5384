"""The two kernels over the graph Cartesian product, built from per-variable tables of mean diagonal one.

Notation
    n, N, d     observations, candidate rows, variables
    m_i         values of variable i; x_i, x'_i two of them
    T_i         diffusion table of variable i at beta_i, normalised: T_i = m_i sum_j c_j u_j u_j' / sum_j c_j,
                c_j = exp(-beta_i lambda_j) (paper eq. 5, supplement's remark on Psi)
    z_i         the same without the constant mode (j > 0), again of mean diagonal one: the centred table
    r_i         relevance of variable i, >= 0
    e_q         elementary symmetric polynomial of order q in the d numbers r_i z_i(x_i, x'_i)
    p_s         power sum of order s of the same numbers
    parts       (P, n, n) matrices whose weighted sum is the signal covariance
    w           (P,) their weights: signal variances

Product kernel (the paper's):     K = w_1 prod_i T_i                                    P = 1
Order kernel (design section 6):  K = sum_{q=1..Q} w_q e_q / e_q(r) (+ w_inf prod_i (1 + r_i z_i) / (1 + r_i))

Both are used in two ways. While sampling, `swap` isolates one coordinate: the covariance is a cheap function of
it. While searching, `Sums` fixes everything, and one-hot rows times tables give covariances of many rows.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from carbo.graph import Floats, Ints, Spectrum, Table, table

if TYPE_CHECKING:
    from scipy import sparse

FLOOR = 1e-30
"""Smallest entry of a table in the product kernel, so that a factor can always be divided out again."""
PRODUCT_FLOOR = 1e-100
"""Smallest entry of a product of tables: nothing to a covariance, and far from the slow subnormal numbers."""


DENSE_COLUMNS = 1024
"""One-hot rows wider than this are multiplied as sparse matrices."""
WIDE = 64
"""A variable of more values than this has no columns in one-hot rows: it is computed pair by pair of rows."""


class Scales(NamedTuple):
    """What shapes the kernel: one beta and one relevance a variable, as logarithms, each (d,)."""

    log_beta: Floats
    log_relevance: Floats


class Coordinate(NamedTuple):
    """One number the sampler updates: a variable's beta or relevance."""

    name: Literal["beta", "relevance"]
    variable: int


class Split(NamedTuple):
    """Signal covariance w * P, P's entries between unequal values of one variable proportional to t(theta)."""

    t: Callable[[float], float]
    variable: int
    P: Floats
    w: float


class Curve(NamedTuple):
    """Signal covariance as any function of theta: `fill(theta, out)` writes it into out (n, n), Fortran order.

    `parts(theta)` are the kernel's parts there, as `Kernel.swapped` gives them.
    """

    fill: Callable[[float, Floats], None]
    parts: Callable[[float], Floats]


class Kernel(Protocol):
    """What the sampler and the search need of a kernel."""

    @property
    def spectra(self) -> tuple[Spectrum, ...]:
        """One a variable."""

    @property
    def size(self) -> int:
        """P, the number of parts."""

    def coordinates(self) -> list[Coordinate]:
        """The coordinates that matter; variables of one value have none."""

    def parts(self, scales: Scales, X: Ints) -> Floats:
        """(P, n, n)."""

    def swap(self, parts: Floats, scales: Scales, X: Ints, w: Floats, at: Coordinate) -> Split | Curve:
        """The signal covariance as a function of coordinate `at`, all else fixed."""

    def swapped(self, parts: Floats, scales: Scales, X: Ints, at: Coordinate, theta: float) -> Floats:
        """The parts after coordinate `at` has moved to theta; `parts` itself may be overwritten."""

    @property
    def summed(self) -> int:
        """How many quantities are summed over variables: the log product, or power sums."""

    def table(self, scales: Scales, i: int) -> Table:
        """Variable i's table."""

    def turned(self, scales: Scales, i: int, entries: Floats) -> list[Floats]:
        """Entries of variable i's table turned into each summed quantity."""

    def combine(self, sums: list[Floats], scales: Scales, w: Floats) -> Floats:
        """Covariances (N, n) from those quantities summed over variables; may overwrite them."""


def unequal(lam: float, size: int, log_beta: float) -> float:
    """rho: T_i between unequal values of a complete graph, (1 - e) / (1 + (m - 1) e), accurate for tiny beta."""
    x = math.exp(log_beta) * lam
    return -math.expm1(-x) / (1.0 + (size - 1) * math.exp(-x))


def diffusion(s: Spectrum, log_beta: float) -> Table:
    """T_i."""
    if s.kind == "complete":
        return Table(s.kind, s.size, np.array([1.0, unequal(float(s.lam[-1]), s.size, log_beta)]))
    return table(s, np.exp(-math.exp(log_beta) * s.lam))


def centred(s: Spectrum, log_beta: float) -> Table:
    """z_i. The decay is counted from the slowest mode, so that a large beta leaves that mode and not zero."""
    if s.size == 1:
        return Table("complete", 1, np.zeros(2))
    c = np.exp(-math.exp(log_beta) * (s.lam - s.lam[1:].min()))
    c[0] = 0.0
    return table(s, c)


def square(t: Table, x: Ints) -> Floats:
    """M[x, x'] for all pairs of observed values x (n,): (n, n)."""
    return np.asarray(t.columns(x)[x])


def one_hot(sizes: Ints, rows: Ints) -> Floats | sparse.csr_array:
    """H (N, M): column offset_i + v is one where variable i has value v; sparse where it is wide."""
    columns, width = rows + (np.cumsum(sizes) - sizes), int(np.sum(sizes))
    if width > DENSE_COLUMNS:
        pointers = np.arange(0, columns.size + 1, columns.shape[1])
        from scipy import sparse

        return sparse.csr_array((np.ones(columns.size), columns.reshape(-1), pointers), (len(rows), width))
    H = np.zeros((len(rows), width))
    H[np.arange(len(rows))[:, None], columns] = 1.0
    return H


class Columns:
    """Which variables have a column for each of their values in one-hot rows; the others are wide."""

    def __init__(self, kernel: Kernel) -> None:
        sizes = np.array([s.size for s in kernel.spectra], dtype=np.intp)
        self.narrow, self.wide = np.flatnonzero(sizes <= WIDE), np.flatnonzero(sizes > WIDE)
        self.sizes = sizes[self.narrow]
        self.offset = np.full(len(sizes), -1)
        """(d,) each variable's first column; -1 for wide ones."""
        self.offset[self.narrow] = np.cumsum(self.sizes) - self.sizes

    def one_hot(self, rows: Ints) -> Floats | sparse.csr_array:
        """H (N, M)."""
        return one_hot(self.sizes, rows[:, self.narrow] if len(self.wide) else rows)


class Sums:
    """What `Kernel.combine` takes, for any rows against the observations X (n, d).

    Narrow variables' tables (M, n), one a summed quantity, are stacked: their product with one-hot rows sums them. A
    wide variable's entries are looked up for the rows at hand, since its table might not fit in memory.
    """

    def __init__(self, kernel: Kernel, scales: Scales, X: Ints, columns: Columns) -> None:
        self._kernel, self._scales, self._X = kernel, scales, X
        each = [kernel.turned(scales, i, kernel.table(scales, i).columns(X[:, i])) for i in columns.narrow.tolist()]
        self.tables = _stacked(kernel, each, len(X))
        self._wide = {i: kernel.table(scales, i) for i in columns.wide.tolist()}

    def astype(self, dtype: type[np.floating[Any]]) -> Sums:
        """The same in another precision."""
        other = copy.copy(self)
        other.tables = [T.astype(dtype) for T in self.tables]
        return other

    def at(self, H: Any, rows: Ints, own: NDArray[np.bool_] | None = None) -> list[Floats]:
        """(..., n) each, of one-hot rows H (..., M) of rows (..., d).

        own (B, d): of rows (B, R, d), what is not their own is left out; H (B, R, M) must leave it out by itself.
        """
        sums = [np.asarray(H @ T) for T in self.tables]
        for i, wide in self._wide.items():
            entries = wide.at(rows[..., i, None], self._X[:, i])
            for q, one in enumerate(self._kernel.turned(self._scales, i, entries)):
                sums[q] += one if own is None else one * own[:, i, None, None]
        return sums

    def entries(self, i: int, values: Ints, first: int | None = None) -> Floats:
        """The first quantity of a wide variable's values against the (first) observations, (len(values), n)."""
        entries = self._wide[i].at(values[:, None], self._X[:first, i])
        return self._kernel.turned(self._scales, i, entries)[0]


class Variances:
    """The same for rows' covariances with themselves: their prior variances."""

    def __init__(self, kernel: Kernel, scales: Scales, columns: Columns) -> None:
        self._kernel, self._scales = kernel, scales
        each = [kernel.turned(scales, i, kernel.table(scales, i).diagonal()[:, None]) for i in columns.narrow.tolist()]
        self._tables = _stacked(kernel, each, 1)
        self._wide = [(i, kernel.table(scales, i).diagonal()) for i in columns.wide.tolist()]

    def at(self, H: Any, rows: Ints, w: Floats) -> Floats:
        """(N,)."""
        sums = [np.asarray(H @ T) for T in self._tables]
        for i, diagonal in self._wide:
            for q, one in enumerate(self._kernel.turned(self._scales, i, diagonal[rows[:, i]])):
                sums[q] += one[:, None]
        return self._kernel.combine(sums, self._scales, w)[:, 0]


def _stacked(kernel: Kernel, each: list[list[Floats]], n: int) -> list[Floats]:
    """Per summed quantity, the variables' tables one below another."""
    return [np.concatenate([turned[q] for turned in each] or [np.zeros((0, n))]) for q in range(kernel.summed)]


def cross(kernel: Kernel, scales: Scales, w: Floats, rows: Ints, X: Ints) -> Floats:
    """Covariances between rows (N, d) and observations X (n, d), (N, n)."""
    columns = Columns(kernel)
    return kernel.combine(Sums(kernel, scales, X, columns).at(columns.one_hot(rows), rows), scales, w)


def diagonal(kernel: Kernel, scales: Scales, w: Floats, rows: Ints) -> Floats:
    """Prior variance of each row, (N,)."""
    columns = Columns(kernel)
    return Variances(kernel, scales, columns).at(columns.one_hot(rows), rows, w)


def gram(kernel: Kernel, scales: Scales, w: Floats, X: Ints) -> Floats:
    """Signal covariance of the observations, (n, n)."""
    return np.asarray(np.einsum("p,pij->ij", w, kernel.parts(scales, X)))


@dataclass(frozen=True, eq=False)
class Product:
    """The ARD diffusion kernel of the paper; relevances play no part."""

    spectra: tuple[Spectrum, ...]

    @property
    def size(self) -> int:
        return 1

    def coordinates(self) -> list[Coordinate]:
        return [Coordinate("beta", i) for i, s in enumerate(self.spectra) if s.size > 1]

    def _square(self, i: int, log_beta: float, x: Ints) -> Floats:
        return np.maximum(square(diffusion(self.spectra[i], log_beta), x), FLOOR)

    def parts(self, scales: Scales, X: Ints) -> Floats:
        return np.asarray(np.maximum(cross(self, scales, np.ones(1), X, X), PRODUCT_FLOOR)[None])

    def swap(self, parts: Floats, scales: Scales, X: Ints, w: Floats, at: Coordinate) -> Split | Curve:
        i, s, x = at.variable, self.spectra[at.variable], X[:, at.variable]
        if s.kind == "complete":
            return Split(lambda log_beta: self._rho(s, log_beta), i, parts[0], float(w[0]))
        rest = parts[0] * w[0] / self._square(i, scales.log_beta[i], x)

        def fill(log_beta: float, out: Floats) -> None:
            np.multiply(rest, self._square(i, log_beta, x), out=out)

        return Curve(fill, lambda theta: self.swapped(parts, scales, X, at, theta))

    def swapped(self, parts: Floats, scales: Scales, X: Ints, at: Coordinate, theta: float) -> Floats:
        s, x, now = self.spectra[at.variable], X[:, at.variable], float(scales.log_beta[at.variable])
        if s.kind == "complete":
            ratio = self._rho(s, theta) / self._rho(s, now)
            rows = Table("complete", s.size, np.array([1.0, ratio])).columns(x)
        else:
            new, old = diffusion(s, theta).columns(x), diffusion(s, now).columns(x)
            rows = np.maximum(new, FLOOR) / np.maximum(old, FLOOR)
        for i in range(0, len(x), 32):  # in pieces that need no fresh pages
            parts[0, i : i + 32] *= rows[x[i : i + 32]]
        return np.maximum(parts, PRODUCT_FLOOR, out=parts)

    @staticmethod
    def _rho(s: Spectrum, log_beta: float) -> float:
        return max(unequal(float(s.lam[-1]), s.size, log_beta), FLOOR)

    @property
    def summed(self) -> int:
        return 1

    def table(self, scales: Scales, i: int) -> Table:
        return diffusion(self.spectra[i], scales.log_beta[i])

    def turned(self, scales: Scales, i: int, entries: Floats) -> list[Floats]:  # noqa: ARG002
        return [np.log(np.maximum(entries, FLOOR))]

    def combine(self, sums: list[Floats], scales: Scales, w: Floats) -> Floats:  # noqa: ARG002
        K = np.exp(sums[0], out=sums[0])
        K *= K.dtype.type(w[0])
        return K


@dataclass(frozen=True, eq=False)
class Orders:
    """The kernel weighted by order of interaction, up to `highest`, with the full product if `product`."""

    spectra: tuple[Spectrum, ...]
    highest: int
    product: bool

    @property
    def size(self) -> int:
        return self.highest + int(self.product)

    def coordinates(self) -> list[Coordinate]:
        some = [(i, s) for i, s in enumerate(self.spectra) if s.size > 1]
        return [Coordinate("relevance", i) for i, _ in some] + [
            Coordinate("beta", i) for i, s in some if s.kind != "complete"
        ]

    @cached_property
    def _active(self) -> Floats:
        """(d,) zero for variables of one value, which vary nothing."""
        return np.array([float(s.size > 1) for s in self.spectra])

    def relevances(self, scales: Scales) -> Floats:
        """(d,) r, zero for variables of one value."""
        return self._active * np.exp(scales.log_relevance)

    def norms(self, r: Floats) -> Floats:
        """(P,) e_q(r) for each order, one for the product: what makes each part's mean diagonal one."""
        return np.append(symmetric(r, self.highest), np.ones(int(self.product)))

    def parts(self, scales: Scales, X: Ints) -> Floats:
        n, r = len(X), self.relevances(scales)
        E = np.zeros((self.highest + 1, n, n))
        E[0] = 1.0
        full = np.ones((n, n))
        for i, s in enumerate(self.spectra):
            a = r[i] * square(centred(s, scales.log_beta[i]), X[:, i])
            E[1:] += a * E[:-1]
            if self.product:
                full *= _factor(a) / (1.0 + r[i])
        raw = E[1:] if not self.product else np.concatenate([E[1:], full[None]])
        return raw * inverse(self.norms(r))[:, None, None]

    def _without(self, parts: Floats, scales: Scales, X: Ints, i: int) -> tuple[Floats, Floats, Floats]:
        """Parts and norms without variable i (raw), and variable i's z: the recursion of e_q backwards."""
        r = self.relevances(scales)
        z = square(centred(self.spectra[i], scales.log_beta[i]), X[:, i])
        a, full_norms = r[i] * z, self.norms(r)
        A, norms = np.empty_like(parts), np.empty_like(full_norms)
        below, below_norm = np.ones_like(z), 1.0
        for q in range(self.highest):
            below = A[q] = parts[q] * full_norms[q] - a * below
            below_norm = norms[q] = max(full_norms[q] - r[i] * below_norm, 0.0)
        if self.product:
            A[-1] = parts[-1] * (1.0 + r[i]) / _factor(a)
            norms[-1] = 1.0
        return A, norms, z

    def _lower(self, A: Floats, norms: Floats) -> tuple[Floats, Floats]:
        """What variable i's z multiplies in each part: the order below, for the product the product itself."""
        low, low_norms = np.empty_like(A), np.empty_like(norms)
        low[0], low_norms[0] = 1.0, 1.0
        low[1 : self.highest], low_norms[1 : self.highest] = A[: self.highest - 1], norms[: self.highest - 1]
        if self.product:
            low[-1], low_norms[-1] = A[-1], 1.0
        return low, low_norms

    def swap(self, parts: Floats, scales: Scales, X: Ints, w: Floats, at: Coordinate) -> Split | Curve:
        A, norms, z = self._without(parts, scales, X, at.variable)
        low, low_norms = self._lower(A, norms)
        if at.name == "relevance":
            return self._relevance_curve(A, low * z, norms, low_norms, w)
        r, s, x = math.exp(scales.log_relevance[at.variable]), self.spectra[at.variable], X[:, at.variable]
        scale = inverse(norms + r * low_norms)
        rest, slope = np.tensordot(w * scale, A, 1), np.tensordot(r * w * scale, low, 1)

        def fill(theta: float, out: Floats) -> None:
            np.multiply(slope, square(centred(s, theta), x), out=out)
            out += rest

        return Curve(fill, lambda theta: (A + r * square(centred(s, theta), x) * low) * scale[:, None, None])

    @staticmethod
    def _relevance_curve(A: Floats, B: Floats, norms: Floats, low_norms: Floats, w: Floats) -> Curve:
        """Each part is (A + r B) / (norms + r low_norms)."""
        stack = np.concatenate([A, B]).reshape(2 * len(A), -1)

        def fill(theta: float, out: Floats) -> None:
            r = math.exp(theta)
            scale = w * inverse(norms + r * low_norms)
            np.dot(np.append(scale, r * scale), stack, out=out.T.reshape(-1))

        def parts(theta: float) -> Floats:
            r = math.exp(theta)
            return (A + r * B) * inverse(norms + r * low_norms)[:, None, None]

        return Curve(fill, parts)

    def swapped(self, parts: Floats, scales: Scales, X: Ints, at: Coordinate, theta: float) -> Floats:
        change = self.swap(parts, scales, X, np.ones(self.size), at)
        assert isinstance(change, Curve)
        return change.parts(theta)

    @property
    def summed(self) -> int:
        return self.highest + 2 * int(self.product)

    def table(self, scales: Scales, i: int) -> Table:
        return centred(self.spectra[i], scales.log_beta[i])

    def turned(self, scales: Scales, i: int, entries: Floats) -> list[Floats]:
        r = float(self.relevances(scales)[i])
        a = r * entries
        powers = [a]
        for q in range(2, self.highest + 1):  # numpy's powers above the second are slow where a is large
            powers.append(powers[-1] * a if self.spectra[i].size > WIDE else a**q)
        if self.product:  # signs are carried apart from magnitudes: a factor 1 + r z may be negative
            factor = _factor(a) / (1.0 + r)
            powers += [np.log(np.abs(factor)), np.where(factor < 0, 1.0, 0.0)]
        return powers

    def combine(self, sums: list[Floats], scales: Scales, w: Floats) -> Floats:
        scale = (w * inverse(self.norms(self.relevances(scales)))).astype(sums[0].dtype)
        e = newton(sums[: self.highest])
        K = scale[0] * e[0]
        for q in range(1, self.highest):
            e[q] *= scale[q]
            K += e[q]
        if self.product:
            full = np.exp(sums[self.highest], out=sums[self.highest])
            K += scale[-1] * np.where(np.rint(sums[self.highest + 1]) % 2 == 1, -full, full)
        return np.asarray(K)


def symmetric(r: Floats, highest: int) -> Floats:
    """(e_1(r), ..., e_highest(r)): e_q sums r_i times e_{q-1} of the values before i. Nothing cancels."""
    e, before = np.empty(highest), np.ones(len(r))
    for q in range(highest):
        upto = np.cumsum(r * before)
        e[q] = upto[-1] if len(r) else 0.0
        before = np.concatenate([[0.0], upto[:-1]])
    return e


def newton(p: Sequence[Floats]) -> list[Floats]:
    """e_1..e_Q from power sums p_1..p_Q: q e_q = sum_s (-1)^(s-1) e_{q-s} p_s (Newton's identities)."""
    e: list[Floats] = []
    for q in range(1, len(p) + 1):
        total = p[q - 1] * p[0].dtype.type((-1.0) ** (q - 1))
        for s in range(1, q):
            term = e[q - s - 1] * p[s - 1]
            total = total + term if s % 2 == 1 else total - term
        total /= p[0].dtype.type(q)
        e.append(total)
    return e


def inverse(norms: Floats) -> Floats:
    """1 / norms; zero where a norm is: an order above the number of variables has no part."""
    return np.where(norms > 0, 1.0 / np.where(norms > 0, norms, 1.0), 0.0)


def _factor(a: Floats) -> Floats:
    """1 + r z, kept from zero (binary: r = 1), so that it can be divided out again."""
    return np.where(np.abs(1.0 + a) < 1e-8, 1e-8, 1.0 + a)
