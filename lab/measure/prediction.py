"""How well a model predicts: it gets the first evaluations of a recorded run, and predicts the next ones.

The runs are those of other methods, so that no model predicts points that it chose itself. A prediction is the mixture
of the normal distributions of the posterior samples, noise included. It is judged as a density of the values:

    gain        mean log density minus that of a normal distribution with mean and variance of the given values, in nats
                for each point
    ahead       number of cases on which the gain is at least 0.01 above that of the first model : below it
    within      share of values inside the central 50 % and 90 % of their predictions; ideally 0.5 and 0.9
    error       root mean square of (value - predicted mean) over the standard deviation of the given values
    seconds     processor seconds of the first draw of parameters, burn-in included, and of a second

A model is a preset, or a preset with settings changed. With "@mode" after it, the parameters at the mode of the
posterior take the place of the samples.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from carbo.errors import SettingsError
from carbo.numerics.threads import limit_threads
from lab.measure.recorded_cases import Case, Experiment, Line, Lines, cell, digest, shared_lines
from lab.methods.presets import settings_of
from lab.runs.record import comparable
from lab.tables.formats import Cell, Row, Table
from lab.tables.statistics import paired_differences, summary

if TYPE_CHECKING:
    from carbo.inference.outcome import Scale
    from carbo.numerics.types import Floats, Ints
    from carbo.settings import Settings
    from carbo.space.space import Space
    from carbo.surrogate.ensemble import Ensemble
    from carbo.surrogate.surrogate import Belief, Observations, Surrogate
    from lab.problems import Problem

MODE = "@mode"
"""Suffix of a model that predicts from the mode of the posterior."""
CLEAR = 0.01
"""A model is ahead of another on a case from this difference of gains on."""


def experiment(models: Sequence[str]) -> Experiment:
    """The experiment with these models. SettingsError for an unknown one."""
    for model in models:
        settings, at_mode = named(model)
        if at_mode and settings.kernel != "orders":
            raise SettingsError(f"model {model!r}: expected a preset of kernel orders before @mode, "
                                f"got kernel {settings.kernel}; leave @mode away")  # fmt: skip
    return Experiment(tuple(models), measure, version, table, "gain")


class Named(NamedTuple):
    """The settings of a model, and how it predicts."""

    settings: Settings
    at_mode: bool
    """Whether it predicts from the mode of the posterior instead of samples."""


def named(model: str) -> Named:
    """The settings of the model of this name. SettingsError for an unknown preset or setting."""
    return Named(settings_of(model.removesuffix(MODE)), model.endswith(MODE))


def version(model: str) -> str:
    """A digest of what a model is; measurements of another version do not count."""
    settings, at_mode = named(model)
    return digest(comparable(settings.to_dict()), at_mode)


def measure(case: Case, models: Sequence[str], problem: Problem) -> Iterator[Line]:
    """The measurements of the models on a case."""
    for model in models:
        yield {"model": model, **foreseen(case, model, problem.space)}


def foreseen(case: Case, model: str, space: Space) -> Line:
    """The measurements of one model on one case."""
    import numpy as np

    from carbo.surrogate.surrogate import Belief, Observations, Surrogate

    n, rows, values = case.observations, case.record.rows, case.record.values
    settings, at_mode = named(model)
    surrogate, belief = Surrogate(space.rows, settings), Belief()
    fit = _fit_mode if at_mode else _fit_samples
    told, rng = Observations(rows[:n], values[:n]), np.random.default_rng(case.record.run)
    seconds, ensemble = [], None
    for _ in range(2):
        begin = time.process_time()
        belief, ensemble, scale = fit(surrogate, rng, belief, told)
        seconds.append(time.process_time() - begin)
    assert ensemble is not None
    ahead = slice(n, n + case.ahead)
    return {**judge(ensemble, scale, told.values, rows[ahead], values[ahead]), "seconds": seconds}


def _fit_samples(surrogate: Surrogate, rng: Any, belief: Belief, told: Observations) -> tuple[Belief, Ensemble, Scale]:
    belief, posterior = surrogate.advance(rng, belief, told)
    return belief, posterior.model, posterior.view.scale


def _fit_mode(
    surrogate: Surrogate,
    rng: Any,  # noqa: ARG001
    belief: Belief,
    told: Observations,
) -> tuple[Belief, Ensemble, Scale]:
    from carbo.inference import chain
    from carbo.surrogate import ensemble

    belief, view = surrogate.view(belief, told)
    with limit_threads(len(view.given.learn.y), surrogate.settings.threads):
        model = surrogate.models.of(belief.shape)
        _, hyper = chain.mode(model, view.given.learn)
    return belief, ensemble.build(model.kernel, [hyper], view.given.predict), view.scale


def judge(ensemble: Ensemble, scale: Scale, told: Floats, rows: Ints, values: Floats) -> dict[str, float]:
    """Gain, coverage and error of predictions at rows (N, d) whose true values are (N,)."""
    import numpy as np
    from scipy.special import logsumexp, ndtr

    mu, sd = ensemble.predict(rows)
    spread = np.sqrt(sd**2 + np.exp([[h.log_noise] for h in ensemble.hypers]))
    y, log_slope = scale.transform(values)
    z = (y - mu) / spread
    of_y = logsumexp(-0.5 * z * z - np.log(spread), axis=0) - math.log(len(mu))
    log_density = of_y + log_slope - math.log(scale.size)
    level, unit = float(np.mean(told)), float(np.std(told)) or 1.0
    plain = -0.5 * ((values - level) / unit) ** 2 - math.log(unit)
    below = ndtr(z).mean(axis=0)
    mean, _ = scale.moments(mu, spread)
    return {
        "gain": float(np.mean(log_density - plain)),
        "within50": float(np.mean(np.abs(below - 0.5) < 0.25)),
        "within90": float(np.mean(np.abs(below - 0.5) < 0.45)),
        "error": float(np.sqrt(np.mean((values - mean) ** 2))) / unit,
    }


def table(lines: Lines, models: Sequence[str]) -> Table:
    """A table of the models over the cases that all of them have; gains are differences to the first model."""
    of = shared_lines(lines, models)
    rows = tuple(_row(model, of[model], of[models[0]]) for model in models)
    columns = ("gain, nats a point", "beside the first", "ahead : behind", "within 50 %", "within 90 %", "error",
               "first draw, s", "next draw, s")  # fmt: skip
    return Table("foresight", "", f"Foresight over {len(of[models[0]])} cases", columns, rows)


def _row(model: str, lines: Lines, first: Lines) -> Row:
    gains, base = ({i: float(line["gain"]) for i, line in enumerate(these)} for these in (lines, first))
    difference = paired_differences(gains, base)
    assert difference is not None
    ahead = [sum(sign * (gains[i] - base[i]) > CLEAR for i in gains) for sign in (1, -1)]
    cells = [cell(summary(list(gains.values())), 3), *(Cell(""), Cell(""))]
    if lines != first:
        cells[1:] = cell(difference, 3, signed=True), Cell(f"{ahead[0]} : {ahead[1]}", float(ahead[0]))
    cells += [cell(summary([float(line[name]) for line in lines]), 2) for name in ("within50", "within90", "error")]
    cells += [cell(summary([float(line["seconds"][k]) for line in lines]), 2) for k in (0, 1)]
    return Row(model, tuple(cells))
