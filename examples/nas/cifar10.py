"""CIFAR-10 from a folder: the binary version, as downloaded or unpacked.

It has five files of 10,000 records each: a byte for the class, then 32x32 red, green and blue values. The archive is
read in memory and not unpacked on the disk. The version "for Python" is refused: it is a pickle, which can run any code
when it is loaded.
"""

from __future__ import annotations

import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from carbo.errors import DataError

from .shape import Images
from .training import Split, normalised, shuffled

IMAGES = Images(3, 32, 10)
FILES = tuple(f"data_batch_{number}.bin" for number in range(1, 6))
RECORDS = 10_000
"""Records in each file."""
BYTES = 1 + IMAGES.channels * IMAGES.side**2
"""Bytes of a record."""
TRAINING, VALIDATION = 30_000, 10_000
"""Numbers of images: the first and the last of the shuffled ones."""
ARCHIVE, UNPACKED = "cifar-10-binary.tar.gz", "cifar-10-batches-bin"
PICKLES = ("cifar-10-python.tar.gz", "cifar-10-batches-py")
SOURCE = "https://www.cs.toronto.edu/~kriz/cifar.html"


def cifar10(folder: str | Path | None) -> Split:
    """The paper's split of the training images. DataError when files are missing or damaged."""
    place = located(folder)
    parts = _read_folder(place) if place.is_dir() else _read_archive(place)
    records = np.concatenate([_split_records(place / name, content) for name, content in parts])
    labels = records[:, 0]
    counts = np.bincount(labels, minlength=IMAGES.classes)
    if len(counts) > IMAGES.classes or len(set(counts.tolist())) > 1:
        raise _damaged(place, f"as many images of each of {IMAGES.classes} classes", f"{counts.tolist()} of them")
    order = shuffled(len(records))
    first, last = order[:TRAINING], order[-VALIDATION:]
    train, validate = normalised(_pixels(records[first]), _pixels(records[last]))
    return Split(IMAGES, train, labels[first].astype(np.int64), validate, labels[last].astype(np.int64))


def located(folder: str | Path | None) -> Path:
    """The archive, or the folder of the five files, in a folder or one below. DataError when neither is there."""
    if folder is None:
        raise _missing("no folder")
    for place in (Path(folder), Path(folder) / UNPACKED):
        if all((place / name).is_file() for name in FILES):
            return place
    if (Path(folder) / ARCHIVE).is_file():
        return Path(folder) / ARCHIVE
    pickled = next((name for name in PICKLES if (Path(folder) / name).exists()), None)
    if pickled is not None:
        raise DataError(f"cifar10: expected the binary version, got {pickled}, a pickle, which could run any code when "
                        f"loaded and is not read; download {ARCHIVE} from {SOURCE}")  # fmt: skip
    raise _missing(f"{folder} without it")


def _read_folder(place: Path) -> Iterator[tuple[str, bytes]]:
    for name in FILES:
        with (place / name).open("rb") as file:
            yield name, _read_file(file)


def _read_archive(place: Path) -> Iterator[tuple[str, bytes]]:
    found: dict[str, bytes] = {}
    try:
        with tarfile.open(place, "r:gz") as archive:
            for member in archive:
                name = Path(member.name).name
                file = archive.extractfile(member) if name in FILES and member.isfile() else None
                if file is not None:
                    found[name] = _read_file(file)
    except (tarfile.TarError, zlib.error, EOFError, OSError) as error:
        raise _damaged(place, "a whole archive", f"one that breaks off ({error})") from None
    absent = [name for name in FILES if name not in found]
    if absent:
        raise _damaged(place, f"an archive with {absent[0]}", "one without")
    return iter((name, found[name]) for name in FILES)


def _read_file(file: IO[bytes]) -> bytes:
    """The content, up to one byte more than a file should have: that is enough to see that it is too long."""
    return file.read(RECORDS * BYTES + 1)


def _split_records(place: Path, content: bytes) -> NDArray[np.uint8]:
    """(records, BYTES)"""
    if len(content) != RECORDS * BYTES:
        got = "more" if len(content) > RECORDS * BYTES else f"{len(content)}"
        raise _damaged(place, f"{RECORDS * BYTES} bytes", got)
    return np.frombuffer(content, dtype=np.uint8).reshape(RECORDS, BYTES)


def _pixels(records: NDArray[np.uint8]) -> NDArray[np.float32]:
    pixels = records[:, 1:].reshape(-1, IMAGES.channels, IMAGES.side, IMAGES.side)
    return pixels.astype(np.float32) / np.float32(255)


def _missing(got: str) -> DataError:
    return DataError(f"cifar10: expected a folder with {ARCHIVE} or {UNPACKED}/, got {got}; "
                     f"download the binary version from {SOURCE}")  # fmt: skip


def _damaged(place: Path, expected: str, got: str) -> DataError:
    return DataError(f"{place}: expected {expected}, got {got}; download {ARCHIVE} again from {SOURCE}")
