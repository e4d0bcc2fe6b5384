"""Cells of the architecture search: decoding, what is left of them, operations, what is remembered. Without torch."""

from __future__ import annotations

import inspect
import io
import itertools
import json
import multiprocessing
import pickle
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from carbo.errors import CarboError, DataError, SettingsError
from examples.nas import cifar10, digits, objective, training
from examples.nas.cache import Cache
from examples.nas.cell import (
    BITS,
    CONV3,
    CONV5,
    IDENTITY,
    NAMES,
    NODES,
    POOL3,
    Architecture,
    Ints,
    bits_of,
    decoded,
    is_valid,
    reduced,
)
from examples.nas.objective import DATA, INVALID, CellValue, Objective
from examples.nas.search import described, row_of, search, space
from examples.nas.shape import FULL, Images, operations, ratio
from examples.nas.training import Split, is_over, normalised, shuffled
from lab.problems import problem
from lab.problems.nas import STARTS

GOLDEN: list[str] = json.loads((Path(__file__).parents[1] / "golden_nas.json").read_text())["initial_architectures"]
DIGITS, CIFAR10 = Images(1, 8, 10), Images(3, 32, 10)
EDGES = list(itertools.combinations(range(NODES), 2))
"""In the order of the last 21 bits."""
CODES = {IDENTITY: (0, 0), POOL3: (0, 1), CONV3: (1, 0), CONV5: (1, 1)}


def row_of_cell(kinds: list[str], edges: set[tuple[int, int]]) -> Ints:
    """The row of a cell: kinds of H1..H5, connections between nodes 0 (IN) to 6 (OUT)."""
    types = [bit for kind in kinds for bit in CODES[kind]]
    return np.array(types + [int(edge in edges) for edge in EDGES], dtype=np.intp)


def random_rows(n: int, seed: int = 0) -> Ints:
    return np.random.default_rng(seed).integers(0, 2, (n, BITS))


def paths_of(row: Ints) -> list[tuple[int, ...]]:
    """All ways from IN to OUT, found by walking."""
    edges = decoded(row).edges
    found: list[tuple[int, ...]] = []
    open_ways: list[tuple[int, ...]] = [(0,)]
    while open_ways:
        way = open_ways.pop()
        if way[-1] == NODES - 1:
            found.append(way)
        else:
            open_ways += [(*way, j) for j in range(NODES) if edges[way[-1]][j]]
    return found


# ---------------------------------------------------------------- decoding


def test_the_papers_example_reads_as_its_table() -> None:
    """Connections of the table in section 4.4: IN to H1 and H5, H1 to H3 and OUT, H2 to H4, H3 to H5, H4 to H5, OUT."""
    bits = "0010110000" + "100010" + "01001" + "0100" + "010" + "11" + "0"
    cell = decoded(bits_of(bits))
    assert cell.kinds == (IDENTITY, CONV3, CONV5, IDENTITY, IDENTITY)
    wanted = {(0, 1), (0, 5), (1, 3), (1, 6), (2, 4), (3, 5), (4, 5), (4, 6)}
    assert {(i, j) for i, j in itertools.product(range(NODES), repeat=2) if cell.edges[i][j]} == wanted
    assert reduced(bits_of(bits)) == Architecture((), ((1,),))  # only IN - H1 - OUT is left, and H1 is an identity


def test_bits_have_the_names_of_what_they_switch() -> None:
    row = row_of_cell([CONV3, POOL3, IDENTITY, CONV5, IDENTITY], {(0, 3), (2, 6), (5, 6)})
    on = {name for name, bit in zip(NAMES, row.tolist(), strict=True) if bit}
    assert on == {"H1 conv", "H2 large", "H4 conv", "H4 large", "IN-H3", "H2-OUT", "H5-OUT"}


@pytest.mark.parametrize("row", [np.zeros(30, dtype=int), np.full(BITS, 2), np.zeros((1, BITS), dtype=int)])
def test_a_row_that_is_not_31_bits_is_refused(row: Ints) -> None:
    with pytest.raises(DataError, match="cell: expected 31 bits of 0 and 1, got"):
        decoded(row)


@pytest.mark.parametrize("text", ["", "0" * 30, "2" * BITS])
def test_a_text_that_is_not_31_bits_is_refused(text: str) -> None:
    with pytest.raises(DataError, match="cell: expected 31 characters 0 and 1, got"):
        bits_of(text)


# ---------------------------------------------------------------- what is left


def test_a_cell_is_valid_where_a_path_leads_from_in_to_out() -> None:
    rows = random_rows(400)
    verdicts = [is_valid(row) for row in rows]
    assert verdicts == [bool(paths_of(row)) for row in rows] == [reduced(row) is not None for row in rows]
    assert {True, False} == set(verdicts)


def test_nodes_on_no_path_make_no_difference() -> None:
    """Their kinds and connections drawn anew, where that makes no new way."""
    rng = np.random.default_rng(1)
    changed = 0
    for row in (row for row in random_rows(600, 2) if paths_of(row)):
        useless = set(range(1, 6)) - {node for way in paths_of(row) for node in way}
        theirs = [node in useless for node in range(1, 6) for _ in range(2)]
        mask = np.array(theirs + [bool({i, j} & useless) for i, j in EDGES])
        other = np.where(mask, rng.integers(0, 2, BITS), row)
        if set(paths_of(other)) == set(paths_of(row)):
            assert reduced(other) == reduced(row)
            changed += int((other != row).any())
    assert changed > 50


def test_an_identity_passes_sums_on() -> None:
    """IN - H1 - OUT and IN - H2 - OUT with H1 and H2 identities add IN twice, as H1 alone with IN - OUT does."""
    conv = [IDENTITY, IDENTITY, CONV3, IDENTITY, IDENTITY]
    twice = row_of_cell(conv, {(0, 1), (0, 2), (1, 3), (2, 3), (3, 6)})
    also_twice = row_of_cell(conv, {(0, 1), (1, 3), (0, 3), (3, 6)})
    once = row_of_cell(conv, {(0, 1), (1, 3), (3, 6)})
    assert reduced(twice) == reduced(also_twice) == Architecture((CONV3,), ((2,), (0, 1)))
    assert reduced(once) == Architecture((CONV3,), ((1,), (0, 1)))


def test_the_names_of_nodes_make_no_difference() -> None:
    """Two nodes side by side change places: other bits, the same network."""
    one = row_of_cell([CONV3, CONV5, IDENTITY, IDENTITY, IDENTITY], {(0, 1), (0, 2), (1, 6), (2, 6), (0, 6)})
    other = row_of_cell([IDENTITY, CONV5, IDENTITY, CONV3, IDENTITY], {(0, 2), (0, 4), (2, 6), (4, 6), (0, 6)})
    assert reduced(one) == reduced(other)
    assert reduced(one) != reduced(
        row_of_cell([CONV3, CONV3] + [IDENTITY] * 3, {(0, 1), (0, 2), (1, 6), (2, 6), (0, 6)})
    )


def signature(row: Ints) -> tuple[float, ...]:
    """What a cell computes on a number, under every way of giving its nodes five different functions of their kind.

    Nodes of the same kind have different weights, so each function is used once; the collection of all results does
    not depend on the names of nodes. An oracle that knows nothing of pruning, identities or order.
    """
    cell = decoded(row)
    slope = {POOL3: 0.31, CONV3: 0.53, CONV5: 0.79}
    on_a_way = {node for way in paths_of(row) for node in way}
    free = [node for node in range(1, 6) if cell.kinds[node - 1] != IDENTITY and node in on_a_way]
    results = []
    for places in itertools.permutations(range(5), len(free)):
        place = dict(zip(free, places, strict=True))
        values = [0.7]
        for j in range(1, NODES):
            total = sum(values[i] for i in range(j) if cell.edges[i][j] and (i in on_a_way))
            if j in place:
                total = float(np.sin(slope[cell.kinds[j - 1]] * total + 0.37 * place[j] + 0.2))
            values.append(total)
        results.append(round(values[-1], 9))
    return tuple(sorted(results))


def test_architectures_are_equal_just_where_cells_compute_the_same() -> None:
    """On pairs that differ in a few bits, half of which compute the same."""
    rng = np.random.default_rng(7)
    verdicts = []
    for row in (row for row in random_rows(150, 3) if paths_of(row)):
        other = row.copy()
        other[rng.choice(BITS, 2, replace=False)] ^= 1
        if paths_of(other):
            same = signature(row) == signature(other)
            assert (reduced(row) == reduced(other)) == same
            verdicts.append(same)
    assert 10 < sum(verdicts) < len(verdicts) - 10


def test_an_architecture_is_a_network_in_order() -> None:
    for row in random_rows(200, 4):
        found = reduced(row)
        if found is not None:
            assert [len(counts) for counts in found.inputs] == list(range(1, len(found.kinds) + 2))
            assert all(any(counts) for counts in found.inputs)  # every node has an input
            assert set(found.kinds) <= {POOL3, CONV3, CONV5}


def test_keys_tell_architectures_apart() -> None:
    found = {each for row in random_rows(2_000, 5) if (each := reduced(row))}
    assert len({each.key for each in found}) == len(found) > 500
    assert Architecture((CONV5, POOL3), ((1,), (0, 1), (1, 0, 1))).key == "conv5,pool3;1;0,1;1,0,1"
    assert Architecture((), ((2,),)).key == ";2"


# ---------------------------------------------------------------- operations


def test_operations_of_one_convolution_by_hand() -> None:
    """Digits: sides 8, 4, 2. Stem, three nodes of 3x3 with batch norm and ReLU, two 1x1, three poolings, FC."""
    stem = 2 * 9 * 1 * 16 * 64 + 3 * 16 * 64
    nodes = sum(2 * 9 * c * c * s * s + 3 * c * s * s for c, s in ((16, 8), (32, 4), (64, 2)))
    links = 2 * 16 * 32 * 16 + 2 * 32 * 64 * 4
    pools = 3 * (16 * 16 + 32 * 4 + 64)
    assert operations(Architecture((CONV3,), ((1,), (0, 1))), DIGITS) == stem + nodes + links + pools + 2 * 64 * 10


def test_pooling_counts_its_comparisons() -> None:
    pool, empty = Architecture((POOL3,), ((1,), (0, 1))), Architecture((), ((1,),))
    extra = operations(pool, CIFAR10) - operations(empty, CIFAR10)
    assert extra == 8 * (16 * 32**2 + 32 * 16**2 + 64 * 8**2)


@pytest.mark.parametrize("images", [DIGITS, CIFAR10])
def test_no_cell_has_more_operations_than_the_full_one(images: Images) -> None:
    assert reduced(np.ones(BITS, dtype=np.intp)) == FULL
    ratios = [ratio(each, images) for row in random_rows(300, 6) if (each := reduced(row))]
    assert 0 < min(ratios) < max(ratios) <= ratio(FULL, images) == 1


# ---------------------------------------------------------------- training, as far as it needs no torch


def test_a_seed_stops_when_it_is_worse_than_ten_epochs_ago() -> None:
    rising = [0.5 + 0.01 * epoch for epoch in range(20)]
    assert not is_over(rising)
    assert not is_over([0.9, *rising[:9]])  # nobody was ten epochs ago
    assert is_over([0.9, *rising[:10]])
    assert not is_over([0.5, *rising[:10]])


def test_images_are_shuffled_as_the_paper_says() -> None:
    indices = list(range(50))
    np.random.RandomState(0).shuffle(indices)
    assert shuffled(50).tolist() == indices


def test_images_are_normalised_by_what_is_learnt_from_alone() -> None:
    rng = np.random.default_rng(0)
    train, validate = rng.normal(3, 2, (40, 3, 8, 8)), rng.normal(5, 1, (10, 3, 8, 8))
    first, second = normalised(train, validate)
    np.testing.assert_allclose(first.mean(axis=(0, 2, 3)), 0, atol=1e-6)
    np.testing.assert_allclose(first.std(axis=(0, 2, 3)), 1, atol=1e-6)
    scale = train.std(axis=(0, 2, 3))[:, None, None]
    np.testing.assert_allclose(second, (validate - train.mean(axis=(0, 2, 3))[:, None, None]) / scale, atol=1e-6)


def test_the_digits_are_those_that_results_were_made_with() -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is not installed: pip install 'carbo[nas]'")
    split = DATA["digits"][1](None)
    assert (len(split.labels), len(split.validation_labels), split.pixels.shape[1:]) == (500, 500, (1, 8, 8))
    # whoever changes this digest leaves the recorded runs and the accuracies kept beside them behind
    assert split.digest() == "356551ba258ec618"


# ---------------------------------------------------------------- the objective


class FakeTrainer:
    """A trainer that counts, and finds the more accuracy the more nodes there are."""

    trained: ClassVar[list[str]] = []

    def __init__(self, split: Split) -> None:
        pass

    def best(self, architecture: Architecture, seeds: tuple[int, ...], epochs: int) -> list[float]:
        self.trained.append(architecture.key)
        return [0.5 + 0.05 * len(architecture.kinds) + 0.01 * seed for seed in seeds]


def tiny_split() -> Split:
    pixels, labels = np.zeros((4, 1, 8, 8), dtype=np.float32), np.zeros(4, dtype=np.int64)
    return Split(DIGITS, pixels, labels, pixels, labels)


@pytest.fixture
def fake_trainer(monkeypatch: pytest.MonkeyPatch) -> type[FakeTrainer]:
    monkeypatch.setattr(FakeTrainer, "trained", [])
    monkeypatch.setattr(objective, "Trainer", FakeTrainer)
    monkeypatch.setitem(DATA, "digits", (DIGITS, lambda _folder: tiny_split()))
    objective._cell_value.cache_clear()
    return FakeTrainer


def test_the_value_is_error_plus_a_price_on_operations(fake_trainer: type[FakeTrainer]) -> None:
    row = row_of_cell([CONV3, *[IDENTITY] * 4], {(0, 1), (1, 6)})
    found = reduced(row)
    assert found is not None
    assert Objective("digits")(row) == pytest.approx(1 - 0.565 + 0.02 * ratio(found, DIGITS), abs=1e-12)


def test_an_invalid_cell_has_ten_percent_accuracy_and_all_operations_and_trains_nothing(
    fake_trainer: type[FakeTrainer],
) -> None:
    assert Objective("digits")(np.zeros(BITS, dtype=np.intp)) == INVALID == pytest.approx(0.92)
    assert fake_trainer.trained == []


def test_rows_that_make_the_same_network_share_one_training(fake_trainer: type[FakeTrainer]) -> None:
    one = row_of_cell([CONV3, CONV5, POOL3, POOL3, POOL3], {(0, 1), (0, 2), (1, 6), (2, 6)})
    other = row_of_cell([CONV5, IDENTITY, CONV3, CONV3, CONV3], {(0, 1), (0, 3), (1, 6), (3, 6), (4, 5)})
    value = Objective("digits")
    assert value(one) == value(other) == value(one)
    assert len(fake_trainer.trained) == 1


def test_what_one_process_trained_the_next_one_knows(fake_trainer: type[FakeTrainer], tmp_path: Path) -> None:
    row = np.ones(BITS, dtype=np.intp)
    first = Objective("digits", trained=str(tmp_path))(row)
    objective._cell_value.cache_clear()  # as a new process would begin
    assert Objective("digits", trained=str(tmp_path))(row) == first
    assert fake_trainer.trained == [FULL.key]
    assert str(tmp_path) not in (tmp_path / "digits.jsonl").read_text()


def test_another_training_of_the_same_images_does_not_share_accuracies(
    fake_trainer: type[FakeTrainer], tmp_path: Path
) -> None:
    row, file = np.ones(BITS, dtype=np.intp), tmp_path / "x.jsonl"
    for seeds, epochs in (((0, 1), 20), ((0, 1), 3), ((0,), 3), ((0, 1), 20)):
        CellValue(tiny_split(), seeds, epochs, file)(row)
    assert fake_trainer.trained == [FULL.key] * 3


# ---------------------------------------------------------------- the search


def made_up(row: Ints) -> float:
    """A value without training: the number of bits that are set."""
    return float(row.sum())


def test_the_search_says_every_evaluation_and_proposes_valid_cells_only() -> None:
    said: list[str] = []
    result = search(made_up, budget=8, seed=1, say=said.append)
    assert [line.split(":")[0].strip() for line in said] == [f"{n} of 8" for n in range(1, 9)]
    assert f"best {result.fun:.4f}" in said[-1]
    assert all(is_valid(row_of(params)) for params in result.x_iters)
    assert result.fun == min(result.func_vals) == row_of(result.x).sum()


def test_the_space_is_of_the_valid_cells() -> None:
    rows = random_rows(300)
    np.testing.assert_array_equal(space().feasible(rows), [is_valid(row) for row in rows])


def test_the_best_cell_is_described_by_its_nodes_operations_and_bits() -> None:
    row = row_of_cell([CONV3, *[IDENTITY] * 4], {(0, 1), (1, 6)})
    result = SimpleNamespace(x=dict(zip(NAMES, map(bool, row), strict=True)), fun=0.25, nfev=7)
    said, found = described(result, DIGITS).splitlines(), reduced(row)
    assert found is not None
    assert said[0] == "best value of 7 evaluations: 0.2500"
    assert said[1] == f"its nodes: conv3; {ratio(found, DIGITS):.0%} of the operations of the full cell"
    np.testing.assert_array_equal(bits_of(said[2].removeprefix("its bits: ")), row)


def test_without_a_folder_to_keep_them_accuracies_stay_in_memory(
    fake_trainer: type[FakeTrainer], tmp_path: Path
) -> None:
    Objective("digits", trained=str(tmp_path / "absent"))(np.ones(BITS, dtype=np.intp))
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------- the problem


def test_the_ten_starts_are_the_papers_in_every_run() -> None:
    assert list(STARTS) == GOLDEN
    for run in (1, 2, 25):
        rows = problem("nas-digits", run).design(run)
        assert ["".join(map(str, row)) for row in rows.tolist()] == GOLDEN
        assert all(map(is_valid, rows))


def test_the_search_is_of_31_bits_and_260_evaluations() -> None:
    found = problem("nas-digits", 1)
    assert (found.space.sizes.tolist(), found.budget, found.noisy, found.optimum) == ([2] * 31, 260, False, None)
    assert found.space.names == NAMES
    assert found.packages == ("torch", "scikit-learn")


def test_a_relocated_search_knows_what_is_valid_where_it_went(fake_trainer: type[FakeTrainer]) -> None:
    found = pickle.loads(pickle.dumps(problem("nas-digits", 3)))
    moved = found.relocated(3)
    assert moved.valid is not None
    rows = random_rows(300, 8)
    invalid = [moved.objective(row) == INVALID for row in rows]
    assert [not moved.valid(row) for row in rows] == invalid
    assert any(invalid)
    assert [moved.objective(row) for row in moved.design(3)] == [found.objective(row) for row in found.design(3)]


# ---------------------------------------------------------------- what is remembered


def test_a_cache_returns_what_was_added(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "x.jsonl", "t")
    assert cache.get("a") is None
    assert cache.add("a", (0.1, 1 / 3)) == (0.1, 1 / 3)
    assert cache.get("a") == Cache(tmp_path / "x.jsonl", "t").get("a") == (0.1, 1 / 3)


def test_the_first_to_train_decides(tmp_path: Path) -> None:
    one, other = (Cache(tmp_path / "x.jsonl", "t") for _ in range(2))
    assert (one.get("a"), other.get("a")) == (None, None)
    assert one.add("a", (0.5,)) == other.add("a", (0.6,)) == other.get("a") == (0.5,)
    assert len((tmp_path / "x.jsonl").read_text().splitlines()) == 1


def test_another_training_is_left_alone(tmp_path: Path) -> None:
    Cache(tmp_path / "x.jsonl", "old").add("a", (0.5,))
    new = Cache(tmp_path / "x.jsonl", "new")
    assert new.get("a") is None
    assert new.add("a", (0.6,)) == (0.6,)
    assert Cache(tmp_path / "x.jsonl", "old").get("a") == (0.5,)


def test_a_torn_last_line_is_written_over(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    Cache(path, "t").add("a", (0.5,))
    path.write_bytes(path.read_bytes() + b'{"training": "t", "architec')
    cache = Cache(path, "t")
    assert cache.get("a") == (0.5,)
    cache.add("b", (0.6,))
    assert [json.loads(line)["architecture"] for line in path.read_text().splitlines()] == ["a", "b"]


@pytest.mark.parametrize(
    "line",
    ["{", "[]", "{}", '{"training": "t", "architecture": "a", "accuracies": [2]}',
     '{"training": "t", "architecture": 1, "accuracies": [0.5]}',
     '{"training": "t", "architecture": "a", "accuracies": []}',
     '{"training": "t", "architecture": "a", "accuracies": [true]}',
     '{"training": "t", "architecture": "a", "accuracies": 0.5}'],
)  # fmt: skip
def test_a_damaged_line_is_named(line: str, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"training": "t", "architecture": "b", "accuracies": [0.5]}\n' + line + "\n")
    with pytest.raises(DataError, match=r"x\.jsonl:2: damaged line: .* delete it to train anew"):
        Cache(path, "t").get("a")


def test_a_cache_that_shrinks_is_refused(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "x.jsonl", "t")
    cache.add("a", (0.5,))
    (tmp_path / "x.jsonl").write_text("")
    with pytest.raises(DataError, match="expected a file that only grows"):
        cache.get("b")


def add_many(path: Path, who: int) -> None:
    cache = Cache(path, "t")
    for number in range(30):
        key = f"shared {number}" if number % 2 else f"{who} {number}"
        found = cache.add(key, (who / 10, 0.5))
        assert cache.get(key) == found


def test_processes_that_add_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=add_many, args=(tmp_path / "x.jsonl", who)) for who in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    keys = [json.loads(line)["architecture"] for line in (tmp_path / "x.jsonl").read_text().splitlines()]
    assert len(keys) == len(set(keys)) == 2 * 15 + 15


# ---------------------------------------------------------------- CIFAR-10


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty images a file instead of 10,000."""
    monkeypatch.setattr(cifar10, "RECORDS", 20)
    monkeypatch.setattr(cifar10, "TRAINING", 60)
    monkeypatch.setattr(cifar10, "VALIDATION", 20)


def contents() -> dict[str, bytes]:
    """Five files; the image with number n has the class n % 10, and pixels that tell number, channel and place."""
    files = {}
    for part, name in enumerate(cifar10.FILES):
        numbers = np.arange(20 * part, 20 * part + 20)
        places = np.arange(3 * 1024)
        pixels = (7 * numbers[:, None] + places // 1024 * 50 + places % 1024 % 32) % 256
        files[name] = np.concatenate([numbers[:, None] % 10, pixels], axis=1).astype(np.uint8).tobytes()
    return files


def unpack(folder: Path, files: dict[str, bytes]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def pack(path: Path, files: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


@pytest.mark.usefixtures("small")
def test_cifar10_is_read_as_it_was_written(tmp_path: Path) -> None:
    split = cifar10.cifar10(unpack(tmp_path, contents()))
    order = shuffled(100)
    assert split.labels.tolist() == (order[:60] % 10).tolist()
    assert split.validation_labels.tolist() == (order[-20:] % 10).tolist()
    raw = (7 * order[:, None, None, None] + np.array([0, 50, 100])[:, None, None] + np.arange(32)) % 256
    raw = np.broadcast_to(raw, (100, 3, 32, 32)) / 255  # number, channel, row, column
    first, last = normalised(raw[:60], raw[-20:])
    np.testing.assert_allclose(split.pixels, first, atol=1e-5)
    np.testing.assert_allclose(split.validation_pixels, last, atol=1e-5)


@pytest.mark.usefixtures("small")
def test_archive_and_folders_give_the_same_images(tmp_path: Path) -> None:
    (tmp_path / "packed").mkdir()
    pack(tmp_path / "packed" / cifar10.ARCHIVE, {**contents(), "readme.html": b"x" * 9})
    unpack(tmp_path / "inner" / cifar10.UNPACKED, contents())
    unpack(tmp_path / "plain", contents())
    digests = {cifar10.cifar10(tmp_path / name).digest() for name in ("packed", "inner", "plain")}
    assert len(digests) == 1
    assert sorted(path.name for path in (tmp_path / "packed").iterdir()) == [cifar10.ARCHIVE]  # nothing is unpacked


def broken(change: Callable[[dict[str, bytes]], None]) -> dict[str, bytes]:
    files = contents()
    change(files)
    return files


def cut(files: dict[str, bytes]) -> None:
    files["data_batch_3.bin"] = files["data_batch_3.bin"][:-1]


def extended(files: dict[str, bytes]) -> None:
    files["data_batch_3.bin"] += b"\0"


def relabelled(files: dict[str, bytes]) -> None:
    files["data_batch_3.bin"] = b"\7" + files["data_batch_3.bin"][1:]


def outlandish(files: dict[str, bytes]) -> None:
    files["data_batch_3.bin"] = b"\x63" + files["data_batch_3.bin"][1:]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (cut, "expected 61460 bytes, got 61459"),
        (extended, "expected 61460 bytes, got more"),
        (relabelled, "expected as many images of each of 10 classes"),
        (outlandish, "expected as many images of each of 10 classes"),
    ],
)
@pytest.mark.parametrize("packed", [True, False])
def test_a_damaged_file_is_named(change: Any, message: str, packed: bool, tmp_path: Path) -> None:
    if packed:
        pack(tmp_path / cifar10.ARCHIVE, broken(change))
    else:
        unpack(tmp_path, broken(change))
    with pytest.raises(DataError) as caught:
        cifar10.cifar10(tmp_path)
    assert message in str(caught.value)
    assert f"download {cifar10.ARCHIVE} again from https://" in str(caught.value)


@pytest.mark.usefixtures("small")
def test_an_archive_that_breaks_off_is_named(tmp_path: Path) -> None:
    whole = pack(tmp_path / cifar10.ARCHIVE, contents()).read_bytes()
    for length in (0, 10, len(whole) // 4, len(whole) // 2):
        (tmp_path / cifar10.ARCHIVE).write_bytes(whole[:length])
        with pytest.raises(DataError, match=r"cifar-10-binary\.tar\.gz: expected a.* archive"):
            cifar10.cifar10(tmp_path)


@pytest.mark.usefixtures("small")
def test_links_in_an_archive_are_not_followed(tmp_path: Path) -> None:
    files = contents()
    secret = tmp_path / "secret"
    secret.write_bytes(files.pop("data_batch_2.bin"))
    path = pack(tmp_path / cifar10.ARCHIVE, {})
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        link = tarfile.TarInfo("data_batch_2.bin")
        link.type, link.linkname = tarfile.SYMTYPE, str(secret)
        archive.addfile(link)
    with pytest.raises(DataError, match=r"expected an archive with data_batch_2\.bin, got one without"):
        cifar10.cifar10(tmp_path)


@pytest.mark.parametrize("name", cifar10.PICKLES)
def test_the_python_version_is_refused_because_it_is_a_pickle(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(DataError, match=f"got {name}, a pickle, which could run any code when loaded and is not read"):
        problem("nas-cifar10", 1, tmp_path)


@pytest.mark.parametrize("folder", [None, "nowhere"])
def test_a_missing_archive_is_an_error_that_says_where_to_get_it(folder: str | None) -> None:
    with pytest.raises(CarboError, match=r"got no.*; download the binary version from https://www\.cs\.toronto\.edu"):
        problem("nas-cifar10", 1, folder)


@pytest.mark.usefixtures("small")
def test_the_search_on_cifar10_is_the_same_search(tmp_path: Path) -> None:
    unpack(tmp_path, contents())
    found = problem("nas-cifar10", 2, tmp_path)
    assert (found.name, found.budget, found.packages) == ("nas-cifar10", 260, ("torch",))
    assert found.space == problem("nas-digits", 2).space


@pytest.mark.parametrize(("module", "package"), [("torch", "torch"), ("sklearn.datasets", "scikit-learn")])
def test_an_absent_package_is_one_line_that_says_what_to_install(
    module: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)  # as if it were not installed
    call = {"torch": lambda: training.Trainer(tiny_split()), "scikit-learn": digits.digits}[package]
    with pytest.raises(SettingsError, match=rf"expected the package {package} .*; pip install 'carbo\[nas\]'"):
        call()


def test_only_training_imports_torch() -> None:
    for module in (cifar10, objective, training):
        top = [line for line in inspect.getsource(module).splitlines() if line.startswith(("import", "from"))]
        assert not any("torch" in line or "sklearn" in line for line in top)
