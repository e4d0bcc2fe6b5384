"""How well a search maximises the acquisition: the largest log EI that it finds, compared in equal time.

The `default` preset draws its model once from the first evaluations of a recorded run. Every search then looks for the
largest log EI under this model. A search is

    KEY=VALUE+...   the search of the preset with these settings changed; "local" changes nothing
    genetic         tournaments, uniform crossover and mutation; half of the first generation is near the best point
    annealing       as many walkers as the preset has climbers, from the starts of the preset

The last two stop after the processor seconds that the first search took on the case.

    short       the highest log EI of any search on the case minus that of this search: the log of a ratio of EI
    found       share of cases where that ratio is 0.999 or more
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from carbo.acquisition import search
from carbo.acquisition.policy import Request, best_starts, maximise
from carbo.acquisition.search import Domain, Found, Objective
from carbo.acquisition.starts import spray
from carbo.errors import SettingsError
from carbo.numerics.threads import limit_threads
from carbo.numerics.types import Ints
from carbo.space.row_space import row_keys
from lab.measure.recorded_cases import Case, Experiment, Lines, cell, digest, shared_lines
from lab.methods.presets import settings_of
from lab.runs.record import comparable
from lab.tables.formats import Cell, Row, Table
from lab.tables.statistics import summary

if TYPE_CHECKING:
    from carbo.settings import Settings
    from lab.problems import Problem

LOCAL = "local"
CHANGED = ("leaps", "random_starts", "spray_starts", "climbers")
"""Settings that change the search, and not the acquisition."""
POPULATION, TOURNAMENT = 100, 3
HOT, COLD = 1.0, 0.01
"""Temperatures that annealing starts and ends at, in units of the score."""
AS_HIGH = 1e-3

Stop = Callable[[], float]
"""A function to the share of the time that is used up; from 1 on the search stops."""


def experiment(searches: Sequence[str]) -> Experiment:
    """The experiment with these searches. SettingsError for an unknown one, or a first one that never ends."""
    for name in searches:
        changed = [change.partition("=")[0] for change in name.split("+")]
        if name not in (*SEARCHES, LOCAL) and not set(changed) <= set(CHANGED):
            raise SettingsError(f"search {name!r}: expected {LOCAL}, {', '.join(SEARCHES)} or values of "
                                f"{', '.join(CHANGED)}, such as climbers=5, got something else")  # fmt: skip
        _settings(name)
    if searches[0] in SEARCHES:
        raise SettingsError(f"search: expected first one that ends by itself, such as {LOCAL}, got {searches[0]!r}; "
                            "its seconds are what the others get")  # fmt: skip
    version = digest(comparable(settings_of("default").to_dict()), list(searches))
    return Experiment(tuple(searches), measure, lambda _: version, table, "height", together=True)


def measure(case: Case, searches: Sequence[str], problem: Problem) -> list[dict[str, Any]]:
    """Log EI and seconds of every search on a case, in their order."""
    from carbo.surrogate.surrogate import Belief, Observations, Surrogate

    space = problem.space
    n, rows, values = case.observations, case.record.rows, case.record.values
    settings, rng = settings_of("default"), np.random.default_rng(case.record.run)
    _, posterior = Surrogate(space.rows, settings).advance(rng, Belief(), Observations(rows[:n], values[:n]))
    request = Request(space.rows, settings, posterior.model, set(row_keys(rows[:n])), posterior.view.best, None)
    lines: list[dict[str, Any]] = []
    for name in searches:
        begin, limit = time.process_time(), lines[0]["seconds"] if lines else np.inf
        with limit_threads(n, settings.threads):
            top = SEARCHES.get(name, _with_settings)(np.random.default_rng(0), request, name, _until(begin, limit))
        lines.append({"model": name, "height": float(top.scores[0]), "seconds": time.process_time() - begin})
    return lines


def _until(begin: float, limit: float) -> Stop:
    return lambda: (time.process_time() - begin) / limit


def _settings(name: str) -> Settings:
    return settings_of("default" if name == LOCAL or name in SEARCHES else f"default:{name}")


def _with_settings(rng: np.random.Generator, request: Request, name: str, _: Stop) -> Found:
    """The search of the preset with settings changed."""
    request = request._replace(settings=_settings(name))
    return maximise(rng, request, request.objective)


def _genetic(rng: np.random.Generator, request: Request, _: str, stop: Stop) -> Found:
    """Parents by tournament, uniform crossover, one mutation on average; the best rows stay."""
    space, domain = request.space, request.domain
    objective = request.objective
    near = spray(rng, space, request.incumbent, POPULATION // 2)
    rows = np.concatenate([near, space.random_rows(rng, POPULATION - len(near))])
    rows = rows[domain.permitted(rows)]
    living = Found(rows, objective.score(rows))
    while stop() < 1.0:
        entered = rng.integers(0, len(living.rows), size=(2, POPULATION, TOURNAMENT))
        winners = np.take_along_axis(entered, np.argmax(living.scores[entered], axis=2)[:, :, None], axis=2)[:, :, 0]
        mother, father = living.rows[winners]
        children = np.where(rng.random(mother.shape) < 0.5, mother, father)
        redrawn = rng.random(children.shape) < 1.0 / space.dim
        children = np.where(redrawn, rng.integers(0, space.sizes, size=children.shape), children)
        children = children[domain.permitted(children)]
        both = Found(np.concatenate([living.rows, children]), np.append(living.scores, objective.score(children)))
        living = search.best_of(both, POPULATION)
    return living


def _annealing(rng: np.random.Generator, request: Request, _: str, stop: Stop) -> Found:
    """Simulated annealing from the preset's starts; the temperature falls with the time that is left."""
    domain, objective = request.domain, request.objective
    now = best_starts(rng, request, objective)
    best = search.best_of(now, 1)
    while (used := stop()) < 1.0:
        metropolis(rng, objective, domain, now, HOT * (COLD / HOT) ** used)
        best = search.best_of(Found(np.concatenate([best.rows, now.rows]), np.append(best.scores, now.scores)), 1)
    return best


def metropolis(
    rng: np.random.Generator, objective: Objective, domain: Domain, walkers: Found, temperature: float
) -> None:
    """A random neighbour of each walker, taken where it is better, or by chance; the walkers are moved."""
    rows, movers = random_neighbours(rng, domain, walkers.rows)
    new, now = objective.score(rows), walkers.scores[movers]
    gain = np.where(np.isfinite(now), new - np.where(np.isfinite(now), now, 0.0), np.inf)
    taken = np.log(rng.random(len(movers))) < gain / temperature
    walkers.rows[movers[taken]], walkers.scores[movers[taken]] = rows[taken], new[taken]


def random_neighbours(rng: np.random.Generator, domain: Domain, rows: Ints) -> tuple[Ints, Ints]:
    """One permitted neighbour of each row that has any, uniformly; and the indices of those rows."""
    around, owner = domain.neighbours(rows)
    keep = domain.permitted(around)
    around, owner = around[keep], owner[keep]
    chosen = search.top_of_each_owner(owner, rng.random(len(owner)), 1)
    return around[chosen], owner[chosen]


SEARCHES = {"genetic": _genetic, "annealing": _annealing}


def table(lines: Lines, searches: Sequence[str]) -> Table:
    """A table of the searches over the cases that all of them have."""
    of = shared_lines(lines, searches)
    top = [max(float(line["height"]) for line in of_case) for of_case in zip(*of.values(), strict=True)]
    rows = []
    for name, by in of.items():
        short = [highest - float(line["height"]) for highest, line in zip(top, by, strict=True)]
        found = sum(gap <= AS_HIGH for gap in short) / len(short)
        seconds = summary([float(line["seconds"]) for line in by])
        rows.append(Row(name, (cell(summary(short), 3), Cell(f"{found:.0%}", found), cell(seconds, 3))))
    columns = ("short of the highest, log EI", "found", "seconds")
    return Table("ascent", "", f"Ascent over {len(top)} cases", columns, tuple(rows))
