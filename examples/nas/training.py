"""Training of a network: Adam, batches of 100, 20 epochs, the best validation accuracy of each of 4 seeds.

A processor (CPU) computes on one thread, so that an architecture has the same accuracy in every process. Another kind
of processor or another version of torch may round differently, and the accuracy may then differ by a few images.

Notation
    G       number of seeds
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from carbo.errors import SettingsError

from .cell import Architecture
from .network import Stacked, Tensor
from .shape import Images

SEEDS = (0, 1, 2, 3)
EPOCHS, BATCH = 20, 100
AT_ONCE = 250
"""Validation images in one pass; the number does not change the result."""
WEIGHT_DECAY = 5e-5
PATIENCE = 10
"""A seed stops when its accuracy is below its accuracy so many epochs before."""


@dataclass(frozen=True, eq=False)
class Split:
    """Images to train on and to validate with: pixels (n, channels, side, side) float32, labels (n,) from 0 on."""

    images: Images
    pixels: NDArray[np.float32]
    labels: NDArray[np.int64]
    validation_pixels: NDArray[np.float32]
    validation_labels: NDArray[np.int64]

    def digest(self, seeds: tuple[int, ...] = SEEDS, epochs: int = EPOCHS) -> str:
        """A digest of the images and of the training: equal digests mean equal accuracies, but for rounding."""
        total = hashlib.sha256(repr((*self.images, seeds, epochs, BATCH, WEIGHT_DECAY, PATIENCE)).encode())
        for part in (self.pixels, self.labels, self.validation_pixels, self.validation_labels):
            total.update(np.ascontiguousarray(part).tobytes())
        return total.hexdigest()[:16]


class _Tensors(NamedTuple):
    """The images of a split on the device that computes; pixels (n, side, side, channels)."""

    pixels: Tensor
    labels: Tensor
    validation: Tensor
    """(n, channels, side, side)"""
    validation_labels: Tensor


class Trainer:
    """Trains networks on one split. SettingsError when torch is not installed."""

    def __init__(self, split: Split) -> None:
        try:
            import torch
        except ImportError:
            raise SettingsError("training: expected the package torch to be installed, got none; "
                                "pip install 'carbo[nas]'") from None  # fmt: skip

        self._images = split.images
        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        pixels, validation = (torch.from_numpy(each) for each in (split.pixels, split.validation_pixels))
        labels, others = (torch.from_numpy(each) for each in (split.labels, split.validation_labels))
        self._data = _Tensors(
            pixels.permute(0, 2, 3, 1).contiguous().to(self._device),
            labels.to(self._device),
            validation.to(self._device),
            others.to(self._device),
        )

    def best(self, architecture: Architecture, seeds: tuple[int, ...] = SEEDS, epochs: int = EPOCHS) -> list[float]:
        """(G,) the best validation accuracy of each seed over the epochs."""
        with _one_thread():
            return self._best(architecture, seeds, epochs)

    def _best(self, architecture: Architecture, seeds: tuple[int, ...], epochs: int) -> list[float]:
        import torch

        network = Stacked(architecture, self._images, seeds, self._device)
        adam = torch.optim.Adam(network.parameters, weight_decay=WEIGHT_DECAY, fused=True)
        history: list[list[float]] = [[] for _ in seeds]
        stopped = [False] * len(seeds)
        for _ in range(epochs):
            self._epoch(network, adam)
            for seed, accuracy in enumerate(self._validated(network)):
                if not stopped[seed]:
                    history[seed].append(accuracy)
                    stopped[seed] = is_over(history[seed])
            if all(stopped):
                break
        return [max(accuracies) for accuracies in history]

    def _epoch(self, network: Stacked, adam: Any) -> None:
        """Train on every image once; each copy has its own order of the images."""
        import torch
        import torch.nn.functional as F

        count = len(self._data.labels)
        order = torch.stack([torch.randperm(count, generator=each) for each in network.generators])
        for batch in torch.split(order.to(self._device), BATCH, dim=1):
            scores = network(self._together(batch), training=True)
            labels = self._data.labels[batch]
            # the sum over copies of each copy's mean: the gradient of a copy does not depend on the others
            loss: Tensor = F.cross_entropy(scores.reshape(labels.numel(), -1), labels.reshape(-1), reduction="sum")
            adam.zero_grad(set_to_none=True)
            (loss / batch.shape[1]).backward()
            adam.step()

    def _together(self, batch: Tensor) -> Tensor:
        """The images with these numbers (G, B), as (B, G * channels, side, side)."""
        chosen = self._data.pixels[batch].permute(1, 2, 3, 0, 4)  # (B, side, side, G, channels)
        return chosen.reshape(*chosen.shape[:3], -1).permute(0, 3, 1, 2)

    def _validated(self, network: Stacked) -> list[float]:
        """(G,) the share of the validation images that each copy classifies correctly."""
        import torch

        copies = len(network.generators)
        right = torch.zeros(copies, dtype=torch.int64, device=self._device)
        with torch.no_grad():
            for x, labels in zip(
                torch.split(self._data.validation, AT_ONCE),
                torch.split(self._data.validation_labels, AT_ONCE),
                strict=True,
            ):
                scores = network(x.repeat(1, copies, 1, 1), training=False)
                right += (scores.argmax(dim=2) == labels).sum(dim=1)
        return [count / len(self._data.validation_labels) for count in right.tolist()]


def shuffled(count: int) -> NDArray[np.intp]:
    """(count,) the numbers from 0 on, shuffled as in the paper."""
    order = np.arange(count)
    np.random.RandomState(0).shuffle(order)
    return order


def normalised(train: NDArray[Any], validate: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Pixels (n, channels, side, side) minus mean over standard deviation of each channel of the first."""
    mean = np.mean(train, axis=(0, 2, 3), keepdims=True, dtype=np.float64).astype(train.dtype)
    spread = np.std(train, axis=(0, 2, 3), keepdims=True, dtype=np.float64).astype(train.dtype)
    first, second = (((each - mean) / spread).astype(np.float32) for each in (train, validate))
    return first, second


def is_over(accuracies: list[float]) -> bool:
    """Whether the last accuracy is below the accuracy PATIENCE epochs before it."""
    return len(accuracies) > PATIENCE and accuracies[-1] < accuracies[-1 - PATIENCE]


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """A context in which torch computes on one thread, so that sums do not depend on the number of threads."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
