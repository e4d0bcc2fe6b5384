"""`carbo suggest`: a question in JSON for the next points, and its answer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from carbo.errors import CarboError, SpaceExhausted
from carbo.optimizer import Optimizer
from carbo.settings import PRESETS
from carbo.space.space import Space
from carbo.tune.errors import StudyError
from carbo.tune.keyed_table import Source, Table
from carbo.tune.study_file import DIRECTIONS, load
from carbo.tune.variables import variables

KEYS = ("space", "constraints", "observations", "pending", "n", "seed", "direction", "preset", "settings")


class Question(NamedTuple):
    """An optimiser with all data, and the number of points to suggest."""

    optimizer: Optimizer
    n: int


def read(text: str, file: Path | None = None) -> Question:
    """The question in a JSON text. Its space may come from a study file. StudyError if the text is wrong."""
    try:
        given = json.loads(text) if text.strip() or file is None else {}
    except (ValueError, RecursionError) as error:
        raise StudyError(
            f"stdin: expected a JSON object, got an error: {error}; `carbo suggest -h` shows one"
        ) from None
    if not isinstance(given, dict):
        raise StudyError(f"stdin: expected a JSON object, got {given!r:.40}; `carbo suggest -h` shows one")
    table = Table(Source("stdin"), "", given).only(*KEYS)
    space, direction = _space(table, file)
    direction = table.choice("direction", DIRECTIONS, direction)
    n, seed = table.count("n", 1), table.count("seed", None, 0)
    preset, settings = table.choice("preset", tuple(PRESETS), "default"), table.take("settings", dict, {})
    observed, values = _observations(table, space, -1.0 if direction == "maximize" else 1.0)
    pending = [_row(table, space, "pending", entry) for entry in table.take("pending", list, [])]
    optimizer = Optimizer(space, seed=seed, preset=preset, settings=settings)
    optimizer.replace_data(np.array(observed, dtype=np.intp), values, np.array(pending, dtype=np.intp))
    return Question(optimizer, n)


def answer(question: Question) -> dict[str, Any]:
    """The points to evaluate next; fewer than `n` only if no more are left."""
    try:
        points = question.optimizer.ask(question.n)
    except SpaceExhausted:
        points = []
    return {"suggestions": points, "exhausted": len(points) < question.n}


def _space(table: Table, file: Path | None) -> tuple[Space, str]:
    """The space, and the direction that applies if the question names none."""
    if file is None:
        table.need("space", dict, 'as in {"space": {"x": {"kind": "binary"}}}, or name a study file')
        return variables(table.table("space"), table.strings("constraints")).space, "minimize"
    if "space" in table or "constraints" in table:
        raise StudyError(f"stdin: expected no space and no constraints beside {file}, got both; drop one of them")
    study = load(file)
    return study.space, study.direction


def _observations(table: Table, space: Space, sign: float) -> tuple[list[Any], list[float | None]]:
    rows, values = [], []
    for entry in table.take("observations", list, []):
        if not isinstance(entry, dict) or entry.keys() != {"params", "value"}:
            table.refuse("observations", 'objects {"params": {...}, "value": number or null}', entry, "correct it")
        value = entry["value"]
        if isinstance(value, bool) or not isinstance(value, int | float | None):
            table.refuse("observations", "a number, or null for a failure, as value", value, "correct it")
        rows.append(_row(table, space, "observations", entry["params"]))
        values.append(None if value is None else sign * value)
    return rows, values


def _row(table: Table, space: Space, key: str, params: Any) -> Any:
    try:
        return space.encode(params)
    except CarboError as error:
        raise StudyError(f"stdin: {table.at(key)}: {error}") from None
