"""Kernels over the graph Cartesian product: what they are, and the per-variable tables, of mean diagonal one.

Notation
    n, N, d     observations, candidate rows, variables
    m_i         values of variable i; x_i, x'_i two of them
    T_i         diffusion table of variable i at beta_i, normalised: T_i = m_i sum_j c_j u_j u_j' / sum_j c_j,
                c_j = exp(-beta_i lambda_j) (paper eq. 5, supplement's remark on Psi)
    z_i         the centred table, whose rows sum to zero, again of mean diagonal one: on a complete graph T_i without
                its constant mode; on others see `levelled`
    r_i         relevance of variable i, >= 0
    e_q         elementary symmetric polynomial of order q in the d numbers r_i z_i(x_i, x'_i)
    p_s         power sum of order s of the same numbers
    parts       (P, n, n) matrices whose weighted sum is the signal covariance
    w           (P,) their weights: signal variances

Product kernel (the paper's):     K = w_1 prod_i T_i                                    P = 1
Order kernel (design section 6):  K = sum_{q=1..Q} w_q e_q / e_q(r) (+ w_inf prod_i (1 + r_i z_i) / (1 + r_i))

Both are used in two ways. While sampling, `swap` isolates one coordinate: the covariance is a cheap function of
it. While searching, `sums.Sums` fixes everything, and one-hot rows times tables give covariances of many rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, Protocol

import numpy as np

from carbo.kernels.ordinal import Levelled
from carbo.kernels.spectra import WIDE, Spectrum, Table, table
from carbo.numerics.types import Floats, Ints


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

    def weights(self, scales: Scales, w: Floats) -> Floats:
        """(P,) what multiplies the parts in `combine`: their signal variances over their norms."""

    def combine(self, sums: list[Floats], weights: Sequence[Floats]) -> Floats:
        """Covariances from those quantities summed over variables, of any shape that weights broadcast to.

        The sums may be overwritten.
        """


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
    """z_i. On a complete graph it does not depend on beta."""
    if s.kind == "complete" or s.size == 1:
        return Table("complete", s.size, np.array([1.0, -1.0 / (s.size - 1)] if s.size > 1 else [0.0, 0.0]))
    return Levelled(s, log_beta).table()


def square(t: Table, x: Ints) -> Floats:
    """M[x, x'] for all pairs of observed values x (n,): (n, n)."""
    return np.asarray(t.columns(x)[x]) if t.size <= WIDE else t.at(x[:, None], x)
