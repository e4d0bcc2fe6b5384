"""Posterior means and covariances of rows that are made of others: recombined halves, and changes in one variable.

Notation
    S, n        posterior samples, observations; M columns of one-hot rows (see `sums.Columns`)
    L           levels: values by which observations are told apart (see `ensemble.Levels`)
    K           (S, V, n) covariances of V rows with the observations
    alpha       (S, n) C^-1 (y - mean)
    F           (S, M, n) under the product kernel: each value's factor with each observation
    A           (S, M, n) under the order kernel: r_i z_i, each value with each observation; of a wide variable's
                values, F and A are computed when asked for
    e_m         (S, V, n) elementary symmetric polynomials of a row's A's; c_q weight of e_q (see `kernel`)
    a, c        the value a changed variable had, and the one it gets; u = A at a

Under the product kernel a row's covariances are its halves' multiplied, and change by F[c] / F[a]. Under the order
kernel e_q of a row is sum_j e_j(left half) e_{q-j}(right half), and a change of one variable adds
(A[c] - u) sum_m e_m g_m(u), with g_m(u) = sum_{q > m} c_q (-u)^(q-1-m): e_{q-1} without that variable, regrouped.
Means need these sums over observations only by the observations' value of the changed variable: one matrix product
gives all neighbours' means.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

from carbo.kernels.base import diffusion
from carbo.kernels.cross import Sums, dense
from carbo.kernels.orders import Orders, newton
from carbo.kernels.product import FLOOR, Product
from carbo.numerics.types import Floats, Ints
from carbo.surrogate.bounds import Around, Change, capped, looked_up
from carbo.surrogate.ensemble import FEW, Ensemble, Recombined

MANY = 256
"""Features of variables in a row from which on neighbours are told by those that differ from their parent's."""
HOPELESS = 1e10
"""Condition of the covariance up to which float32 is good enough to choose the starts that are then scored better."""


class Moves(Protocol):
    """A model's answers to rows made of others."""

    def spread(self, starts: Recombined) -> tuple[Floats, Floats]:
        """mu and an upper bound of sd of all recombined rows, each (S, len(starts)), to a few digits."""

    def around(self, parents: Ints, rows: Ints, owner: Ints) -> Around:
        """What is known of rows that each differ in one variable from parents[owner], before any sd is computed."""


def moves(ensemble: Ensemble) -> Moves:
    """The quickest way for this kernel."""
    if isinstance(ensemble.kernel, Product):
        return OfProduct(ensemble)
    if isinstance(ensemble.kernel, Orders) and not ensemble.kernel.product:
        return OfOrders(ensemble)
    return Plain(ensemble)


class Plain:
    """Every row from scratch."""

    def __init__(self, ensemble: Ensemble) -> None:
        self._of = ensemble

    def spread(self, starts: Recombined) -> tuple[Floats, Floats]:
        of, rows = self._of, starts.rows(np.arange(len(starts)))
        pieces = [of.mu(of.covariances(rows[i : i + 512], True)) for i in range(0, len(rows), 512)]
        mu = np.concatenate(pieces, axis=1)
        return mu, np.sqrt(of.prior_variance(rows))

    def around(self, parents: Ints, rows: Ints, owner: Ints) -> Around:
        of, change, variance = self._of, Change(self._of, parents, rows, owner), self._of.prior_variance(rows)

        def cap() -> Floats:
            return capped(of, parents, of.covariances(parents), change, variance)

        if len(rows) <= of.piece:
            K = of.covariances(rows)
            return Around(of, of.mu(K), variance, cap, lambda index, first: K[:, index, :first])
        pieces = (rows[i : i + of.piece] for i in range(0, len(rows), of.piece))
        mu = np.concatenate([of.mu(of.covariances(some)) for some in pieces], axis=1)
        return Around(of, mu, variance, cap, lambda index, first: of.covariances(rows[index], first=first))


class Half(NamedTuple):
    """Half rows: one-hot H (B, R, M), zero outside their own variables (B, d), and what they were made of (B, R, d)."""

    H: Floats
    rows: Ints
    own: NDArray[np.bool_]

    def sums(self, of: Sums, s: int) -> list[Floats]:
        """(B, R, n) each, under sample s."""
        return [total[0] for total in of.at(self.H, self.rows, self.own, slice(s, s + 1))]

    def astype(self, dtype: type[np.floating[Any]]) -> Half:
        """The same in another precision."""
        return self._replace(H=self.H.astype(dtype))


def halves(ensemble: Ensemble, starts: Recombined) -> tuple[Half, Half]:
    """The left and the right ones."""
    columns, (B, R, d) = ensemble.columns, starts.left.shape
    left, right = (
        Half(
            dense(columns.one_hot(rows.reshape(B * R, d))).reshape(B, R, -1)
            * np.repeat(own[:, columns.narrow], columns.sizes, axis=1)[:, None],
            rows,
            own,
        )
        for rows, own in ((starts.left, starts.cut), (starts.right, ~starts.cut))
    )
    return left, right


class OfProduct(Plain):
    """Under the product kernel."""

    def spread(self, starts: Recombined) -> tuple[Floats, Floats]:
        of = self._of
        variance = of.prior_variance(starts.rows(np.arange(len(starts) if of.varies else 1)))
        B, R, _ = starts.left.shape
        dtype: type[np.floating[Any]] = np.float32 if of.condition < HOPELESS else np.float64
        left, right = (half.astype(dtype) for half in halves(of, starts))
        solve = blas.strsm if dtype is np.float32 else blas.dtrsm
        mu = np.empty((of.size, B, R, R), dtype=dtype)
        explained = np.empty((of.size, B * R * R), dtype=dtype)
        K = np.empty((B, R, R, min(FEW, len(of.X))), dtype=dtype)
        sums = of.sums.astype(dtype)
        for s in range(of.size):
            w = dtype(of.w[s][0])
            (a,), (b,) = (half.sums(sums, s) for half in (left, right))
            np.exp(a, out=a)
            np.exp(b, out=b)
            a *= w
            mu[s] = (a * of.alpha[s].astype(dtype)) @ b.transpose(0, 2, 1)
            np.multiply(a[:, :, None, :FEW], b[:, None, :, :FEW], out=K)
            few = np.asfortranarray(of.gps[s].L[:FEW, :FEW], dtype=dtype)
            V = solve(1.0, few, K.reshape(B * R * R, -1).T, lower=1, overwrite_b=1).T
            explained[s] = np.vecdot(V, V)
        variance = variance.astype(dtype)
        sd = np.sqrt(np.maximum(variance - explained, dtype(1e-12) * variance + np.finfo(dtype).tiny))
        mu += of.mean[:, None, None, None].astype(dtype)
        return mu.reshape(of.size, -1), sd

    def around(self, parents: Ints, rows: Ints, owner: Ints) -> Around:
        of, change = self._of, Change(self._of, parents, rows, owner)
        K = of.covariances(parents)
        weighted = K * of.alpha[:, None]
        by_level = of.by_level(weighted)  # (S, V, L)
        mu = of.mean[:, None] + weighted.sum(axis=2)[:, owner]
        flat = np.flatnonzero(of.complete[change.i])
        rho = self._rho[:, change.i[flat]]
        mu[:, flat] += (rho - 1.0) * by_level[:, owner[flat], change.old[flat]]
        mu[:, flat] += (1.0 / rho - 1.0) * by_level[:, owner[flat], change.new[flat]]
        for j in np.flatnonzero(~of.complete):
            of_j = np.flatnonzero(change.i == j)
            levels, numbers = of.levels.of(int(j))
            for s in range(of.size):
                new, old = (self._between(int(j), s, v[of_j], levels) for v in (change.c, change.a))
                mu[s, of_j] += np.vecdot(new / old - 1.0, by_level[s, owner[of_j], numbers])

        def covariances(index: Ints, first: int | None) -> Floats:
            ratio = self._factors(change.i[index], change.c[index], first)
            ratio /= self._factors(change.i[index], change.a[index], first)
            ratio *= K[:, owner[index], :first]
            return ratio

        variance = of.prior_variance(rows)
        return Around(of, mu, variance, lambda: capped(of, parents, K, change, variance), covariances)

    @cached_property
    def _F(self) -> Floats:
        return np.exp(self._of.sums.tables[0])

    def _factors(self, i: Ints, values: Ints, first: int | None) -> Floats:
        out = looked_up(self._of, self._F, i, values, first)
        wide = self._of.columns.offset[i] < 0
        out[:, wide] = np.exp(out[:, wide])
        return out

    def _between(self, j: int, s: int, values: Ints, levels: Ints) -> Floats:
        """Variable j's table at those values and levels under sample s, (len(values), len(levels))."""
        table = diffusion(self._of.kernel.spectra[j], float(self._of.hypers[s].scales.log_beta[j]))
        return np.maximum(table.at(values[:, None], levels), FLOOR)

    @cached_property
    def _rho(self) -> Floats:
        """(S, d) rho of the complete graphs, one for the others."""
        of = self._of
        return np.array([[max(float(diffusion(s, b).values[1]), FLOOR) if s.kind == "complete" else 1.0
                          for s, b in zip(of.kernel.spectra, h.scales.log_beta, strict=True)]
                         for h in of.hypers])  # fmt: skip


class OfOrders(Plain):
    """Under the order kernel without its product term, with variables in a row or without."""

    def __init__(self, ensemble: Ensemble) -> None:
        super().__init__(ensemble)
        assert isinstance(ensemble.kernel, Orders)
        self._highest = ensemble.kernel.highest
        self._weights = ensemble.tables.weights  # c (S, Q)

    @staticmethod
    def _polynomials(sums: list[Floats]) -> list[Floats]:
        """e_0..e_Q (..., n) from power sums."""
        first, *rest = newton(sums)
        return [np.ones_like(first), first, *rest]

    def spread(self, starts: Recombined) -> tuple[Floats, Floats]:
        of = self._of
        variance = of.prior_variance(starts.rows(np.arange(len(starts) if of.varies else 1)))
        left, right = halves(of, starts)
        B, R, _ = starts.left.shape
        mu = np.empty((of.size, B, R, R))
        explained = np.empty((of.size, B * R * R))
        in_rows = len(of.tables.rows) > 0
        Psi = of.tables.rows.features(starts.rows(np.arange(len(starts) if in_rows else 0)))
        for s, c in enumerate(self._weights):
            weighted = self._beside(c, self._polynomials(left.sums(of.sums, s)))
            e = self._polynomials(right.sums(of.sums, s))
            tall = np.concatenate([b * of.alpha[s] for b in weighted], axis=2)
            mu[s] = tall @ np.concatenate(e, axis=2).transpose(0, 2, 1)
            products = (b[:, :, None, :FEW] * own[:, None, :, :FEW] for b, own in zip(weighted, e, strict=True))
            K = np.asarray(sum(products)).reshape(1, B * R * R, -1)
            of.sums.add_rows(K, Psi, slice(s, s + 1), FEW)
            few = np.asfortranarray(of.gps[s].L[:FEW, :FEW])
            V = blas.dtrsm(1.0, few, K[0].T, lower=1, overwrite_b=1).T
            explained[s] = np.vecdot(V, V)
        mu += of.mean[:, None, None, None]
        means = mu.reshape(of.size, -1)
        if in_rows:
            means += self._row_means(Psi)
        return means, np.sqrt(np.maximum(variance - explained, 1e-12 * variance))

    def _beside(self, c: Floats, e: list[Floats]) -> list[Floats]:
        """What multiplies each e_m of the other half: sum_j c_{j+m} e_j."""
        own = [np.zeros_like(e[0]) for _ in e]
        for m in range(self._highest + 1):
            for j in range(max(0, 1 - m), self._highest + 1 - m):
                own[m] += c[j + m - 1] * e[j]
        return own

    def around(self, parents: Ints, rows: Ints, owner: Ints) -> Around:
        of, change = self._of, Change(self._of, parents, rows, owner)
        e = self._polynomials(of.sums.at(of.columns.one_hot(parents), parents))
        K = np.asarray(sum(c[:, None, None] * own for c, own in zip(self._weights.T, e[1:], strict=True)))
        lower = np.stack(e[:-1], axis=1)  # (S, Q, V, n): e_0..e_{Q-1}
        mu = of.mu(K)[:, owner]
        in_rows, Psi = len(of.tables.rows) > 0, of.tables.rows.features(rows)
        if in_rows:
            mu += self._row_means(Psi)
        by_level = np.stack([of.by_level(lower[:, m] * of.alpha[:, None]) for m in range(self._highest)], axis=1)
        flat = np.flatnonzero(of.complete[change.i])
        self._add_flat(mu, by_level, change, owner, flat)
        for j in np.flatnonzero(~of.complete):
            of_j = np.flatnonzero(change.i == j)
            levels, numbers = of.levels.of(int(j))
            for s in range(of.size):
                new, u = (self._between(s, int(j), v[of_j], levels) for v in (change.c, change.a))
                by = by_level[s][:, owner[of_j], numbers]
                mu[s, of_j] += np.vecdot(new - u, self._rest(self._weights[s], u, by))

        def covariances(index: Ints, first: int | None) -> Floats:
            u, step = (looked_up(of, self._A, change.i[index], v[index], first) for v in (change.a, change.c))
            step -= u
            for s in range(of.size):
                step[s] *= self._rest(self._weights[s], u[s], lower[s][:, owner[index], :first])
            if Psi.shape[1] <= MANY:
                step += K[:, owner[index], :first]
                return of.sums.add_rows(step, Psi[index], first=first)
            step += whole[:, owner[index], :first]
            return of.sums.add_moved(step, Psi[index] - parent[owner[index]], first)

        variance, parent = of.prior_variance(rows), of.tables.rows.features(parents)
        whole = of.sums.add_rows(K.copy(), parent) if in_rows else K
        return Around(of, mu, variance, lambda: capped(of, parents, whole, change, variance), covariances)

    def _row_means(self, Psi: Floats) -> Floats:
        """(S, N): what variables in a row, features Psi (N, F), add to the means."""
        return np.asarray((Psi @ self._row_alpha).T)

    @cached_property
    def _row_alpha(self) -> Floats:
        """(F, S): the observations' features, summed with alpha and weighted."""
        of = self._of
        return np.asarray((of.sums.Psi.T @ of.alpha.T) * of.tables.row_weights[:, of.tables.rows.owner].T)

    def _add_flat(self, mu: Floats, by_level: Floats, change: Change, owner: Ints, flat: Ints) -> None:
        """Complete graphs: only observations that have the old or the new value are nearer or farther than before."""
        i = change.i[flat]
        same, other = self._equal[:, i], self._unequal[:, i]  # (S, N)
        for s, c in enumerate(self._weights):
            before = by_level[s][:, owner[flat], change.old[flat]]  # (Q, N)
            after = by_level[s][:, owner[flat], change.new[flat]]
            gap = other[s] - same[s]
            mu[s, flat] += gap * self._rest(c, same[s], before) - gap * self._rest(c, other[s], after)

    def _rest(self, c: Floats, u: Floats, e: Floats) -> Floats:
        """sum_m e_m g_m(u), with e (Q, ...) and u (...)."""
        g = np.full_like(u, c[-1])  # g_{Q-1}, then downwards: g_{m-1} = c_m - u g_m
        total = e[-1] * g
        for m in range(self._highest - 1, 0, -1):
            g *= -u
            g += c[m - 1]
            total += e[m - 1] * g
        return np.asarray(total)

    @cached_property
    def _A(self) -> Floats:
        return self._of.sums.tables[0]

    def _between(self, s: int, j: int, values: Ints, levels: Ints) -> Floats:
        """A of variable j at those values and levels under sample s, (len(values), len(levels))."""
        kernel, scales = self._of.kernel, self._of.hypers[s].scales
        return kernel.turned(scales, j, kernel.table(scales, j).at(values[:, None], levels))[0]

    @cached_property
    def _equal(self) -> Floats:
        """(S, d) A of equal values of complete graphs: the relevances."""
        kernel = self._of.kernel
        assert isinstance(kernel, Orders)
        return np.stack([kernel.relevances(h.scales) for h in self._of.hypers])

    @cached_property
    def _unequal(self) -> Floats:
        """(S, d) A of unequal values of complete graphs."""
        return np.asarray(-self._equal / np.maximum(self._of.sizes - 1, 1))
