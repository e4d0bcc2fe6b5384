"""The value of a cell: validation error, plus a price for the operations of its network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from . import cifar10, digits
from .cache import Accuracies, Cache
from .cell import Architecture, Ints, reduced
from .shape import Images, ratio
from .training import EPOCHS, SEEDS, Split, Trainer

PRICE = 0.02
"""The price of as many operations as the full cell has: as much as an error of 2 %."""
INVALID = 0.9 + PRICE
"""The value where no path leads from IN to OUT: an accuracy of 10 %, and all operations."""
Loader = Callable[[str | None], Split]
"""Loads the images; the argument is the folder of downloaded files, if there is one."""
DATA: dict[str, tuple[Images, Loader]] = {
    "digits": (digits.IMAGES, lambda _folder: digits.digits()),
    "cifar10": (cifar10.IMAGES, cifar10.cifar10),
}
"""The form of the images of each data set, and its loader."""


class CellValue:
    """The value of a row of 31 bits, smaller is better. Rows that make the same network share one training.

    seeds       one training for each; the mean of their accuracies counts
    file        accuracies are read from this file and added to it; None: they are kept in memory
    """

    def __init__(
        self, split: Split, seeds: tuple[int, ...] = SEEDS, epochs: int = EPOCHS, file: Path | None = None
    ) -> None:
        self._images, self._seeds, self._epochs = split.images, seeds, epochs
        self._trainer = Trainer(split)
        self._cache = None if file is None else Cache(file, split.digest(seeds, epochs))
        self.accuracies: dict[str, Accuracies] = {}
        """Architecture, by its key -> the accuracy of each seed, of all networks that were asked for."""

    def __call__(self, row: Ints) -> float:
        """The value of a row (31,); INVALID where no path leads from IN to OUT."""
        architecture = reduced(row)
        if architecture is None:
            return INVALID
        if architecture.key not in self.accuracies:
            self.accuracies[architecture.key] = self._find_or_train(architecture)
        accuracies = self.accuracies[architecture.key]
        return 1 - sum(accuracies) / len(accuracies) + PRICE * ratio(architecture, self._images)

    def _find_or_train(self, architecture: Architecture) -> Accuracies:
        """Accuracies from the file if it has them, else from a training."""
        known = self._cache.get(architecture.key) if self._cache else None
        if known is not None:
            return known
        trained = tuple(self._trainer.best(architecture, self._seeds, self._epochs))
        return self._cache.add(architecture.key, trained) if self._cache else trained


@dataclass(frozen=True)
class Objective:
    """A row (31,) to its value on a data set of DATA; a small value that other processes can be sent.

    Images are loaded when the first network is trained.
    """

    data: str
    """A name in DATA."""
    folder: str | None = None
    """The folder of downloaded files."""
    trained: str | None = None
    """A folder: accuracies are kept in its file <data>.jsonl. None, or a folder that does not exist: in memory."""

    def __call__(self, row: Ints) -> float:
        return INVALID if reduced(row) is None else _cell_value(self)(row)


@cache
def _cell_value(objective: Objective) -> CellValue:
    """One for each objective of a process, so that images are loaded once."""
    split = DATA[objective.data][1](objective.folder)
    keeps = objective.trained is not None and Path(objective.trained).is_dir()
    return CellValue(split, file=Path(str(objective.trained)) / f"{objective.data}.jsonl" if keeps else None)
