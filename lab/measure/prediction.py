"""How well a model foresees: told the first evaluations of a recorded run, it predicts those that the run made next.

The runs are other methods', so that no model predicts what it chose itself. A prediction is the mixture of the
posterior samples' normal distributions, noise included; it is judged as a density of the values as told:

    gain        mean log density over that of a normal distribution with the mean and variance of what was told, in
                nats a point
    ahead       number of cases on which the gain is 0.01 or more above the first model's : below it
    within      share of values inside the central 50 % and 90 % of their predictions: 0.5 and 0.9 where those are true
    error       root mean square of (value - predicted mean) over the standard deviation of what was told
    seconds     processor seconds of the first draw of parameters, burn-in included, and of a second

A model is a preset or a preset with settings changed, and "@mode" after it replaces the samples by the one setting of
the parameters at the posterior's mode; "@mode5" by the highest that six climbs lead to.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from carbo.errors import SettingsError
from carbo.numerics.threads import limited
from lab.measure.recorded_cases import Case, Experiment, Line, Lines, cell, digest, shared
from lab.methods.presets import settings_of
from lab.runs.record import comparable
from lab.tables.formats import Cell, Row, Table
from lab.tables.statistics import paired, summary

if TYPE_CHECKING:
    from carbo.inference.outcome import Scale
    from carbo.numerics.types import Floats, Ints
    from carbo.settings import Settings
    from carbo.space.space import Space
    from carbo.surrogate.ensemble import Ensemble
    from carbo.surrogate.surrogate import Belief, Observations, Surrogate
    from lab.problems import Problem

MODE = re.compile("@mode([1-9][0-9]*)?$")
CLEAR = 0.01
"""Difference of gains from which a model is ahead of another on a case."""


def experiment(models: Sequence[str]) -> Experiment:
    """Of models by their names. Raises SettingsError for one that there is not."""
    for model in models:
        settings, restarts = named(model)
        if restarts is not None and settings.kernel != "orders":
            raise SettingsError(f"model {model!r}: expected a preset of kernel orders before @mode, "
                                f"got kernel {settings.kernel}; leave @mode away")  # fmt: skip
    return Experiment(tuple(models), measure, version, table, "gain")


class Named(NamedTuple):
    """What a model's name stands for."""

    settings: Settings
    restarts: int | None
    """Climbs to the mode beyond the first; None for samples."""


def named(model: str) -> Named:
    """Raises SettingsError for a preset or a setting that there is not."""
    found = MODE.search(model)
    return Named(settings_of(MODE.sub("", model)), int(found[1] or 0) if found else None)


def version(model: str) -> str:
    from carbo.inference.chain import SCATTER

    settings, restarts = named(model)
    if restarts:
        return digest(comparable(settings.to_dict()), restarts, SCATTER)
    return digest(comparable(settings.to_dict()), restarts is not None)


def measure(case: Case, models: Sequence[str], problem: Problem) -> Iterator[Line]:
    """What models foresee of a case."""
    for model in models:
        yield {"model": model, **foreseen(case, model, problem.space)}


def foreseen(case: Case, model: str, space: Space) -> Line:
    """What one model foresees of one case."""
    import numpy as np

    from carbo.surrogate.surrogate import Belief, Observations, Surrogate

    n, rows, values = case.told, case.record.rows, case.record.values
    settings, restarts = named(model)
    surrogate, belief = Surrogate(space, settings), Belief()
    drawn = _sampled if restarts is None else partial(_at_mode, restarts=restarts)
    told, rng = Observations(rows[:n], values[:n]), np.random.default_rng(case.record.run)
    seconds, ensemble = [], None
    for _ in range(2):
        begin = time.process_time()
        belief, ensemble, scale = drawn(surrogate, rng, belief, told)
        seconds.append(time.process_time() - begin)
    assert ensemble is not None
    ahead = slice(n, n + case.ahead)
    return {**judge(ensemble, scale, told.values, rows[ahead], values[ahead]), "seconds": seconds}


def _sampled(surrogate: Surrogate, rng: Any, belief: Belief, told: Observations) -> tuple[Belief, Ensemble, Scale]:
    belief, posterior = surrogate.advance(rng, belief, told)
    return belief, posterior.model, posterior.view.scale


def _at_mode(
    surrogate: Surrogate,
    rng: Any,  # noqa: ARG001
    belief: Belief,
    told: Observations,
    restarts: int,
) -> tuple[Belief, Ensemble, Scale]:
    from carbo.inference import chain
    from carbo.surrogate import ensemble

    belief, view = surrogate.view(belief, told)
    with limited(len(view.given.learn.y), surrogate.settings.threads):
        model = surrogate.models.of(belief.shape)
        _, hyper = chain.mode(model, view.given.learn, restarts)
    return belief, ensemble.build(model.kernel, [hyper], view.given.predict), view.scale


def judge(ensemble: Ensemble, scale: Scale, told: Floats, rows: Ints, values: Floats) -> dict[str, float]:
    """Gain, coverage and error of predictions at rows (N, d) that turned out as values (N,)."""
    import numpy as np
    from scipy.special import logsumexp, ndtr

    mu, sd = ensemble.predict(rows)
    spread = np.sqrt(sd**2 + np.exp([[h.log_noise] for h in ensemble.hypers]))
    y, log_slope = scale.seen(values)
    z = (y - mu) / spread
    of_y = logsumexp(-0.5 * z * z - np.log(spread), axis=0) - math.log(len(mu))
    log_density = of_y + log_slope - math.log(scale.size)
    level, unit = float(np.mean(told)), float(np.std(told)) or 1.0
    plain = -0.5 * ((values - level) / unit) ** 2 - math.log(unit)
    below = ndtr(z).mean(axis=0)
    mean, _ = scale.back(mu, spread)
    return {
        "gain": float(np.mean(log_density - plain)),
        "within50": float(np.mean(np.abs(below - 0.5) < 0.25)),
        "within90": float(np.mean(np.abs(below - 0.5) < 0.45)),
        "error": float(np.sqrt(np.mean((values - mean) ** 2))) / unit,
    }


def table(lines: Lines, models: Sequence[str]) -> Table:
    """The models over the cases that all of them have; gains as differences to the first model's on the same cases."""
    of = shared(lines, models)
    rows = tuple(_row(model, of[model], of[models[0]]) for model in models)
    columns = ("gain, nats a point", "beside the first", "ahead : behind", "within 50 %", "within 90 %", "error",
               "first draw, s", "next draw, s")  # fmt: skip
    return Table("foresight", "", f"Foresight over {len(of[models[0]])} cases", columns, rows)


def _row(model: str, lines: Lines, first: Lines) -> Row:
    gains, base = ({i: float(line["gain"]) for i, line in enumerate(these)} for these in (lines, first))
    beside = paired(gains, base)
    assert beside is not None
    ahead = [sum(sign * (gains[i] - base[i]) > CLEAR for i in gains) for sign in (1, -1)]
    cells = [cell(summary(list(gains.values())), 3), *(Cell(""), Cell(""))]
    if lines != first:
        cells[1:] = cell(beside, 3, signed=True), Cell(f"{ahead[0]} : {ahead[1]}", float(ahead[0]))
    cells += [cell(summary([float(line[name]) for line in lines]), 2) for name in ("within50", "within90", "error")]
    cells += [cell(summary([float(line["seconds"][k]) for line in lines]), 2) for k in (0, 1)]
    return Row(model, tuple(cells))
