"""Neural architecture search: the paper's cell of 31 bits, on CIFAR-10 or on scikit-learn's digits.

The objective is validation error + 0.02 operations / operations of the full cell; `examples/nas` has all of it. The ten
starting points are the paper's.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from carbo.numerics.types import Ints
from carbo.space.space import Space
from carbo.space.variables import Binary
from examples.nas.cell import NAMES, bits_of, is_valid
from examples.nas.cifar10 import located
from examples.nas.objective import Objective
from examples.nas.training import EPOCHS, SEEDS
from lab.problems.base import Problem
from lab.problems.seeds import check_run

BUDGET = 260
PACKAGES = {"digits": ("torch", "scikit-learn"), "cifar10": ("torch",)}
STARTS = (
    "1100000000100000100001000100101",
    "1111111111100000100001000100101",
    "0011111111100001100001000100101",
    "0011011101100001100001000100101",
    "0011111111111000000011000001101",
    "0011011101111000000011000001101",
    "1111111111111000000011000001101",
    "1111011101111000000011000001101",
    "1111111111111111111111111111111",
    "1101110111111111111111111111111",
)
"""The paper's ten cells: chains, two paths side by side, all connected; 5x5 convolutions, some with pooling between."""


def nas(data: str, run: int, folder: str | Path | None = None, trained: str | Path | None = None) -> Problem:
    """The search on a data set, "digits" or "cifar10". Runs differ only in the seeds of methods.

    folder: the folder of the downloaded files, for cifar10. trained: a folder where accuracies are kept for other
    processes and later runs. DataError when a file is missing.
    """
    if data == "cifar10":
        located(folder)
    return Problem(
        name=f"nas-{data}",
        run=check_run(run),
        space=Space({name: Binary() for name in NAMES}),
        budget=BUDGET,
        objective=Objective(data, *(None if each is None else str(each) for each in (folder, trained))),
        design=_design,
        optimum=None,
        instance={"data": data, "seeds": len(SEEDS), "epochs": EPOCHS},
        valid=is_valid,
        packages=PACKAGES[data],
    )


def _design(run: int) -> Ints:  # noqa: ARG001 - all runs start from the same cells
    return np.array([bits_of(text) for text in STARTS])
