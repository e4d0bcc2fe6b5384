"""Rows of integers as keys, and sets of them."""

from __future__ import annotations

from collections.abc import Set

import numpy as np
from numpy.typing import ArrayLike, NDArray

from carbo.numerics.types import Bools, Ints


def row_key(row: ArrayLike) -> bytes:
    """The row as bytes: equal for equal rows, usable in sets and dicts."""
    return np.asarray(row, dtype=np.intp).tobytes()


def row_keys(rows: ArrayLike) -> list[bytes]:
    """`row_key` of each row of an (n, d) array."""
    packed = np.ascontiguousarray(rows, dtype=np.intp)
    return [row.tobytes() for row in packed]


class RowSet:
    """Rows by their keys, asked about thousands at a time.

    A row's digest is a sum of its values times random integers, so small that floats add them up exactly: one matrix
    product for all rows. Only rows whose digest is one of the set's are looked up by their key.
    """

    def __init__(self, keys: Set[bytes], sizes: Ints) -> None:
        self._keys = keys
        self._factors = np.random.default_rng(0).integers(1, 2**52 // int(sizes.sum()), len(sizes)).astype(np.float64)
        self._digests = np.unique(self._digest(np.frombuffer(b"".join(keys), dtype=np.intp).reshape(-1, len(sizes))))

    def _digest(self, rows: Ints) -> NDArray[np.float64]:
        out = np.empty(len(rows))
        for i in range(0, len(rows), 256):  # in pieces that need no fresh pages
            out[i : i + 256] = rows[i : i + 256].astype(np.float64) @ self._factors
        return out

    def contains(self, rows: Ints) -> Bools:
        """(n,) whether each row is in the set."""
        found = np.isin(self._digest(rows), self._digests)
        some = np.flatnonzero(found)
        found[some] = [key in self._keys for key in row_keys(rows[some])]
        return found
