"""What is recorded: short runs, saved states and Optuna claims, all through the public doors.

Rounding decides which of two nearly equal rows is suggested, so that a recording can be compared only where the linear
algebra rounds as it did when the recording was made: `numerics` tells.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import lapack

import carbo
from carbo.numerics.threads import limit_threads

Params = dict[str, Any]
SEEDS = (0, 1)
PRESETS = ("default", "paper")


class Case(NamedTuple):
    """A problem and how it is run. `batch` points are asked at a time and told in reverse order."""

    space: Callable[[], carbo.Space]
    function: Callable[[Params], float | None]
    budget: int = 22
    initial: int = 10
    batch: int = 1
    settings: tuple[tuple[str, Any], ...] = ()


def _categories() -> carbo.Space:
    return carbo.Space({f"x{i}": carbo.Categorical(list("abcd")) for i in range(8)})


def _sum(params: Params) -> float:
    digits = ["abcd".index(v) for v in params.values()]
    return float(sum(math.sin(3.0 * i + 2.0 * k) for i, k in enumerate(digits)) - (digits[0] == digits[3] == 2))


def _levels() -> carbo.Space:
    ring = np.zeros((6, 6))
    for i in range(6):
        ring[i, (i + 1) % 6] = ring[(i + 1) % 6, i] = 1.0 + 0.5 * (i % 2)
    return carbo.Space({
        "size": carbo.Ordinal([1, 2, 4, 8, 16, 32, 64]),
        "count": carbo.Integer(0, 40),
        "wide": carbo.Integer(0, 499),
        "rate": carbo.Float(1e-4, 1.0, points=21, log=True),
        "month": carbo.Categorical(range(6), graph=ring),
        "kind": carbo.Categorical(["a", "b", "c"]),
        "flag": carbo.Binary(),
    })  # fmt: skip


def _bowl(params: Params) -> float:
    return float(
        (math.log2(params["size"]) - 3.0) ** 2
        + 0.01 * (params["count"] - 23) ** 2
        + 1e-4 * (params["wide"] - 321) ** 2
        + (math.log10(params["rate"]) + 2.0) ** 2
        + math.cos(params["month"])
        + (params["kind"] != "b") * (1.0 + params["flag"])
    )


def _flags() -> carbo.Space:
    return carbo.Space({f"f{i}": carbo.Binary() for i in range(14)})


def _crashes(params: Params) -> float | None:
    on = list(params.values())
    if (on[0] and on[1]) or (on[5] and not on[6]):
        return None
    return float(3.0 * (on[2] ^ on[3]) - 2.0 * (on[4] and on[7]) + sum(on[8:]) * 0.3)


def _permitted() -> carbo.Space:
    items = {f"i{k}": carbo.Categorical([0, 1, 2]) for k in range(9)}
    return carbo.Space(items, constraint=lambda p: sum(p.values()) <= 9)


def _profit(params: Params) -> float:
    counts = list(params.values())
    return -float(sum((k % 4 + 1) * c - 0.6 * c * counts[k - 1] for k, c in enumerate(counts)))


def _stages() -> carbo.Space:
    return carbo.Space({f"stage{i}": carbo.Categorical([0, 1, 2]) for i in range(9)})


def _chain(params: Params) -> float:
    stages = list(params.values())
    return float(sum(math.cos(2.0 * a + 3.0 * b + i) for i, (a, b) in enumerate(pairwise(stages))))


def _drought(params: Params) -> float:
    """One point is better than its plateau: `patience` and `doubt` get their turns."""
    digits = ["abcd".index(v) for v in params.values()]
    return float(min(sum(k == 0 for k in digits[:4]), 2) - 3.0 * (sum(digits) == 24)) + 0.001 * digits[0]


CASES = {
    "categories": Case(_categories, _sum),
    "levels": Case(_levels, _bowl),
    "failures": Case(_flags, _crashes),
    "constraint": Case(_permitted, _profit),
    "pending": Case(_categories, _sum, batch=3),
    "windows": Case(_stages, _chain, settings=(("adjacent", "always"),)),
    "windows by evidence": Case(_stages, _chain, budget=36),
    "drought": Case(_categories, _drought, budget=40),
}


def settings_of(case: Case, preset: str) -> dict[str, Any]:
    """The changes to the preset; what only the order kernel has is left out of the paper's."""
    return {"initial": case.initial, **(dict(case.settings) if preset == "default" else {})}


def run(name: str, preset: str, seed: int) -> dict[str, Any]:
    """One run: rows in the order told, their values, and at its end predictions and relevances."""
    case = CASES[name]
    optimizer = carbo.Optimizer(case.space(), seed=seed, preset=preset, settings=settings_of(case, preset))
    while len(optimizer) < case.budget:
        for params in reversed(optimizer.ask(case.batch)):
            optimizer.tell(params, case.function(params))
    points, values = optimizer.history()
    rows = optimizer.space.encode_many(points)
    means, sds = optimizer.predict(points)
    return {
        "rows": rows.tolist(),
        "values": [None if math.isnan(v) else v for v in values],
        "means": means.tolist(),
        "sds": sds.tolist(),
        "relevance": {k: v.mean for k, v in optimizer.relevance().variables.items()},
    }


STATES = {
    "default": ("categories", "default"),
    "paper": ("levels", "paper"),
    "failures": ("failures", "default"),
    "pending": ("pending", "default"),
    "windows": ("windows", "default"),
}


def state(name: str) -> dict[str, Any]:
    """A state saved in the middle of a run, some points pending, through JSON."""
    which, preset = STATES[name]
    case = CASES[which]
    optimizer = carbo.Optimizer(case.space(), seed=7, preset=preset, settings=settings_of(case, preset))
    while len(optimizer) < 16:
        params = optimizer.ask()
        optimizer.tell(params, case.function(params))
    if name == "pending":
        optimizer.ask(3)
    saved: dict[str, Any] = json.loads(json.dumps(optimizer.state()))
    return saved


def continued(name: str, saved: dict[str, Any]) -> list[list[int]]:
    """The next three suggestions of a state, each told before the next one."""
    case = CASES[STATES[name][0]]
    optimizer = carbo.Optimizer.from_state(case.space(), saved)
    rows = []
    for _ in range(3):
        params = optimizer.ask()
        optimizer.tell(params, case.function(params))
        rows.append(optimizer.space.encode(params).tolist())
    return rows


def claims() -> list[dict[str, Any]]:
    """What an Optuna study's trials hold after a run: parameters, state and the text of each claim."""
    import optuna

    sampler = carbo.CarboSampler(seed=5, settings={"initial": 6}, constraint=lambda p: p["a"] != 3 or p["b"] != "y")
    study = optuna.create_study(sampler=sampler)

    def objective(trial: optuna.Trial) -> float:
        a, b = trial.suggest_int("a", 0, 9), trial.suggest_categorical("b", ["x", "y", "z"])
        c = trial.suggest_float("c", 0.0, 1.0, step=0.05)
        if a == 9:
            raise optuna.TrialPruned
        return (a - 6) ** 2 + (b != "z") + (c - 0.4) ** 2

    study.optimize(objective, n_trials=16)
    return [
        {"params": t.params, "state": t.state.name, "claim": t.system_attrs.get("carbo:claim", {}).get("point")}
        for t in study.trials
    ]


def numerics() -> str:
    """A digest of how this machine rounds: equal digests, equal recordings."""
    rng = np.random.default_rng(0)
    digest = hashlib.sha256()
    with limit_threads(1, 1):
        _add_numbers(digest, rng)
    return digest.hexdigest()[:16]


def _add_numbers(digest: Any, rng: np.random.Generator) -> None:
    for n in (7, 23, 64, 130):
        A = rng.normal(size=(n, n))
        C = A @ A.T + n * np.eye(n)
        L, _ = lapack.dpotrf(C, lower=1)
        for array in (A @ C, L, np.exp(A), np.log1p(np.abs(A)), A.sum(axis=1), (A.astype("f4") @ C.astype("f4"))):
            digest.update(np.ascontiguousarray(array).tobytes())


def record() -> dict[str, Any]:
    """Everything, as JSON values."""
    saved = {name: state(name) for name in STATES}
    return {
        "numerics": numerics(),
        "runs": {f"{c} / {p} / {s}": run(c, p, s) for c in CASES for p in PRESETS for s in SEEDS},
        "states": {name: {"state": one, "next": continued(name, one)} for name, one in saved.items()},
        "claims": claims(),
    }
