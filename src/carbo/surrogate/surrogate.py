"""What the data say: the model of the function and that of failures, each with its chain, and the model's shape: a warp
of the values, and whether adjacent variables have parts of their own.

Notation
    X       (n, d) evaluated rows in the order told; values (n,) as told, NaN where the evaluation failed
    y       values of the evaluations that succeeded, warped and standardised (`values`)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from carbo.inference import chain as chains
from carbo.inference.chain import Chain
from carbo.inference.data import Data
from carbo.inference.gibbs import Model, Sampling
from carbo.inference.outcome import Scale, standardise
from carbo.inference.selection import MULTIPLES, Models, Shape, looked
from carbo.kernels.base import Kernel
from carbo.kernels.orders import Orders
from carbo.kernels.product import Product
from carbo.kernels.spectra import spectra_of
from carbo.kernels.windows import Adjacent
from carbo.numerics.threads import limited
from carbo.numerics.types import Floats, Ints
from carbo.settings import STANDARD, Settings
from carbo.space.space import Space
from carbo.surrogate import ensemble as ens
from carbo.surrogate.subset import Given, Shares, shares, spared

FAILURE_SAMPLES = 3
"""Posterior samples of the model of failures; its burn-in is as many sweeps as the objective's."""


class Told(NamedTuple):
    """What has been evaluated."""

    X: Ints
    values: Floats

    @property
    def succeeded(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        return np.isfinite(self.values)


class View(NamedTuple):
    """Data as the model sees them, how they became so, and the chain that goes on from there."""

    data: Data
    share: Shares
    scale: Scale
    shape: Shape
    chain: Chain | None

    @property
    def given(self) -> Given:
        return self.share.of(self.data)


class Failures(NamedTuple):
    """A Gaussian process on failure (1) and success (0), read as a probability (Rasmussen and Williams, 6.5)."""

    model: ens.Ensemble
    scale: Scale

    def log_success(self, rows: Ints) -> Floats:
        mu, sd = self.model.predict(rows)
        noise = np.exp([h.log_noise for h in self.model.hypers])[:, None]
        threshold = (0.5 - self.scale.centre) / self.scale.unit
        return np.asarray(np.log(np.maximum(ndtr((threshold - mu) / np.sqrt(sd**2 + noise)).mean(axis=0), 1e-300)))


class Beliefs:
    """Models over a space. What moves is the chains and the shape; `advance` and `failures` move them, nothing else."""

    def __init__(self, space: Space, settings: Settings) -> None:
        self.settings = settings
        kernel = kernel_of(space, settings)
        self.models, self.failure_model = models_of(kernel, settings), Model(kernel, STANDARD)
        self.chain: Chain | None = None
        self.failure_chain: Chain | None = None
        self.shape = Shape()

    @property
    def model(self) -> Model:
        """The one in use."""
        return self.models.of(self.shape)

    def view(self, told: Told) -> View:
        """What the model is to see now, its shape looked at again where that is due."""
        ok = told.succeeded
        X, values = told.X[ok], told.values[ok]
        chain, share = self.chain, self._shares(X, values)
        shape = self.shape
        if not self.models.alone:
            with limited(len(share.learn), self.settings.threads):
                shape, mode = looked(shape, X[share.learn], values[share.learn], self.models, len(values))
            if mode is not None and chain is not None:  # what was learned of another kernel's posterior is of no use
                chain = Chain(mode, chain.tuning if shape.adjacent == self.shape.adjacent else None)
        y, scale = standardise(values, shape.multiple)
        return View(Data(X, y), share, scale, shape, chain)

    def fit(self, rng: np.random.Generator, view: View) -> tuple[Chain, ens.Ensemble]:
        """The view's chain advanced by one draw, and the model that the draw's samples make."""
        return self._fit(rng, view.chain, self.models.of(view.shape), view.given, self.settings.sampling)

    def advance(self, rng: np.random.Generator, told: Told) -> tuple[ens.Ensemble, View]:
        """The model after one more draw, and what it has seen."""
        view = self.view(told)
        chain, model = self.fit(rng, view)
        self.shape, self.chain = view.shape, chain  # together: a chain of another kernel is of no use
        return model, view

    def failures(self, rng: np.random.Generator, told: Told) -> Failures | None:
        """The model of failures after one more draw; None where there are none."""
        ok = told.succeeded
        if ok.all():
            return None
        y, scale = standardise(1.0 - ok.astype(np.float64))
        given = self._shares(*told).of(Data(told.X, y))
        sampling = self.settings.sampling._replace(samples=FAILURE_SAMPLES)
        self.failure_chain, model = self._fit(rng, self.failure_chain, self.failure_model, given, sampling)
        return Failures(model, scale)

    def _shares(self, X: Ints, values: Floats) -> Shares:
        settings = self.settings
        return shares(self.models.plain.kernel.spectra, X, values, (settings.learn_from, settings.predict_from))

    def _fit(
        self, rng: np.random.Generator, chain: Chain | None, model: Model, given: Given, sampling: Sampling
    ) -> tuple[Chain, ens.Ensemble]:
        with limited(len(given.learn.y), self.settings.threads):
            chain, hypers = chains.draw(rng, chain, model, given.learn, sampling)
        if self.settings.predict_from is not None:
            hypers = spared(hypers, len(given.predict.y))
        return chain, ens.build(model.kernel, hypers, given.predict)


def models_of(kernel: Kernel, settings: Settings) -> Models:
    """The models that the settings allow, and the warps."""
    plain, multiples = Model(kernel, settings.priors), MULTIPLES if settings.warps else MULTIPLES[:1]
    if not (settings.adjoins and isinstance(kernel, Orders)):
        return Models(plain, None, multiples)
    adjacent = Adjacent(kernel.spectra, kernel.highest, False)
    if not len(adjacent.rows):
        return Models(plain, None, multiples)
    beside = Model(adjacent, settings.priors)
    return Models(plain, beside, multiples) if settings.adjacent == "auto" else Models(beside, None, multiples)


def kernel_of(space: Space, settings: Settings) -> Kernel:
    """The kernel that the settings name, over the graphs of the space."""
    spectra = spectra_of(space.graphs, settings.graph_scale)
    if settings.kernel == "product":
        return Product(spectra)
    active = sum(s.size > 1 for s in spectra)
    return Orders(spectra, max(1, min(settings.highest_order, active)), settings.product_term)
