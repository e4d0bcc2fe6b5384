"""The network of three stacked cells: its sizes, and the operations of one image's forward pass.

    conv 3x3 - batch norm - ReLU, cell, max-pool 2x2 - conv 1x1, cell, max-pool 2x2 - conv 1x1, cell, max-pool 2x2 - FC

The cells have 16, 32 and 64 channels, and images half the side of the cell before.

Operations: a multiplication, an addition and a comparison are one each. Counted are the layers (convolutions as if the
padding were image, with their bias; batch norm as a factor and a summand; ReLU; pooling; FC); the sums of a node's
inputs, under a hundredth of the least convolution, are not.
"""

from __future__ import annotations

from typing import NamedTuple

from .cell import CONV3, CONV5, HIDDEN, POOL3, Architecture

CHANNELS = (16, 32, 64)
KERNEL = {POOL3: 3, CONV3: 3, CONV5: 5}
FULL = Architecture((CONV5,) * HIDDEN, tuple((1,) * n for n in range(1, HIDDEN + 2)))
"""All connections, convolutions 5x5 everywhere: the most operations there are."""


class Images(NamedTuple):
    """The form of the images: channels, pixels on a side (a multiple of 8), classes."""

    channels: int
    side: int
    classes: int


def operations(architecture: Architecture, images: Images) -> int:
    """The operations of the forward pass of one image through the network of three such cells."""
    side, before = images.side, images.channels
    total = _block(before, CHANNELS[0], 3, side)
    for stage, channels in enumerate(CHANNELS):
        if stage:
            total += _conv(before, channels, 1, side)
        total += sum(_node(kind, channels, side) for kind in architecture.kinds)
        side //= 2
        total += _pool(channels, 2, side)
        before = channels
    return total + _conv(before * side**2, images.classes, 1, 1)


def ratio(architecture: Architecture, images: Images) -> float:
    """Operations in units of those of the full cell's network."""
    return operations(architecture, images) / operations(FULL, images)


def _node(kind: str, channels: int, side: int) -> int:
    kernel = KERNEL[kind]
    return _pool(channels, kernel, side) if kind == POOL3 else _block(channels, channels, kernel, side)


def _block(before: int, after: int, kernel: int, side: int) -> int:
    """Convolution, batch norm, ReLU."""
    return _conv(before, after, kernel, side) + 3 * after * side**2


def _conv(before: int, after: int, kernel: int, side: int) -> int:
    """A product and a sum for each weight; the bias takes the place of the sum that n products do not need."""
    return 2 * before * kernel**2 * after * side**2


def _pool(channels: int, kernel: int, side: int) -> int:
    return (kernel**2 - 1) * channels * side**2
