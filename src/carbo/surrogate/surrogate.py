"""The surrogate: a model of the function and a model of failures, each an ensemble of Gaussian processes.

Notation
    X       (n, d) evaluated rows in the order they were told; values (n,) as told, NaN for a failed evaluation
    y       values of the successful evaluations, warped and standardised (`outcome`)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from carbo.errors import SettingsError
from carbo.inference import chain as chains
from carbo.inference.chain import Chain
from carbo.inference.data import Data, Hyper, Model
from carbo.inference.outcome import Scale, standardise
from carbo.inference.selection import MULTIPLES, Models, Shape, reselect
from carbo.kernels.base import Kernel
from carbo.kernels.orders import Orders
from carbo.kernels.product import Product
from carbo.kernels.spectra import Spectrum, spectra_of
from carbo.numerics.threads import limit_threads
from carbo.numerics.types import Bools, Floats, Ints
from carbo.settings import STANDARD, Settings
from carbo.space.row_space import RowSpace
from carbo.surrogate.ensemble import Ensemble, build
from carbo.surrogate.subset import SubsetData, Subsets, choose_subsets, thin_samples

FAILURE_SAMPLES = 3
"""Posterior samples of the model of failures. Its burn-in is as long as that of the objective's model."""


class Observations(NamedTuple):
    """The evaluated rows X (n, d) and their values (n,); NaN for a failed evaluation."""

    X: Ints
    values: Floats

    @property
    def succeeded(self) -> Bools:
        return np.isfinite(self.values)


class Belief(NamedTuple):
    """All that inference keeps between suggestions: both chains, and the selected shape of the objective's model."""

    chain: Chain | None = None
    failure_chain: Chain | None = None
    shape: Shape = Shape()


class View(NamedTuple):
    """The data of the objective's model: successful observations, the subsets to use, and the scale of y."""

    data: Data
    share: Subsets
    scale: Scale

    @property
    def given(self) -> SubsetData:
        return self.share.of(self.data)

    @property
    def best(self) -> Ints:
        """The row (d,) of the smallest value."""
        return np.asarray(self.data.X[int(np.argmin(self.data.y))])


class Failures(NamedTuple):
    """A Gaussian process on failure (1) and success (0), read as a probability (Rasmussen and Williams, 6.5)."""

    model: Ensemble
    scale: Scale

    def log_success(self, rows: Ints) -> Floats:
        mu, sd = self.model.predict(rows)
        noise = np.exp([h.log_noise for h in self.model.hypers])[:, None]
        threshold = (0.5 - self.scale.centre) / self.scale.unit
        return np.asarray(np.log(np.maximum(ndtr((threshold - mu) / np.sqrt(sd**2 + noise)).mean(axis=0), 1e-300)))


class Posterior(NamedTuple):
    """The conditioned models, and the data of the objective's model. `failures`: None if no evaluation has failed."""

    model: Ensemble
    view: View
    failures: Failures | None = None

    @property
    def indices(self) -> Ints:
        """(n',) the index in y of each of the model's observations."""
        assert self.model.order is not None
        return self.view.share.predict[self.model.order]

    def predict(self, rows: Ints) -> tuple[Floats, Floats]:
        """Mean and standard deviation (N,) of the function at rows (N, d), in the units of told values."""
        return self.view.scale.moments(*self.model.predict(rows))

    def leave_one_out(self) -> tuple[Floats, Floats]:
        """Mean and standard deviation of each told value given all others; NaN for values outside the model's data."""
        mean, variance = self.model.leave_one_out()
        means, sds = (np.full(len(self.view.data.y), np.nan) for _ in range(2))
        means[self.indices], sds[self.indices] = self.view.scale.moments(mean, np.sqrt(variance))
        return means, sds


class Surrogate:
    """Models over a space. It has no state: a belief comes in, and the next belief goes out."""

    def __init__(self, space: RowSpace, settings: Settings) -> None:
        self.settings, self._spectra = settings, spectra_of(space.graphs, settings.graph_scale)
        active = sum(s.size > 1 for s in self._spectra)
        kernel = kernel_maker(settings.kernel)(self._spectra, max(1, min(settings.highest_order, active)))
        self.models, self.failure_model = models_of(kernel, settings), Model(kernel, STANDARD)

    def advance(
        self, rng: np.random.Generator, belief: Belief, observations: Observations, failures: bool = True
    ) -> tuple[Belief, Posterior]:
        """The next belief, and the models after one more draw of their chains; `failures`: with that of failures."""
        belief, view = self.view(belief, observations)
        chain, model = self.draw(rng, belief.chain, self.models.of(belief.shape), view.given)
        belief, posterior = belief._replace(chain=chain), Posterior(model, view)
        if not failures or observations.succeeded.all():
            return belief, posterior
        failure_chain, failure_model = self._fit_failures(rng, belief.failure_chain, observations)
        return belief._replace(failure_chain=failure_chain), posterior._replace(failures=failure_model)

    def view(self, belief: Belief, observations: Observations) -> tuple[Belief, View]:
        """The data of the objective's model, after a new selection of its shape if one is due. Nothing is drawn."""
        X, values = observations.X[observations.succeeded], observations.values[observations.succeeded]
        share, shape, chain = self._shares(X, values), belief.shape, belief.chain
        if not self.models.alone:
            with limit_threads(len(share.learn), self.settings.threads):
                shape, mode = reselect(shape, X[share.learn], values[share.learn], self.models, len(values))
            if mode is not None and chain is not None:  # the old chain fits another posterior
                chain = Chain(mode, chain.tuning if shape.adjacent == belief.shape.adjacent else None)
        y, scale = standardise(values, shape.multiple)
        return belief._replace(chain=chain, shape=shape), View(Data(X, y), share, scale)

    def draw(
        self, rng: np.random.Generator, chain: Chain | None, model: Model, given: SubsetData, samples: int | None = None
    ) -> tuple[Chain, Ensemble]:
        """The chain after one more draw, and the ensemble of its samples; `samples` replaces the setting."""
        sampling = self.settings.sampling if samples is None else self.settings.sampling._replace(samples=samples)
        with limit_threads(len(given.learn.y), self.settings.threads):
            chain, hypers = chains.draw(rng, chain, model, given.learn, sampling)
        return chain, self.condition(model.kernel, hypers, given.predict)

    def condition(self, kernel: Kernel, hypers: list[Hyper], data: Data) -> Ensemble:
        """The ensemble of these samples; of fewer samples if there are very many observations."""
        if self.settings.predict_from is not None:
            hypers = thin_samples(hypers, len(data.y))
        return build(kernel, hypers, data)

    def _fit_failures(
        self, rng: np.random.Generator, chain: Chain | None, observations: Observations
    ) -> tuple[Chain, Failures]:
        y, scale = standardise(1.0 - observations.succeeded.astype(np.float64))
        given = self._shares(*observations).of(Data(observations.X, y))
        chain, model = self.draw(rng, chain, self.failure_model, given, FAILURE_SAMPLES)
        return chain, Failures(model, scale)

    def _shares(self, X: Ints, values: Floats) -> Subsets:
        return choose_subsets(self._spectra, X, values, (self.settings.learn_from, self.settings.predict_from))


KERNELS: dict[str, Callable[[tuple[Spectrum, ...], int], Kernel]] = {
    "product": lambda spectra, _: Product(spectra),
    "orders": Orders,
}
"""All kernels by their names in `Settings.kernel`, each a function (spectra, highest order) -> kernel."""


def kernel_maker(name: str) -> Callable[[tuple[Spectrum, ...], int], Kernel]:
    """The function of KERNELS with that name. Raises SettingsError for an unknown name."""
    if name not in KERNELS:
        raise SettingsError(f"setting 'kernel': expected one of {', '.join(KERNELS)}, got {name!r}")
    return KERNELS[name]


def models_of(kernel: Kernel, settings: Settings) -> Models:
    """The models and the warps that the settings allow."""
    plain = Model(kernel, settings.priors)
    if not plain.differentiable:
        return Models(plain)
    multiples = MULTIPLES if settings.warp == "auto" else MULTIPLES[:1]
    windowed = Model(kernel.with_windows(), settings.priors)
    if settings.adjacent == "none" or not len(windowed.kernel.windows):
        return Models(plain, None, multiples)
    return Models(plain, windowed, multiples) if settings.adjacent == "auto" else Models(windowed, None, multiples)
