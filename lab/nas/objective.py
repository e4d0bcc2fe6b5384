"""Validation error plus a price on operations, of the network that a row's cell makes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from carbo.numerics.types import Ints
from lab.nas import cifar10, digits
from lab.nas.cache import Accuracies, Cache
from lab.nas.cell import Architecture, reduced
from lab.nas.shape import Images, ratio
from lab.nas.training import Split, Trainer

PRICE = 0.02
"""Of as many operations as the full cell has: one hundredth of error is worth half of them."""
INVALID = 0.9 + PRICE
"""No way from IN to OUT: an accuracy of 10%, and all operations."""
Loader = Callable[[str | None], Split]
"""A folder of downloaded files, if there is one, to the split."""
DATA: dict[str, tuple[Images, Loader]] = {
    "digits": (digits.IMAGES, lambda _folder: digits.digits()),
    "cifar10": (cifar10.IMAGES, cifar10.cifar10),
}
"""Of each data set, the form of its images and how they are loaded."""


@dataclass(frozen=True)
class Objective:
    """A row (31,) to its value. Nothing is loaded before the first row that must be trained."""

    data: str
    """A name in DATA."""
    folder: str | None = None
    """Of downloaded files."""
    trained: str | None = None
    """A folder: accuracies are kept there in a file <data>.jsonl; None, or one that does not exist: in memory only."""

    def __call__(self, row: Ints) -> float:
        architecture = reduced(row)
        if architecture is None:
            return INVALID
        accuracies = _laboratory(self).accuracies(architecture)
        return priced(sum(accuracies) / len(accuracies), architecture, DATA[self.data][0])


def priced(accuracy: float, architecture: Architecture, images: Images) -> float:
    """The value of an architecture with that validation accuracy."""
    return 1 - accuracy + PRICE * ratio(architecture, images)


class _Laboratory:
    """A trainer and what it has found."""

    def __init__(self, objective: Objective) -> None:
        split = DATA[objective.data][1](objective.folder)
        self._trainer = Trainer(split)
        self._found: dict[str, Accuracies] = {}
        self._cache: Cache | None = None
        if objective.trained is not None and Path(objective.trained).is_dir():
            self._cache = Cache(Path(objective.trained) / f"{objective.data}.jsonl", split.digest())

    def accuracies(self, architecture: Architecture) -> Accuracies:
        key = architecture.key
        if key not in self._found:
            known = self._cache.get(key) if self._cache else None
            if known is None:
                known = tuple(self._trainer.best(architecture))
                known = self._cache.add(key, known) if self._cache else known
            self._found[key] = known
        return self._found[key]


@cache
def _laboratory(objective: Objective) -> _Laboratory:
    """One for each objective of a process: data are loaded once."""
    return _Laboratory(objective)
