"""Slow exact truths: dense matrix exponentials, sums over all subsets, inverses, quadrature, sixty decimal digits.

Nothing here uses the package's arithmetic, only its names for graphs and scales.

Notation
    k       values of one variable; L (k, k) its graph's Laplacian
    beta    (d,) one for each variable; r (d,) relevances; rows (n, d)
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import TypeVar

import numpy as np
from scipy import integrate, special, stats
from scipy.linalg import expm

from carbo.numerics.types import Floats, Ints
from carbo.space import graphs
from carbo.space.graphs import Graph, Scale

Number = TypeVar("Number", float, Floats)

# -- spaces ----------------------------------------------------------------------------------------------------------


def random_weighted(rng: np.random.Generator, k: int) -> Graph:
    """A connected graph with random weights."""
    W = np.triu(rng.exponential(size=(k, k)) * (rng.random((k, k)) < 0.6), 1) + np.eye(k, k=1) * 0.1
    return graphs.from_weights(W + W.T, k, "random")


def random_graph(rng: np.random.Generator, largest: int = 5) -> Graph:
    """Of any kind, 1 to `largest` values."""
    makers: list[Callable[[int], Graph]] = [
        graphs.complete,
        graphs.path,
        graphs.cycle,
        lambda k: random_weighted(rng, k),
    ]
    return makers[int(rng.integers(4))](int(rng.integers(1, largest + 1)))


def random_rows(rng: np.random.Generator, space: Sequence[Graph], n: int) -> Ints:
    return np.asarray(rng.integers(0, [g.size for g in space], size=(n, len(space))), dtype=np.intp)


def all_rows(space: Sequence[Graph]) -> Ints:
    """Every vertex, in the order of the Kronecker product."""
    return np.array(list(itertools.product(*(range(g.size) for g in space))), dtype=np.intp)


# -- kernels ---------------------------------------------------------------------------------------------------------


def laplacian(graph: Graph, scale: Scale) -> Floats:
    """D - W, edge by edge; scaled so that the smallest non-zero eigenvalue is 2, unless as published."""
    k = graph.size
    W = np.zeros((k, k))
    for a, b in itertools.combinations(range(k), 2):
        if graph.weights is not None:
            W[a, b] = graph.weights[a, b]
        elif graph.kind == "complete":
            W[a, b] = 1.0
        else:
            W[a, b] = float(b - a == 1 or (graph.kind == "cycle" and b - a == k - 1))
    W += W.T
    L = np.diag(W.sum(axis=1)) - W
    if scale == "published" or k == 1:
        return L
    lam = np.linalg.eigvalsh(L)
    return np.asarray(L * (2.0 / lam[lam > 1e-9].min()))


def laplacian_of_path(k: int) -> Floats:
    """D - W of a path, without the loop over pairs."""
    W = np.eye(k, k=1) + np.eye(k, k=-1)
    return np.asarray(np.diag(W.sum(axis=1)) - W)


def unit(M: Floats) -> Floats:
    """M scaled to mean diagonal one."""
    return np.asarray(M * (len(M) / np.trace(M)))


def factor(graph: Graph, scale: Scale, beta: float) -> Floats:
    """exp(-beta L), of mean diagonal one: (k, k)."""
    return unit(np.asarray(expm(-beta * laplacian(graph, scale))))


def centred_factor(graph: Graph, scale: Scale, beta: float) -> Floats:
    """(k, k): (1 + beta L / nu)^-(nu + 1/2) with nu = 5/2 as a correlation matrix, given that the mean is zero.

    What beta adds beyond 250 over the smallest non-zero eigenvalue is left out, as it is in `levelled`.
    """
    k = graph.size
    if k == 1:
        return np.zeros((1, 1))
    L = laplacian(graph, scale)
    eigenvalues = np.linalg.eigvalsh(L)
    connected = eigenvalues[eigenvalues > 1e-9 * eigenvalues[-1]]
    beta = min(beta, 250.0 / connected[0]) if connected.size else beta
    M = np.linalg.matrix_power(np.linalg.inv(np.eye(k) + beta / 2.5 * L), 3)
    R = M / np.sqrt(np.outer(M.diagonal(), M.diagonal()))
    mean = np.full((1, k), 1.0 / k)
    gain = R @ mean.T @ np.linalg.inv(mean @ R @ mean.T)
    return unit(R - gain @ mean @ R)


def product_graph_kernel(space: Sequence[Graph], scale: Scale, beta: Floats) -> Floats:
    """exp of minus the Kronecker sum of all beta_i L_i, over every vertex, normalised per variable (paper eq. 5)."""
    sizes = [g.size for g in space]
    total = np.zeros((math.prod(sizes), math.prod(sizes)))
    norm = 1.0
    for i, g in enumerate(space):
        L = beta[i] * laplacian(g, scale)
        before, after = math.prod(sizes[:i]), math.prod(sizes[i + 1 :])
        total += np.kron(np.kron(np.eye(before), L), np.eye(after))
        norm *= float(np.trace(expm(-L))) / g.size
    return np.asarray(expm(-total) / norm)


def product_gram(space: Sequence[Graph], scale: Scale, beta: Floats, rows: Ints, others: Ints | None = None) -> Floats:
    """prod_i T_i between rows and others, factor by factor."""
    others = rows if others is None else others
    K = np.ones((len(rows), len(others)))
    for i, g in enumerate(space):
        K *= factor(g, scale, float(beta[i]))[np.ix_(rows[:, i], others[:, i])]
    return K


def order_parts(space: Sequence[Graph], scale: Scale, beta: Floats, r: Floats, rows: Ints, highest: int) -> Floats:
    """(highest, n, n): each order as the sum over all subsets of that many variables, divided by its value at z = 1.

    Variables of one value take no part.
    """
    active = [i for i, g in enumerate(space) if g.size > 1]
    a = {i: r[i] * centred_factor(space[i], scale, float(beta[i]))[np.ix_(rows[:, i], rows[:, i])] for i in active}
    n = len(rows)
    parts = []
    for q in range(1, highest + 1):
        total = np.zeros((n, n))
        for subset in itertools.combinations(active, q):
            total += np.prod([a[i] for i in subset], axis=0)
        norm = elementary([float(r[i]) for i in active], q)
        parts.append(total / norm if norm > 0 else total)
    return np.stack(parts)


def elementary(values: Iterable[float], q: int) -> float:
    """e_q of the values: the sum over all products of q of them."""
    return math.fsum(math.prod(chosen) for chosen in itertools.combinations(values, q))


def adjacent_parts(space: Sequence[Graph], r: Floats, rows: Ints, highest: int, columns: int = 64) -> Floats:
    """(highest - 1, n, n): the sums over two, three, ... categories one after another, divided by their value at z = 1.

    Variables of one value are passed over; where any other is no complete graph, or the values are too many, nothing.
    """
    active, n = [i for i, g in enumerate(space) if g.size > 1], len(rows)
    parts = []
    for q in range(2, highest + 1):
        total, norm = np.zeros((n, n)), 0.0
        for start in range(len(active)):
            some = active[start : start + q]
            if len(some) < q or any(space[i].kind != "complete" for i in some):
                continue
            if math.prod(space[i].size - 1 for i in some) > columns:
                continue
            one, own = np.ones((n, n)), 1.0
            for i in some:
                equal = rows[:, i, None] == rows[:, i]
                one *= r[i] * np.where(equal, 1.0, -1.0 / (space[i].size - 1))
                own *= float(r[i])
            total, norm = total + one, norm + own
        parts.append(total / norm if norm > 0 else total)
    return np.array(parts).reshape(highest - 1, n, n)


# -- Gaussian processes ----------------------------------------------------------------------------------------------


def conditional(C: Floats, Ks: Floats, Kss: Floats, r: Floats) -> tuple[Floats, Floats]:
    """Mean (N,) and covariance (N, N) of the latent function given residuals r, by the inverse; C includes noise."""
    inverse = np.linalg.inv(C)
    return Ks @ inverse @ r, Kss - Ks @ inverse @ Ks.T


def log_normal_density(C: Floats, r: Floats) -> float:
    return float(stats.multivariate_normal(np.zeros(len(r)), C).logpdf(r))


def whiten(C: Floats, r: Floats) -> Floats:
    """Independent standard normals if r ~ N(0, C)."""
    return np.asarray(np.linalg.solve(np.linalg.cholesky(C), r))


# -- improvement -----------------------------------------------------------------------------------------------------


def normal_density(z: float) -> float:
    return math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)


PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803482534211706798")


def log_h(z: float) -> float:
    """log(phi(z) + z Phi(z)) from a hundred and fifty digits: power series near 0, continued fraction in the tail."""
    with localcontext() as context:
        context.prec = 150
        x = Decimal(z)
        log_phi = -x * x / 2 - (2 * PI).ln() / 2
        if abs(x) <= 12:
            term, total, n = x, x, 0
            while abs(term) > Decimal("1e-120"):
                n += 1
                term *= x * x / (2 * n + 1)
                total += term
            phi = log_phi.exp()
            return float((phi + x * (Decimal("0.5") + phi * total)).ln())
        assert x < 0
        v = -x
        mills = v
        for n in range(1500, 0, -1):  # Phi(-v) / phi(v) = 1 / (v + 1 / (v + 2 / (v + 3 / ...)))
            mills = v + n / mills
        return float(log_phi + (1 - v / mills).ln())


def expected_improvement(mu: float, sd: float, best: float) -> float:
    """By quadrature of max(best - f, 0)."""
    low = mu - 40.0 * sd
    if best <= low:
        return 0.0
    value, _ = integrate.quad(
        lambda f: (best - f) * normal_density((f - mu) / sd) / sd,
        low,
        best,
        points=[p for p in (mu - 3 * sd, mu, mu + 3 * sd) if low < p < best],
        epsabs=0.0,
        epsrel=1e-12,
        limit=500,
    )
    return float(value)


def expected_max(a: Floats, b: Floats) -> float:
    """E max_i (a_i + b_i Z) by quadrature between all places where two lines cross."""
    crossings = {-12.0, 12.0}
    for i, j in itertools.combinations(range(len(a)), 2):
        if b[i] != b[j]:
            cut = float((a[j] - a[i]) / (b[i] - b[j]))
            if abs(cut) < 12.0:
                crossings.add(cut)
    edges = sorted(crossings)
    return math.fsum(
        integrate.quad(lambda z: float(np.max(a + b * z)) * normal_density(z), low, high, epsabs=1e-13)[0]
        for low, high in itertools.pairwise(edges)
    )


# -- priors ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Law:
    """A distribution on an interval, from the antiderivative of its density (up to a factor)."""

    antiderivative: Callable[[Floats], Floats]
    support: tuple[float, float]

    def cdf(self, x: Floats) -> Floats:
        low, high = (self.antiderivative(np.array(end)) for end in self.support)
        return np.asarray((self.antiderivative(np.asarray(x)) - low) / (high - low))

    def draw(self, rng: np.random.Generator, count: int) -> Floats:
        """By bisection of the CDF."""
        u = rng.random(count)
        low, high = np.full(count, self.support[0]), np.full(count, self.support[1])
        for _ in range(60):
            middle = (low + high) / 2
            below = self.cdf(middle) < u
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.asarray((low + high) / 2)


def horseshoe_law(tau: float, support: tuple[float, float]) -> Law:
    """Of log x, for x with density proportional to log(1 + 2 tau^2 / x^2)."""
    a = math.sqrt(2.0) * tau

    def antiderivative(theta: Floats) -> Floats:
        x = np.exp(theta)
        return np.asarray(x * np.log1p((a / x) ** 2) + 2.0 * a * np.arctan(x / a))

    return Law(antiderivative, support)


def published_law(tau: float, support: tuple[float, float]) -> Law:
    """Of theta with density proportional to log(1 + 2 tau^2 e^(-2 theta)): the same bound without its Jacobian."""
    return Law(lambda theta: np.asarray(0.5 * special.spence(1.0 + 2.0 * tau**2 * np.exp(-2.0 * theta))), support)


def half_cauchy_law(scale: float, support: tuple[float, float]) -> Law:
    """Of log x, for half-Cauchy x."""
    law = stats.halfcauchy(scale=scale)
    return Law(lambda theta: np.asarray(law.cdf(np.exp(theta))), support)


def gamma_law(shape: float, rate: float, support: tuple[float, float]) -> Law:
    """Of log x, for Gamma x."""
    law = stats.gamma(shape, scale=1.0 / rate)
    return Law(lambda theta: np.asarray(law.cdf(np.exp(theta))), support)


def normal_law(mean: float, sd: float, support: tuple[float, float]) -> Law:
    law = stats.norm(mean, sd)
    return Law(lambda x: np.asarray(law.cdf(x)), support)


def t_law(df: float, scale: float, support: tuple[float, float]) -> Law:
    law = stats.t(df, scale=scale)
    return Law(lambda x: np.asarray(law.cdf(x)), support)


@dataclass(frozen=True)
class Pooled(Law):
    """Of each of `count` numbers that are normal about 0 with one standard deviation s, all of them in the support;
    (scale / s)^2 is exponential. Means over s by the midpoints of its quantiles.
    """

    scale: float
    count: int

    @property
    def deviations(self) -> Floats:
        return np.asarray(self.scale / np.sqrt(stats.expon.isf((np.arange(4_000) + 0.5) / 4_000)))

    def within(self, low: Floats, high: Floats) -> Floats:
        """P(low < x < high) for each s, in the last axis."""
        s = self.deviations
        return np.asarray(stats.norm.cdf(high[..., None] / s) - stats.norm.cdf(low[..., None] / s))

    def largest_cdf(self, m: Floats) -> Floats:
        """Of the largest absolute value of the `count` numbers: where they are not independent it is another law."""
        low, high = (np.array(end) for end in self.support)
        all_small = self.within(np.maximum(-m, low), np.minimum(m, high)) ** self.count
        return np.asarray(all_small.mean(axis=-1) / (self.within(low, high) ** self.count).mean())

    def draw_together(self, rng: np.random.Generator, draws: int) -> Floats:
        """(draws, count), by rejection."""
        found = np.zeros((0, self.count))
        while len(found) < draws:
            s = self.scale / np.sqrt(rng.exponential(size=(draws, 1)))
            x = s * rng.standard_normal((draws, self.count))
            found = np.concatenate([found, x[((x > self.support[0]) & (x < self.support[1])).all(axis=1)]])
        return found[:draws]


def pooled_law(scale: float, support: tuple[float, float], count: int) -> Pooled:
    low, high = (np.array(end) for end in support)

    def antiderivative(x: Floats) -> Floats:
        below = law.within(np.full(np.shape(x), -np.inf), np.asarray(x))
        return np.asarray((below * law.within(low, high) ** (count - 1)).mean(axis=-1))

    law = Pooled(antiderivative, support, scale, count)
    return law


def log_pooled(x: Floats, scale: float) -> float:
    """Log density of numbers as in `Pooled`, before they are cut off: Student's t with two degrees of freedom."""
    law = stats.multivariate_t(np.zeros(len(x)), scale**2 * np.eye(len(x)), df=2)
    return float(law.logpdf(x))


def richardson(f: Callable[[float], Number], h: float = 0.02) -> Number:
    """f'(0): central differences at h, h / 2 and h / 4, the errors of order h^2 and h^4 removed."""
    one, two, four = ((f(h / s) - f(-h / s)) / (2.0 * h / s) for s in (1.0, 2.0, 4.0))
    finer, finest = (4.0 * two - one) / 3.0, (4.0 * four - two) / 3.0
    return (16.0 * finest - finer) / 15.0
