"""A search for a small network's cell on your own images: 31 bits, each evaluation a training. Takes some seconds."""

from __future__ import annotations

import numpy as np

import carbo
from lab.nas.cell import Architecture, is_valid, reduced
from lab.nas.objective import priced
from lab.nas.shape import Images, ratio
from lab.nas.training import Split, Trainer
from lab.problems.nas import NAMES

IMAGES = Images(channels=1, side=8, classes=3)  # the side is a multiple of 8
SEEDS, EPOCHS, BUDGET = (0, 1), 2, 10  # for real: four seeds, 20 epochs, some hundred evaluations


def your_images(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Yours are read from files. These are noise with a spot at the left, in the middle or at the right."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(IMAGES.classes, size=count)
    pixels = rng.normal(size=(count, IMAGES.channels, IMAGES.side, IMAGES.side))
    for image, label in zip(pixels, labels, strict=True):
        top, left = rng.integers(6), 2 * label + rng.integers(2)
        image[0, top : top + 2, left : left + 2] += 1.8
    return pixels.astype(np.float32), labels.astype(np.int64)


SPACE = carbo.Space(
    {name: carbo.Binary() for name in NAMES},
    constraint=lambda params: is_valid(np.array([params[name] for name in NAMES], dtype=int)),  # a way from IN to OUT
)


def main() -> None:
    trainer = Trainer(Split(IMAGES, *your_images(300, seed=1), *your_images(300, seed=2)))
    known: dict[Architecture, float] = {}

    def cell(params: dict[str, bool]) -> Architecture:
        """What the bits make; different bits may make the same network."""
        found = reduced(np.array([params[name] for name in NAMES], dtype=int))
        assert found is not None  # the constraint sees to that
        return found

    def value(params: dict[str, bool]) -> float:
        """Validation error, and a price on operations."""
        found = cell(params)
        if found not in known:
            known[found] = priced(trainer.accuracy(found, SEEDS, EPOCHS), found, IMAGES)
        return known[found]

    result = carbo.minimize(value, SPACE, budget=BUDGET, seed=1, initial=6)
    best = cell(result.x)
    print(f"best of {BUDGET} evaluations, {len(known)} of them trained: {result.fun:.3f}")
    print(f"its nodes: {', '.join(best.kinds) or 'none'}; {ratio(best, IMAGES):.0%} of the operations of the full cell")


if __name__ == "__main__":
    main()
