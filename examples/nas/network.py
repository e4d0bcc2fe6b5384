"""The network of three stacked cells in torch, several copies of it side by side: one for each seed.

Copies share nothing: every layer treats the G copies as groups of channels, so that what each computes, and each
gradient, is what it would be alone. One pass over all of them costs far less than G passes over small tensors.

Notation
    G       number of copies
    B       images in a batch
    x       (B, G * channels, side, side)
    w       (G, after, before, kernel, kernel) weights of a convolution; b (G * after,) its bias
    P       pixels of an image, side * side
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from .cell import POOL3, Architecture
from .shape import CHANNELS, KERNEL, Images

Tensor = Any
"""torch.Tensor; torch is not imported before it is needed."""


class Stacked:
    """G copies of the network of an architecture. `seeds`: those of the initial weights, one for each copy."""

    def __init__(self, architecture: Architecture, images: Images, seeds: tuple[int, ...], device: Any) -> None:
        import torch

        self._architecture, self._copies, self._device = architecture, len(seeds), device
        self.generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        self.parameters: list[Tensor] = []
        self._stages = list(self._layers(images))
        self._classes = images.classes

    def _layers(self, images: Images) -> Iterator[Callable[[Tensor, bool], Tensor]]:
        """The layers in order; each a function of x and whether this is training."""
        import torch.nn.functional as F

        before, side = images.channels, images.side
        yield self._block(before, CHANNELS[0], 3)
        for channels in CHANNELS:
            if channels != CHANNELS[0]:
                yield self._conv(before, channels, 1)
            yield self._cell(channels)
            yield lambda x, _training: F.max_pool2d(x, 2)
            before, side = channels, side // 2
        yield self._linear(before * side**2, images.classes)

    def __call__(self, x: Tensor, training: bool) -> Tensor:
        """(B, G * channels, side, side) to scores (G, B, classes)."""
        import torch

        x = x.contiguous(memory_format=torch.channels_last)  # in which pooling is several times faster
        for stage in self._stages:
            x = stage(x, training)
        return x

    def _cell(self, channels: int) -> Callable[[Tensor, bool], Tensor]:
        nodes = [self._node(kind, channels) for kind in self._architecture.kinds]

        def cell(x: Tensor, training: bool) -> Tensor:
            known = [x]
            for node, counts in zip(nodes, self._architecture.inputs, strict=False):
                known.append(node(_sum(known, counts), training))
            return _sum(known, self._architecture.inputs[-1])

        return cell

    def _node(self, kind: str, channels: int) -> Callable[[Tensor, bool], Tensor]:
        import torch.nn.functional as F

        if kind == POOL3:
            return lambda x, _training: F.max_pool2d(x, 3, stride=1, padding=1)
        return self._block(channels, channels, KERNEL[kind])

    def _block(self, before: int, after: int, kernel: int) -> Callable[[Tensor, bool], Tensor]:
        """Convolution, batch norm, ReLU."""
        import torch
        import torch.nn.functional as F

        conv = self._conv(before, after, kernel)
        size = self._copies * after
        scale, shift = (self._parameter(torch.full((size,), value)) for value in (1.0, 0.0))
        mean, variance = (torch.full((size,), value, device=self._device) for value in (0.0, 1.0))

        def block(x: Tensor, training: bool) -> Tensor:
            x = F.batch_norm(conv(x, training), mean, variance, scale, shift, training=training)
            return F.relu(x)

        return block

    def _conv(self, before: int, after: int, kernel: int) -> Callable[[Tensor, bool], Tensor]:
        w, b = self._draw(before * kernel**2, after, before, kernel, kernel)

        def conv(x: Tensor, training: bool) -> Tensor:  # noqa: ARG001 - all layers have one form
            return convolved(x, w, b)

        return conv

    def _linear(self, before: int, after: int) -> Callable[[Tensor, bool], Tensor]:
        import torch

        w, b = self._draw(before, after, before)

        def linear(x: Tensor, training: bool) -> Tensor:  # noqa: ARG001
            flat = x.reshape(len(x), self._copies, -1).transpose(0, 1)
            return torch.baddbmm(b.reshape(self._copies, 1, after), flat, w.transpose(1, 2))

        return linear

    def _draw(self, fan_in: int, *shape: int) -> tuple[Tensor, Tensor]:
        """Weights (G, *shape) and bias (G * shape[0],), both uniform within 1 / sqrt(fan_in): torch's default."""
        import torch

        bound = fan_in**-0.5
        drawn = [
            [torch.rand(size, generator=generator) * (2 * bound) - bound for size in (shape, shape[:1])]
            for generator in self.generators
        ]
        weights, biases = zip(*drawn, strict=True)
        return self._parameter(torch.stack(weights)), self._parameter(torch.cat(biases))

    def _parameter(self, tensor: Tensor) -> Tensor:
        self.parameters.append(tensor.to(self._device).requires_grad_())
        return self.parameters[-1]


def _sum(known: list[Tensor], counts: tuple[int, ...]) -> Tensor:
    terms = [x if count == 1 else count * x for x, count in zip(known, counts, strict=True) if count]
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


def convolved(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    """Each copy's images under its own kernel, padded with zeros to keep their side."""
    import torch.nn.functional as F

    copies, after, before, kernel, _ = w.shape
    if x.shape[-1] <= kernel:
        return by_matrix(x, w, b)
    return F.conv2d(x, w.reshape(copies * after, before, kernel, kernel), b, padding=kernel // 2, groups=copies)


def by_matrix(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    """The same as a product with one matrix a copy, from (channel, pixel) to (pixel, channel).

    Far faster where the kernel is no smaller than the image, as most of the kernel then lies outside of it.
    """
    import torch
    import torch.nn.functional as F

    copies, after, before, kernel, _ = w.shape
    size, side = len(x), x.shape[-1]
    pixels = side**2
    taps = F.pad(w.reshape(copies, after, before, kernel**2).permute(0, 2, 3, 1), (0, 0, 0, 1))
    matrix = taps.index_select(2, _kernel_places(side, kernel).to(w.device)).reshape(
        copies, before * pixels, pixels * after
    )
    out = torch.bmm(x.reshape(size, copies, before * pixels).transpose(0, 1), matrix)
    out = out.reshape(copies, size, pixels, after).permute(1, 2, 0, 3).reshape(size, side, side, copies * after) + b
    return out.permute(0, 3, 1, 2)


@lru_cache
def _kernel_places(side: int, kernel: int) -> Tensor:
    """(P * P,) under which place of the kernel each input pixel (first) is for each output pixel; kernel^2: none."""
    import torch

    step = torch.arange(side)[:, None] - torch.arange(side)[None, :] + kernel // 2  # (side, side): input, output
    within = (step >= 0) & (step < kernel)
    place = step[:, None, :, None] * kernel + step[None, :, None, :]  # input row and column, output row and column
    inside = within[:, None, :, None] & within[None, :, None, :]
    return torch.where(inside, place, kernel**2).reshape(-1)
