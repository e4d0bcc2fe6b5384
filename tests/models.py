"""Models, data and laws of priors that several tests share, and plain forms of the engine's formulas."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from carbo.inference import gibbs
from carbo.inference.data import Data, Hyper, Model
from carbo.inference.priors import Priors
from carbo.kernels.base import Kernel, Scales
from carbo.kernels.cross import Columns, Tables
from carbo.kernels.orders import Orders
from carbo.kernels.product import Product
from carbo.kernels.spectra import spectrum
from carbo.numerics import linalg
from carbo.numerics.types import Floats, Ints
from carbo.settings import STANDARD as DEFAULT
from carbo.space import graphs
from carbo.space.graphs import Graph
from tests import oracles
from tests.checks import p_value

MIXED = (graphs.complete(2), graphs.complete(3), graphs.path(4), graphs.complete(2), graphs.cycle(5))
PAPER = Priors()


def kernels(space: Sequence[Graph]) -> dict[str, Kernel]:
    spectra = tuple(spectrum(g) for g in space)
    highest = min(3, sum(g.size > 1 for g in space))
    return {
        "product": Product(spectra),
        "orders": Orders(spectra, highest),
        "windows": Orders(spectra, highest, True),
    }


def models(space: Sequence[Graph]) -> dict[str, Model]:
    made = kernels(space)
    return {
        "paper": Model(made["product"], PAPER),
        "default": Model(made["orders"], DEFAULT),
        "product, standard": Model(made["product"], DEFAULT),
        "windows": Model(made["windows"], DEFAULT),
        "orders, published": Model(made["orders"], PAPER),
    }


MODELS = tuple(models(MIXED))


def some_data(space: Sequence[Graph], n: int, seed: int = 0) -> Data:
    """Standardised values of a random additive function with a little noise."""
    rng = np.random.default_rng(seed)
    X = oracles.random_rows(rng, space, n)
    effects = [rng.normal(size=g.size) for g in space]
    y = sum(e[X[:, i]] for i, e in enumerate(effects)) + 0.1 * rng.normal(size=n)
    return Data(X, (y - y.mean()) / y.std())


def flat(h: Hyper) -> Floats:
    return np.concatenate([[h.mean, h.log_noise], h.log_w, h.scales.log_beta, h.scales.log_relevance])


def model_covariance(kernel: Kernel, space: Sequence[Graph], X: Ints, h: Hyper) -> Floats:
    """C by the oracles alone, at connectivity scale."""
    w, beta, r = np.exp(h.log_w), np.exp(h.scales.log_beta), np.exp(h.scales.log_relevance)
    if isinstance(kernel, Orders):
        parts = oracles.order_parts(space, "connectivity", beta, r, X, kernel.highest)
        if kernel.windowed:
            windows = oracles.adjacent_parts(space, r, X, kernel.highest)[: kernel.windows.orders]
            parts = np.concatenate([parts, windows])
    else:
        parts = oracles.product_gram(space, "connectivity", beta, X)[None]
    return np.asarray(np.tensordot(w, parts, 1) + math.exp(h.log_noise) * np.eye(len(X)))


# -- laws of the parameters ----------------------------------------------------------------------------------------

GEWEKE_SPACE = (graphs.complete(2), graphs.complete(3), graphs.path(4))
GEWEKE_ROWS = np.array([[0, 0, 0], [1, 0, 3], [0, 1, 1], [1, 2, 2], [1, 1, 0], [0, 2, 3]])
Laws = dict[str, oracles.Law]

STANDARD = Priors(level="standard", noise_scale=0.3, beta="normal", relevance_scale=0.8)


def parameter_laws(kernel: Kernel, priors: Priors) -> Laws:
    """The prior of every parameter that a sweep updates, by independent means."""
    everywhere = (-40.0, 40.0)
    beta = {
        "normal": oracles.normal_law(priors.beta_mean, priors.beta_sd, priors.supports.beta),
        "published": oracles.published_law(5.0, priors.supports.beta),
        "gamma": oracles.gamma_law(1.0, 3.0, priors.supports.beta),
    }[priors.beta]
    count = sum(c.name == "relevance" for c in kernel.coordinates())
    relevance = oracles.pooled_law(priors.relevance_scale, priors.supports.relevance, count)
    laws = {"mean": oracles.normal_law(0.0, 1.0, everywhere)}
    laws["log_noise"] = oracles.half_cauchy_law(priors.noise_scale, priors.supports.noise)
    for p in range(kernel.size):
        laws[f"log_w {p}"] = oracles.normal_law(0.0, priors.weight_sd, priors.supports.weight)
    for at in kernel.coordinates():
        laws[f"log_{at.name} {at.variable}"] = beta if at.name == "beta" else relevance
    return laws


def pooled(laws: Laws) -> dict[str, oracles.Pooled]:
    """The laws of parameters that are drawn together."""
    return {name: law for name, law in laws.items() if isinstance(law, oracles.Pooled)}


def joint_p_values(laws: Laws, ends: dict[str, list[float]]) -> dict[str, float]:
    """Of the largest of the pooled parameters, which are not independent; nothing where there are none."""
    if not (together := pooled(laws)):
        return {}
    largest = np.abs([ends[name] for name in together]).max(axis=0)
    return {"largest of the pooled": p_value(largest, next(iter(together.values())).largest_cdf)}


def prior_draws(rng: np.random.Generator, kernel: Kernel, laws: Laws, count: int) -> Iterator[Hyper]:
    d, together = len(kernel.spectra), pooled(laws)
    drawn = {name: law.draw(rng, count) for name, law in laws.items() if name not in together}
    for law in list(together.values())[:1]:
        drawn |= dict(zip(together, law.draw_together(rng, count).T, strict=True))
    for c in range(count):
        scales = {
            name: np.array([drawn[f"{name} {i}"][c] if f"{name} {i}" in drawn else 0.0 for i in range(d)])
            for name in ("log_beta", "log_relevance")
        }
        log_w = np.array([drawn[f"log_w {p}"][c] for p in range(kernel.size)])
        yield Hyper(float(drawn["mean"][c]), float(drawn["log_noise"][c]), log_w, Scales(**scales))


def parameter(h: Hyper, name: str) -> float:
    kind, _, index = name.partition(" ")
    if kind in ("log_beta", "log_relevance"):
        return float(getattr(h.scales, kind)[int(index)])
    return float(getattr(h, kind)[int(index)] if index else getattr(h, kind))


# -- hard data -----------------------------------------------------------------------------------------------------


def assert_sane(model: Model, data: Data, samples: Sequence[Hyper]) -> None:
    """Finite, inside every support, and of finite likelihood."""
    level, supports = gibbs.level_prior(model, data), model.priors.supports
    for h in samples:
        assert np.all(np.isfinite(flat(h)))
        assert level.mean[0] <= h.mean <= level.mean[1]
        assert np.all((h.log_w >= level.log_w[0]) & (h.log_w <= level.log_w[1]))
        assert supports.noise[0] <= h.log_noise <= supports.noise[1]
        for at in model.kernel.coordinates():
            low, high = getattr(supports, at.name)
            assert low <= getattr(h.scales, f"log_{at.name}")[at.variable] <= high
        assert math.isfinite(gibbs.start(model, data, h).fit.log_likelihood)


def hard_cases() -> dict[str, Data]:
    plain = some_data(MIXED, 12)
    huge = np.random.default_rng(0).normal(size=12) * 1e300
    outlier = np.append(np.zeros(11), 1.0)
    return {
        "one observation": Data(plain.X[:1], np.zeros(1)),
        "two observations": Data(plain.X[:2], np.array([-1.0, 1.0])),
        "constant values": Data(plain.X, np.zeros(12)),
        "constant rows": Data(np.tile(plain.X[:1], (12, 1)), plain.y),
        "duplicate rows": Data(np.concatenate([plain.X, plain.X]), np.concatenate([plain.y, plain.y])),
        "duplicates that disagree": Data(np.concatenate([plain.X, plain.X]), np.concatenate([plain.y, -plain.y])),
        "huge values, standardised": Data(plain.X, (huge / 1e300 - (huge / 1e300).mean()) / (huge / 1e300).std()),
        "one outlier": Data(plain.X, (outlier - outlier.mean()) / outlier.std()),
        "one variable never moves": Data(np.where(np.arange(5) == 2, 1, plain.X), plain.y),
    }


def gram(kernel: Kernel, scales: Scales, w: Floats, X: Ints) -> Floats:
    """Signal covariance (n, n) of observations X (n, d), from the kernel's parts."""
    return np.asarray(np.einsum("p,pij->ij", w, kernel.parts(scales, X)))


def prior_variances(kernel: Kernel, scales: Scales, w: Floats, rows: Ints) -> Floats:
    """Prior variances (N,) of rows (N, d), as the search computes them."""
    columns = Columns(kernel)
    return np.asarray(Tables(kernel, [scales], [w], columns).variances(columns.one_hot(rows), rows)[0])


def predict(gp: linalg.ConditionedGP, Ks: Floats, prior_variance: Floats) -> tuple[Floats, Floats]:
    """Mean and variance (N,) of a Gaussian process at points, from their covariances Ks (N, n) with observations."""
    V = np.linalg.solve(gp.L, Ks.T)
    return gp.mean + Ks @ gp.alpha, prior_variance - np.einsum("ij,ij->j", V, V)
