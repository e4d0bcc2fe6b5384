"""The architecture search's networks and training, against plain torch modules. Needs torch."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from examples.nas.cell import BITS, Architecture, decoded, reduced
from examples.nas.shape import FULL, KERNEL, Images, operations

torch: Any = pytest.importorskip("torch", reason="torch is not installed: pip install 'carbo[nas]'")
nn: Any = torch.nn

from examples.nas import network, training  # noqa: E402
from examples.nas.__main__ import main  # noqa: E402

DIGITS, CIFAR10 = Images(1, 8, 10), Images(3, 32, 10)
CPU = torch.device("cpu")
MIXED = Architecture(("conv3", "pool3", "conv5"), ((1,), (0, 2), (1, 0, 1), (1, 1, 0, 3)))


class Plain:
    """The paper's drawing layer by layer, its cells node by node; useless nodes are computed for nothing."""

    def __init__(self, row: Any, images: Images, pruned: bool = False) -> None:
        cell = decoded(row)
        self.edges = pruned_edges(cell.edges) if pruned else cell.edges
        before = images.channels
        self.stem = nn.Sequential(nn.Conv2d(before, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU())
        kinds = (*cell.kinds, "identity")
        self.cells = [nn.ModuleList(node(kind, channels) for kind in kinds) for channels in (16, 32, 64)]
        self.links = [nn.Identity(), nn.Conv2d(16, 32, 1), nn.Conv2d(32, 64, 1)]
        self.pool = nn.MaxPool2d(2)
        self.last = nn.Linear(64 * (images.side // 8) ** 2, images.classes)
        order = [self.stem, *(part for pair in zip(self.links, self.cells, strict=True) for part in pair), self.last]
        self.all = nn.ModuleList([*order, self.pool])

    def __call__(self, x: Any) -> Any:
        x = self.stem(x)
        for link, nodes in zip(self.links, self.cells, strict=True):
            x = self.pool(self.cell(nodes, link(x)))
        return self.last(x.flatten(1))

    def cell(self, nodes: Any, x: Any) -> Any:
        values = [x]
        for j, compute in enumerate(nodes, start=1):
            inputs = [values[i] for i in range(j) if self.edges[i][j] and values[i] is not None]
            values.append(compute(torch.stack(inputs).sum(0)) if inputs else None)
        return values[-1]


def node(kind: str, channels: int) -> Any:
    if kind == "identity":
        return nn.Identity()
    if kind == "pool3":
        return nn.MaxPool2d(3, stride=1, padding=1)
    kernel = KERNEL[kind]
    return nn.Sequential(nn.Conv2d(channels, channels, kernel, padding="same"), nn.BatchNorm2d(channels), nn.ReLU())


def pruned_edges(edges: tuple[tuple[int, ...], ...]) -> list[list[bool]]:
    """Without connections to nodes that lead nowhere, which a counted pass would count."""
    reaches = [False] * 6 + [True]
    for i in reversed(range(6)):
        reaches[i] = any(edges[i][j] and reaches[j] for j in range(i + 1, 7))
    return [[bool(edge and reaches[j]) for j, edge in enumerate(outs)] for outs in edges]


def chain(*kinds: str) -> Any:
    """The row in which IN, nodes of these kinds and OUT follow one another; the other nodes are useless."""
    bits = {"identity": (0, 0), "pool3": (0, 1), "conv3": (1, 0), "conv5": (1, 1)}
    row = np.zeros(BITS, dtype=np.intp)
    places = [0, *range(1, len(kinds) + 1), 6]
    for place, kind in enumerate(kinds):
        row[2 * place : 2 * place + 2] = bits[kind]
    starts = np.cumsum([10, 6, 5, 4, 3, 2])
    for i, j in itertools.pairwise(places):
        row[starts[i] + j - i - 1] = 1
    return row


ROWS = [
    chain(),
    chain("conv3"),
    chain("conv5", "pool3", "identity", "conv3"),
    *np.random.default_rng(5).integers(0, 2, (200, BITS))[:6],
]


def valid_rows() -> list[Any]:
    return [row for row in ROWS if reduced(row) is not None]


def test_the_rows_of_these_tests_are_not_all_alike() -> None:
    architectures = {reduced(row) for row in valid_rows()}
    assert len(architectures) >= 7
    assert {kind for each in architectures if each for kind in each.kinds} == set(KERNEL)
    assert any(count > 1 for each in architectures if each for counts in each.inputs for count in counts)


# ---------------------------------------------------------------- operations


def counted(model: Plain, images: Images) -> int:
    """Operations of one image's forward pass, as hooks on the layers see them."""
    total = 0
    price: dict[Any, Any] = {
        nn.Conv2d: lambda layer: 2 * layer.in_channels * layer.kernel_size[0] * layer.kernel_size[1],
        nn.Linear: lambda layer: 2 * layer.in_features,
        nn.MaxPool2d: lambda layer: layer.kernel_size**2 - 1,
        nn.BatchNorm2d: lambda _layer: 2,
        nn.ReLU: lambda _layer: 1,
    }

    def hook(layer: Any, _inputs: Any, output: Any) -> None:
        nonlocal total
        total += output.numel() * price[type(layer)](layer)

    for layer in model.all.modules():
        if type(layer) in price:
            layer.register_forward_hook(hook)
    with torch.no_grad():
        model.all.eval()
        model(torch.zeros(1, images.channels, images.side, images.side))
    return total


@pytest.mark.parametrize("images", [DIGITS, CIFAR10], ids=["digits", "cifar10"])
def test_operations_are_those_of_a_counted_forward_pass(images: Images) -> None:
    for row in valid_rows():
        architecture = reduced(row)
        assert architecture is not None
        assert operations(architecture, images) == counted(Plain(row, images, pruned=True), images)
    assert operations(FULL, images) == counted(Plain(np.ones(BITS, dtype=np.intp), images), images)


# ---------------------------------------------------------------- the network


def copied(stacked: network.Stacked, copy: int, row: Any, images: Images) -> Plain:
    """A plain network with the weights of one of two copies. For chains, whose nodes stay in their order."""
    model = Plain(row, images)
    given = iter(stacked.parameters)
    with torch.no_grad():
        for layer in model.all.modules():
            if isinstance(layer, (nn.Conv2d, nn.BatchNorm2d, nn.Linear)):
                for mine, theirs in ((layer.weight, next(given)), (layer.bias, next(given))):
                    mine.copy_(theirs.reshape(2, *mine.shape)[copy])
    return model


def batch(images: Images, size: int, seed: int = 0) -> Any:
    return torch.randn(size, images.channels, images.side, images.side, generator=torch.Generator().manual_seed(seed))


CHAINS = [chain(), chain("conv3"), chain("conv3", "conv5"), chain("conv3", "pool3", "identity", "conv5")]


@pytest.mark.parametrize(
    ("row", "images"),
    [*((row, DIGITS) for row in CHAINS), (CHAINS[-1], Images(3, 16, 10))],
    ids=["empty", "one", "two", "three", "larger"],
)
def test_each_copy_computes_what_a_plain_network_of_its_weights_does(row: Any, images: Images) -> None:
    architecture = reduced(row)
    assert architecture is not None
    stacked = network.Stacked(architecture, images, (3, 4), CPU)
    pictures = [batch(images, 6, seed) for seed in (1, 2)]
    scores = stacked(torch.cat(pictures, dim=1), training=True)
    after = stacked(torch.cat(pictures, dim=1), training=False)
    for copy in (0, 1):
        model = copied(stacked, copy, row, images)
        torch.testing.assert_close(scores[copy], model(pictures[copy]), rtol=1e-4, atol=1e-5)
        model.all.eval()
        torch.testing.assert_close(after[copy], model(pictures[copy]), rtol=1e-4, atol=1e-5)


def test_copies_learn_as_if_alone() -> None:
    """Three steps of Adam on two copies, and on plain networks one by one."""
    row = chain("conv3", "conv5")
    architecture = reduced(row)
    assert architecture is not None
    stacked = network.Stacked(architecture, DIGITS, (3, 4), CPU)
    models = [copied(stacked, copy, row, DIGITS) for copy in (0, 1)]
    pictures, labels = [batch(DIGITS, 20, seed) for seed in (1, 2)], torch.arange(20) % 10
    adam = torch.optim.Adam(stacked.parameters, weight_decay=training.WEIGHT_DECAY, fused=True)
    for _ in range(3):
        scores = stacked(torch.cat(pictures, dim=1), training=True)
        losses = torch.stack([nn.functional.cross_entropy(each, labels) for each in scores])
        adam.zero_grad()
        losses.sum().backward()
        adam.step()
    for copy, model in enumerate(models):
        alone = torch.optim.Adam(model.all.parameters(), weight_decay=training.WEIGHT_DECAY)
        for _ in range(3):
            alone.zero_grad()
            nn.functional.cross_entropy(model(pictures[copy]), labels).backward()
            alone.step()
        with torch.no_grad():
            together = stacked(torch.cat(pictures, dim=1), training=False)[copy]
            model.all.eval()
            torch.testing.assert_close(together, model(pictures[copy]), rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize(("side", "kernel"), [(2, 3), (2, 5), (4, 5), (4, 3), (8, 5), (1, 3)])
def test_a_product_with_a_matrix_is_the_convolution(side: int, kernel: int) -> None:
    generator = torch.Generator().manual_seed(1)
    x, w, b = (
        torch.randn(*shape, generator=generator) for shape in ((5, 6, side, side), (2, 4, 3, kernel, kernel), (8,))
    )
    wanted = nn.functional.conv2d(x, w.reshape(8, 3, kernel, kernel), b, padding=kernel // 2, groups=2)
    torch.testing.assert_close(network.by_matrix(x, w, b), wanted, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(network.convolved(x, w, b), wanted, rtol=1e-4, atol=1e-4)


# ---------------------------------------------------------------- training


def stripes(n: int, seed: int) -> tuple[Any, Any]:
    """Images of noise with a bright row, whose number is the class."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 4, n)
    pixels = rng.normal(0, 0.5, (n, 1, 8, 8)).astype(np.float32)
    pixels[np.arange(n), 0, 2 * labels] += 3
    return pixels, labels.astype(np.int64)


def striped(learnable: bool = True) -> training.Split:
    pixels, labels = stripes(200, 1)
    if not learnable:
        labels = np.random.default_rng(9).permutation(labels)
    return training.Split(Images(1, 8, 4), pixels, labels, *stripes(100, 2))


def test_training_learns_what_can_be_learnt_and_nothing_else() -> None:
    """By chance a share of 1/4 is right, with a standard deviation of 0.043 on 100 images: 0.6 is eight of them."""
    one = Architecture(("conv3",), ((1,), (0, 1)))
    assert np.mean(training.Trainer(striped()).best(one, seeds=(0, 1), epochs=8)) > 0.9
    assert np.mean(training.Trainer(striped(learnable=False)).best(one, seeds=(0, 1), epochs=8)) < 0.6


def test_the_same_architecture_has_the_same_accuracy_however_often_and_on_however_many_threads() -> None:
    trainer = training.Trainer(striped())
    first = trainer.best(MIXED, seeds=(0, 1), epochs=2)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert training.Trainer(striped()).best(MIXED, seeds=(0, 1), epochs=2) == first
        assert torch.get_num_threads() == 2  # as it was found
    finally:
        torch.set_num_threads(before)


def test_a_seed_does_as_well_in_any_company() -> None:
    """The order of sums may differ with the number of copies, so equality is up to three of 100 images."""
    trainer = training.Trainer(striped())
    together = trainer.best(MIXED, seeds=(5, 6, 7), epochs=2)
    alone = [trainer.best(MIXED, seeds=(seed,), epochs=2)[0] for seed in (5, 6, 7)]
    np.testing.assert_allclose(together, alone, atol=0.031)
    assert len(set(together)) > 1


def test_training_ends_when_every_seed_has_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    accuracies = iter([[0.5, 0.5], [0.9, 0.4], [0.4, 0.3], [1.0, 0.2], [1.0, 1.0]])
    monkeypatch.setattr(training, "PATIENCE", 1)
    monkeypatch.setattr(training.Trainer, "_epoch", lambda *_: None)
    monkeypatch.setattr(training.Trainer, "_validated", lambda *_: next(accuracies))
    assert training.Trainer(striped()).best(MIXED, seeds=(0, 1), epochs=20) == [0.9, 0.5]
    assert next(accuracies) == [1.0, 0.2]  # the third epoch was the last


def test_the_command_searches_digits_and_says_the_best_cell(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is not installed: pip install 'carbo[nas]'")
    command = ["--budget", "3", "--seeds", "1", "--epochs", "1", "--trained", str(tmp_path / "x.jsonl")]
    assert main(command) == 0
    first = capsys.readouterr().out.splitlines()
    assert [line.split(",")[0].split(":")[0] for line in first[:3]] == [f"   {n} of 3" for n in (1, 2, 3)]
    assert [line.split(":")[0] for line in first[3:6]] == ["best value of 3 evaluations", "its nodes", "its bits"]
    assert main(command) == 0  # from the file, without training
    assert capsys.readouterr().out.splitlines()[3:] == first[3:]
