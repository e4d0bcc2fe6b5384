"""Search for a small convolutional network that classifies images well.

The paper's search has 260 evaluations of 4 seeds and 20 epochs; fewer seeds and epochs give a rougher value sooner.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from carbo.errors import CarboError

from .objective import DATA, CellValue
from .search import described, search
from .training import EPOCHS, SEEDS


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line; returns the exit code."""
    arguments = _parser().parse_args(argv)
    images, load = DATA[arguments.data]
    try:
        split = load(arguments.folder)
        value = CellValue(split, tuple(range(arguments.seeds)), arguments.epochs, arguments.trained)
        result = search(value, arguments.budget, arguments.seed, partial(print, flush=True))
    except CarboError as error:
        print(error, file=sys.stderr)
        return 2
    if result.x is None:
        return 130
    print(f"{described(result, images)}\n{len(value.accuracies)} different networks")
    return 0 if result.success else 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=f"python -m {__package__}", description=__doc__)
    parser.add_argument("--data", choices=tuple(DATA), default="digits", help="images (default: %(default)s)")
    parser.add_argument("--folder", help="folder of the downloaded CIFAR-10 files")
    parser.add_argument("--budget", type=int, default=30, help="number of evaluations (default: %(default)s)")
    parser.add_argument("--seeds", type=int, default=len(SEEDS), help="trainings of a network (default: %(default)s)")
    parser.add_argument("--epochs", type=int, default=EPOCHS, help="epochs of a training (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the search (default: %(default)s)")
    parser.add_argument("--trained", type=Path, metavar="FILE",
                        help="read accuracies from this file and add new ones to it")  # fmt: skip
    return parser


if __name__ == "__main__":
    sys.exit(main())
