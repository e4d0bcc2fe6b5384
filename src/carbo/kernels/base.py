"""Kernels over the graph Cartesian product: what they are, and the per-variable tables, of mean diagonal one.

Notation
    n, N, d     observations, candidate rows, variables
    m_i         values of variable i; x_i, x'_i two of them
    T_i         diffusion table of variable i at beta_i, normalised: T_i = m_i sum_j c_j u_j u_j' / sum_j c_j,
                c_j = exp(-beta_i lambda_j) (paper eq. 5, supplement's remark on Psi)
    z_i         the centred table, whose rows sum to zero, again of mean diagonal one: on a complete graph T_i without
                its constant mode; on others see `ordinal`
    r_i         relevance of variable i, >= 0
    e_q         elementary symmetric polynomial of order q in the d numbers r_i z_i(x_i, x'_i)
    p_s         power sum of order s of the same numbers
    parts       (P, n, n) matrices whose weighted sum is the signal covariance
    w           (P,) their weights: signal variances

Product kernel (the paper's):     K = w_1 prod_i T_i                                    P = 1
Order kernel (design section 6):  K = sum_{q=1..Q} w_q e_q / e_q(r)

Both are used in two ways. While sampling, `change` isolates one coordinate: the covariance is a cheap function of
it. While searching, `cross.Sums` fixes everything, and one-hot rows times tables give covariances of many rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, Protocol

import numpy as np

from carbo.kernels.ordinal import Levelled
from carbo.kernels.spectra import WIDE, Spectrum, Table, table
from carbo.kernels.windows import Windows
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


class Change(NamedTuple):
    """The kernel as a function of one coordinate theta, all other coordinates fixed.

    fill    fill(theta, out) writes the signal covariance into out (n, n), Fortran order
    parts   parts(theta) gives the kernel's parts (P, n, n); it may overwrite the parts that the change began
            with, and is then called once
    split   the signal covariance in a form that the sampler can eliminate observations from, where there is one
    """

    fill: Callable[[float, Floats], None]
    parts: Callable[[float], Floats]
    split: Split | None = None


class Slopes(NamedTuple):
    """Derivatives of sum(W * C): by log beta (d,), by log relevance (d,), by log signal variance (P,)."""

    log_beta: Floats
    log_relevance: Floats
    log_w: Floats


class Gradient(Protocol):
    """The covariance of some observations and its derivatives, in buffers that the next call overwrites."""

    def covariance(self, scales: Scales, log_w: Floats, constant: float, noise: float) -> Floats:
        """C (n, n): the signal covariance, plus a constant everywhere, plus noise on the diagonal."""

    def slopes(self, W: Floats) -> Slopes:
        """Derivatives of sum(W * C) where `covariance` was called last, for a symmetric W (n, n)."""


class Shares(NamedTuple):
    """Shares of the signal variance: by order of interaction, and of the windows. None where there is no such part."""

    orders: dict[str, float] | None = None
    windows: float | None = None


class Factors(NamedTuple):
    """One factor of each neighbour before and after its change, (S, N, m): fresh arrays, made when needed."""

    before: Callable[[], Floats]
    after: Callable[[], Floats]


class Kernel(Protocol):
    """A sum of parts. This is all that the sampler, the surrogate and the search know of a kernel."""

    @property
    def spectra(self) -> tuple[Spectrum, ...]:
        """One a variable."""

    @property
    def size(self) -> int:
        """P, the number of parts."""

    @property
    def windows(self) -> Windows:
        """The variables one after another that have parts; empty in most kernels."""

    @property
    def differentiable(self) -> bool:
        """Whether `gradient` exists."""

    def with_windows(self) -> Kernel:
        """This kernel with parts for the variables one after another; only of a differentiable kernel."""

    # The sampler's: one set of observations, changing parameters

    def coordinates(self) -> list[Coordinate]:
        """The coordinates that matter; variables of one value have none."""

    def parts(self, scales: Scales, X: Ints) -> Floats:
        """(P, n, n)."""

    def change(self, parts: Floats, scales: Scales, X: Ints, w: Floats, at: Coordinate) -> Change:
        """The kernel as a function of coordinate `at`, whose parts at `scales` are given."""

    def gradient(self, X: Ints) -> Gradient:
        """Covariance and derivatives for observations X; only of a differentiable kernel."""

    def shares(self, w: Floats) -> Shares:
        """Shares of the signal variance under weights w (S, P), averaged over the samples."""

    # The search's: fixed parameters, many rows

    @property
    def summed(self) -> int:
        """How many quantities are summed over variables: the log product, or power sums."""

    def table(self, scales: Scales, i: int) -> Table:
        """Variable i's table."""

    def summands(self, scales: Scales, i: int, entries: Floats) -> list[Floats]:
        """Entries of variable i's table as each summed quantity."""

    def factor(self, first: Floats) -> Floats:
        """What the first summed quantity says of the table's entry: the inverse of `summands`, scaled by relevance."""

    def flat(self, scales: Scales) -> tuple[Floats, Floats]:
        """Factors of equal and of unequal values of complete graphs, each (d,)."""

    def weights(self, scales: Scales, w: Floats) -> Floats:
        """(Q,) what multiplies the layers in a covariance: signal variances over norms."""

    def window_weights(self, scales: Scales, w: Floats) -> Floats:
        """(T,) what multiplies each window's product of tables."""

    def layers(self, sums: list[Floats]) -> list[Floats]:
        """From the summed quantities, what covariances are linear in: polynomials e_1..e_Q, or the one product."""

    def below(self, layers: list[Floats]) -> list[Floats]:
        """For each layer, what a change of one variable is computed from (see `rest`)."""

    def halves(self, weights: Floats, layers: list[Floats]) -> tuple[list[Floats], list[Floats]]:
        """Of half a row: factors to be multiplied with the other half's, weighted and plain.

        The covariance of left and right half together is the sum of weighted(left) times plain(right).
        """

    def rest(self, weights: Floats, u: Floats, below: Sequence[Floats]) -> Floats:
        """By how much the covariance grows with one variable's factor, which was u."""

    def changed(self, K: Floats, below: Floats, at: Ints, factors: Factors, weights: Floats) -> Floats:
        """Covariances (S, N, m) of neighbours of rows `at`, in each of which one factor has changed.

        K (S, V, n) and below (S, Q, V, n) are those of the rows, weights (S, Q).
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
