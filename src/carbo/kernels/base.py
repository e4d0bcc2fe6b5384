"""The interface of a kernel over the graph Cartesian product, and the tables of one variable, of mean diagonal one.

Notation
    n, N, d     observations, candidate rows, variables
    m_i         values of variable i; x_i, x'_i two of them
    T_i         diffusion table of variable i at beta_i, normalised: T_i = m_i sum_j c_j u_j u_j' / sum_j c_j,
                c_j = exp(-beta_i lambda_j) (paper eq. 5, supplement's remark on Psi)
    z_i         centred table of variable i: its rows sum to zero, its mean diagonal is one. On a complete graph it is
                T_i without the constant mode; on other graphs see `ordinal`
    r_i         relevance of variable i, >= 0
    e_q         elementary symmetric polynomial of order q in the d numbers r_i z_i(x_i, x'_i)
    p_s         power sum of order s of the same numbers
    parts       (P, n, n) matrices whose weighted sum is the signal covariance
    w           (P,) their weights: signal variances
    Q           highest order of interaction; 1 for the product kernel
    S, T        samples of the parameters, windows (see `windows`)

Product kernel (the paper's):     K = w_1 prod_i T_i                                    P = 1
Order kernel (docs/model.md):     K = sum_{q=1..Q} w_q e_q / e_q(r)                      P = Q, and more with windows

A kernel is used in two ways. While the parameters are sampled, `change` gives the covariance as a cheap function of one
coordinate. While the search runs, the parameters are fixed, and `cross.Sums` gives covariances of many rows at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, Protocol

import numpy as np

from carbo.kernels.ordinal import OrdinalTables
from carbo.kernels.spectra import WIDE, Spectrum, Table, table
from carbo.kernels.windows import Windows
from carbo.numerics.types import Floats, Ints


class Scales(NamedTuple):
    """The parameters of the tables: log beta and log relevance of each variable, each (d,)."""

    log_beta: Floats
    log_relevance: Floats


class Coordinate(NamedTuple):
    """One number that the sampler updates: the beta or the relevance of a variable."""

    name: Literal["beta", "relevance"]
    variable: int


class Split(NamedTuple):
    """Signal covariance w * P: entries of P between unequal values of one variable are proportional to t(theta)."""

    t: Callable[[float], float]
    variable: int
    P: Floats
    w: float


class Change(NamedTuple):
    """The kernel as a function of one coordinate theta, all other coordinates fixed.

    fill    fill(theta, out) writes the signal covariance into out (n, n), Fortran order
    parts   parts(theta) gives the kernel's parts (P, n, n). It may overwrite the parts that `Kernel.change` was given,
            so call it once at most
    split   the signal covariance as a `Split`, if it has that form: the sampler then eliminates observations
    """

    fill: Callable[[float, Floats], None]
    parts: Callable[[float], Floats]
    split: Split | None = None


class Slopes(NamedTuple):
    """Derivatives of sum(W * C) by log beta (d,), by log relevance (d,), and by log signal variance (P,)."""

    log_beta: Floats
    log_relevance: Floats
    log_w: Floats


class Gradient(Protocol):
    """The covariance of fixed observations and its derivatives, in buffers that the next call overwrites."""

    def covariance(self, scales: Scales, log_w: Floats, constant: float, noise: float) -> Floats:
        """C (n, n): the signal covariance, plus a constant at every entry, plus noise on the diagonal."""

    def slopes(self, W: Floats) -> Slopes:
        """Derivatives of sum(W * C) at the arguments of the last call of `covariance`, for a symmetric W (n, n)."""


class VarianceShares(NamedTuple):
    """Shares of the signal variance: of each order of interaction, and of the windows. None: no such part."""

    orders: dict[str, float] | None = None
    windows: float | None = None


class Factors(NamedTuple):
    """One factor of each neighbour before and after its change, (S, N, m): fresh arrays, made when needed."""

    before: Callable[[], Floats]
    after: Callable[[], Floats]


class Kernel(Protocol):
    """A sum of parts. The sampler, the surrogate and the search know a kernel by these members alone."""

    @property
    def spectra(self) -> tuple[Spectrum, ...]:
        """The spectrum of each variable's graph."""

    @property
    def size(self) -> int:
        """P, the number of parts."""

    @property
    def windows(self) -> Windows:
        """The windows that have parts in this kernel; empty in most kernels."""

    @property
    def differentiable(self) -> bool:
        """Whether `gradient` exists."""

    def with_windows(self) -> Kernel:
        """This kernel with parts for windows. Raises NotImplementedError if the kernel is not differentiable."""

    # For the sampler: one set of observations, changing parameters

    def coordinates(self) -> list[Coordinate]:
        """The coordinates that the covariance depends on; variables of one value have none."""

    def parts(self, scales: Scales, X: Ints) -> Floats:
        """The parts (P, n, n) for observations X (n, d)."""

    def change(self, parts: Floats, scales: Scales, X: Ints, w: Floats, at: Coordinate) -> Change:
        """The kernel as a function of coordinate `at`; parts (P, n, n) are those at `scales`, w (P,) their weights."""

    def gradient(self, X: Ints) -> Gradient:
        """Covariance and derivatives for X (n, d). Raises NotImplementedError if the kernel is not differentiable."""

    def variance_shares(self, w: Floats) -> VarianceShares:
        """Shares of the signal variance under weights w (S, P), averaged over the S samples."""

    # For the search: fixed parameters, many rows

    @property
    def n_sums(self) -> int:
        """Number of quantities that are summed over variables: one log product, or Q power sums."""

    def table(self, scales: Scales, i: int) -> Table:
        """The table of variable i."""

    def summands(self, scales: Scales, i: int, entries: Floats) -> list[Floats]:
        """Variable i's terms in each of the sums, for entries of its table."""

    def factor(self, first: Floats) -> Floats:
        """The factor u of a variable from its term in the first sum: the table's entry, times the relevance if any."""

    def equality_factors(self, scales: Scales) -> tuple[Floats, Floats]:
        """Factors of equal and of unequal values on complete graphs, each (d,)."""

    def weights(self, scales: Scales, w: Floats) -> Floats:
        """Weights of the layers in a covariance, (Q,): signal variances over norms."""

    def window_weights(self, scales: Scales, w: Floats) -> Floats:
        """Weights of the windows' products of tables in a covariance, (T,)."""

    def layers(self, sums: list[Floats]) -> list[Floats]:
        """The quantities that a covariance is linear in, from the sums: polynomials e_1..e_Q, or the one product."""

    def lower_layers(self, layers: list[Floats]) -> list[Floats]:
        """For each layer, the layer that `factor_slope` needs: e_0..e_{Q-1}, or the one product."""

    def half_factors(self, weights: Floats, layers: list[Floats]) -> tuple[list[Floats], list[Floats]]:
        """Factors of half a row, (weighted, plain), from the layers of this half.

        The covariance of a whole row is the sum of weighted(left half) times plain(right half).
        """

    def factor_slope(self, weights: Floats, u: Floats, lower: Sequence[Floats]) -> Floats:
        """Derivative of the covariance by one variable's factor u, in which it is affine, from the lower layers."""

    def neighbour_covariances(self, K: Floats, lower: Floats, at: Ints, factors: Factors, weights: Floats) -> Floats:
        """Covariances (S, N, m) of neighbours of rows `at`, in each of which one factor has changed.

        K (S, V, n) and lower (S, Q, V, n) are those of the rows, weights (S, Q).
        """


def unequal_entry(lam: float, size: int, log_beta: float) -> float:
    """T_i between unequal values of a complete graph: (1 - e) / (1 + (m - 1) e), e = exp(-beta lam).

    It is accurate for tiny beta.
    """
    x = math.exp(log_beta) * lam
    return -math.expm1(-x) / (1.0 + (size - 1) * math.exp(-x))


def diffusion_table(s: Spectrum, log_beta: float) -> Table:
    """The table T_i of one variable."""
    if s.kind == "complete":
        return Table(s.kind, s.size, np.array([1.0, unequal_entry(float(s.lam[-1]), s.size, log_beta)]))
    return table(s, np.exp(-math.exp(log_beta) * s.lam))


def centred_table(s: Spectrum, log_beta: float) -> Table:
    """The table z_i of one variable. On a complete graph it does not depend on beta."""
    if s.kind == "complete" or s.size == 1:
        return Table("complete", s.size, np.array([1.0, -1.0 / (s.size - 1)] if s.size > 1 else [0.0, 0.0]))
    return OrdinalTables(s, log_beta).table()


def pairwise_entries(t: Table, x: Ints) -> Floats:
    """Entries of a table for all pairs of values x (n,): (n, n)."""
    return np.asarray(t.columns(x)[x]) if t.size <= WIDE else t.at(x[:, None], x)
