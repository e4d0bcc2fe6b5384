"""Claims: the point that a trial was given, written into the trial before its parameters are stored one by one.

Why workers need claims is explained at the head of `sampler.py`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from optuna.study import Study
from optuna.trial import FrozenTrial

from carbo.integrations.optuna.evaluations import as_seconds
from carbo.integrations.optuna.private import write_attribute
from carbo.numerics.types import Ints

CLAIM = "carbo:claim"
"""System attribute of a trial: its point, and how many seconds the suggestion took. One attribute holds both, because
writing one takes longer than all else here."""
REPEAT = "carbo:repeat"
"""System attribute of a trial that was given an old point, because no new one was left."""
LONGEST = 1_980
"""Characters of a claim's text: a relational storage takes 2,045 in one attribute, as JSON."""


def claim_text(space: str, row: Ints) -> str:
    """A claim on a row of the space with that key; a digest where the row would be too long to store."""
    listed = f"{space} {' '.join(map(str, row.tolist()))}"
    return listed if len(listed) <= LONGEST else _digest(space, row)


def claimed_row(trial: FrozenTrial, space: str) -> list[int] | None:
    """The row that a trial claims, where it is one of that space."""
    key, _, numbers = _text(trial).partition(" ")
    return [int(n) for n in numbers.split()] if key == space and not numbers.startswith("#") else None


def claims_same(trial: FrozenTrial, space: str, row: Ints) -> bool:
    """Whether a trial claims exactly this row, listed or as a digest."""
    return _text(trial) == claim_text(space, row)


def suggestion_seconds(trial: FrozenTrial) -> float | None:
    """How long a trial's point took to suggest; None where that was not noted, as for enqueued points."""
    return as_seconds(_claim(trial).get("seconds"))


def write_claim(study: Study, trial: FrozenTrial, text: str, seconds: float) -> None:
    """Claim a point, and note how long it took to suggest."""
    write_attribute(study, trial, CLAIM, {"point": text, "seconds": round(seconds, 6)})


def withdraw(study: Study, trial: FrozenTrial) -> None:
    """Give a claim up."""
    write_attribute(study, trial, CLAIM, {})


def _claim(trial: FrozenTrial) -> Mapping[str, Any]:
    claim = trial.system_attrs.get(CLAIM)
    return claim if isinstance(claim, Mapping) else {}


def _text(trial: FrozenTrial) -> str:
    return str(_claim(trial).get("point", ""))


def _digest(space: str, row: Ints) -> str:
    return f"{space} #{hashlib.sha256(str(row.tolist()).encode()).hexdigest()}"
