"""The rows of a space or subspace: constraint, neighbours, random rows.

Notation
    d       number of variables
    k_i     number of choices of variable i, `sizes[i]`
    rows    (n, d) integers; row[i] in 0..k_i-1 is a position in the choices of variable i
    vertex  offset[i] + row[i]: one value of variable i; vertices of all variables are numbered consecutively

All combinations are listed only in spaces of at most ENUMERABLE combinations, and by `all_rows`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from carbo.errors import NothingPermitted, SpaceError
from carbo.numerics.types import Bools, Ints
from carbo.space.graphs import Graph
from carbo.space.neighbours import Adjacency, Moves, adjacency

ENUMERABLE = 100_000
"""Largest number of combinations of a space that is listed."""
PROBES = 100_000
"""Number of rows that are tried in larger spaces before a constraint counts as unsatisfiable."""
PILOT, MIN_ACCEPTANCE = 1_000, 0.02
"""Rejection sampling stops if, after PILOT rows, less than this share of the rows was feasible."""
WALKERS, SETTLE, THIN = 64, 20, 5
"""Random walk over rare feasible rows: number of walkers, steps before the first kept row, steps between kept rows."""
CACHE_BYTES = 2**25
"""Memory for remembered verdicts of a constraint, in bytes."""


def row_key(row: ArrayLike) -> bytes:
    """The row as bytes, for sets and dicts: equal for equal rows."""
    return np.asarray(row, dtype=np.intp).tobytes()


def row_keys(rows: ArrayLike) -> list[bytes]:
    """`row_key` of each row of an (n, d) array."""
    packed = np.ascontiguousarray(rows, dtype=np.intp)
    return [row.tobytes() for row in packed]


class RowSet:
    """A set of rows, given by their keys, with a fast test of thousands of rows at once.

    The digest of a row is the sum of its values times random integers. The integers are so small that floats add them
    exactly, so one matrix product gives the digests of all rows. Only rows whose digest is in the set are looked up by
    their key.
    """

    def __init__(self, keys: Set[bytes], sizes: Ints) -> None:
        self._keys = keys
        self._factors = np.random.default_rng(0).integers(1, 2**52 // int(sizes.sum()), len(sizes)).astype(np.float64)
        self._digests = np.unique(self._digest(np.frombuffer(b"".join(keys), dtype=np.intp).reshape(-1, len(sizes))))

    def _digest(self, rows: Ints) -> NDArray[np.float64]:
        out = np.empty(len(rows))
        for i in range(0, len(rows), 256):  # small pieces reuse memory
            out[i : i + 256] = rows[i : i + 256].astype(np.float64) @ self._factors
        return out

    def contains(self, rows: Ints) -> Bools:
        """(n,) whether each row is in the set."""
        found = np.isin(self._digest(rows), self._digests)
        some = np.flatnonzero(found)
        found[some] = [key in self._keys for key in row_keys(rows[some])]
        return found


class WholeSpace(NamedTuple):
    """The data that a space and all its subspaces share. `verdicts` holds known results of `permits` by row keys."""

    names: tuple[str, ...]
    graphs: tuple[Graph, ...]
    adjacency: Mapping[bool, Adjacency]
    constrained: bool
    permits: Callable[[list[int]], bool]
    verdicts: dict[bytes, bool]


class RowSpace:
    """The rows of a space, or of a subspace (`within`) in which some variables have a fixed position.

    Raises NothingPermitted if no row was found that the constraint permits.
    """

    def __init__(self, whole: WholeSpace, positions: Mapping[int, int]) -> None:
        self._all = whole
        self.names, self.graphs, self.constrained = whole.names, whole.graphs, whole.constrained
        self.sizes = np.array([graph.size for graph in whole.graphs], dtype=np.intp)
        self.sizes.setflags(write=False)
        self._columns, self._positions = (np.array(list(of), dtype=np.intp) for of in (positions, positions.values()))
        self._free = np.ones(len(self.sizes), dtype=np.bool_)
        self._free[self._columns] = False
        self._known = self._first_feasible()

    @classmethod
    def of(
        cls, names: Sequence[str], graphs: Sequence[Graph], permits: Callable[[list[int]], bool] | None = None
    ) -> RowSpace:
        """The rows of variables with these names and graphs. permits(row) -> bool: the constraint; None: none."""
        adjacencies = {leaps: adjacency(graphs, leaps) for leaps in (False, True)}
        constrained, verdict = permits is not None, permits or _permit_all
        return cls(WholeSpace(tuple(names), tuple(graphs), adjacencies, constrained, verdict, {}), {})

    def within(self, positions: Mapping[int, int]) -> RowSpace:
        """The subspace of rows with fixed positions, given as column -> position."""
        return RowSpace(self._all, positions)

    @property
    def dim(self) -> int:
        """The number d of variables."""
        return len(self.names)

    @property
    def cardinality(self) -> int:
        """The number of all combinations, permitted or not; an exact int."""
        return math.prod(self.sizes[self._free].tolist())

    @property
    def verdicts(self) -> Mapping[bytes, bool]:
        """Remembered results of the constraint by row keys."""
        return self._all.verdicts

    @property
    def exhaustion(self) -> str:
        """A clause for messages about a search that found no unevaluated permitted row."""
        if not self.constrained or self.cardinality <= ENUMERABLE:
            return "every permitted point has been evaluated"
        return "no permitted point was found that has not been evaluated"

    def check(self, rows: ArrayLike) -> Ints:
        """The rows as an (n, d) array of integers. SpaceError if they are no rows of this space."""
        given = np.asarray(rows)
        if given.size == 0:
            return np.empty((0, self.dim), dtype=np.intp)
        if given.ndim != 2 or given.shape[1] != self.dim or given.dtype.kind not in "iu":
            raise SpaceError(f"rows: expected {self.dim} integers per row, got an array of shape {given.shape} "
                             f"and type {given.dtype}; make rows with `encode`")  # fmt: skip
        if np.any(given < 0) or np.any(given >= self.sizes):
            row, i = np.argwhere((given < 0) | (given >= self.sizes))[0]
            raise SpaceError(f"variable {self.names[i]!r}: expected a position from 0 to {self.sizes[i] - 1}, "
                             f"got {given[row, i]}; make rows with `encode`")  # fmt: skip
        return given.astype(np.intp, copy=False)

    def project(self, rows: Ints) -> Ints:
        """Copies of rows (..., d) that lie in this subspace: fixed variables get their positions."""
        if self._free.all():
            return rows
        out = rows.copy()
        out[..., self._columns] = self._positions
        return out

    # ---- the constraint

    def feasible(self, rows: ArrayLike) -> Bools:
        """Whether each row satisfies the constraint, (n,). Verdicts are remembered, up to CACHE_BYTES.

        SpaceError, chained and with the params, if the constraint raises.
        """
        checked = self.check(rows)
        if not self.constrained:
            return np.ones(len(checked), dtype=np.bool_)
        out = np.empty(len(checked), dtype=np.bool_)
        for i, key in enumerate(row_keys(checked)):
            verdict = self._all.verdicts.get(key)
            if verdict is None:
                if len(self._all.verdicts) >= CACHE_BYTES // (len(key) + 100):
                    self._all.verdicts.clear()
                verdict = self._all.verdicts[key] = self._all.permits(checked[i].tolist())
            out[i] = verdict
        return out

    def _satisfy(self, rows: Ints) -> Bools:
        """Like `feasible`, without remembering: for rows that will hardly be checked again."""
        return np.fromiter(map(self._all.permits, rows.tolist()), dtype=np.bool_, count=len(rows))

    def _first_feasible(self) -> Ints:
        """A row that satisfies the constraint, the same in every process. NothingPermitted if none was found."""
        if not self.constrained:
            return np.zeros(self.dim, dtype=np.intp)
        listable = self.cardinality <= ENUMERABLE
        tried = f"all {self.cardinality} combinations" if listable else f"all of {PROBES} rows tried"
        for rows in [self._every_row()] if listable else _probes(self.sizes):
            for values in self.project(rows).tolist():
                if self._all.permits(values):
                    return np.array(values, dtype=np.intp)
        raise NothingPermitted(f"constraint: expected True for some points, got False for {tried}; check that it "
                               "returns True for permitted points, or make one Categorical of them")  # fmt: skip

    # ---- rows by chance

    def random_rows(self, rng: np.random.Generator, n: int) -> Ints:
        """n feasible rows (n, d), independent and uniform, by rejection.

        If the constraint permits less than about MIN_ACCEPTANCE of the rows, small spaces are listed, and the draw
        stays exact. In larger spaces the other rows come from a Metropolis walk over feasible rows. The walk starts
        from rows that are the same in every process. Its stationary distribution is uniform over the rows that it can
        reach, and its rows are correlated.
        """
        if not self.constrained:
            return self._any_rows(rng, n)
        found, count, tried = [np.empty((0, self.dim), dtype=np.intp)], 0, 0
        while count < n:
            if tried >= PILOT and count < MIN_ACCEPTANCE * tried:
                found.append(self._rare_rows(rng, n - count))
                break
            rows = self._any_rows(rng, min(max(2 * (n - count), 16), PILOT))
            found.append(rows[self._satisfy(rows)])
            count, tried = count + len(found[-1]), tried + len(rows)
        return np.concatenate(found)[:n]

    def _any_rows(self, rng: np.random.Generator, n: int) -> Ints:
        return self.project(rng.integers(0, self.sizes, size=(n, self.dim), dtype=np.intp))

    def _rare_rows(self, rng: np.random.Generator, n: int) -> Ints:
        if self.cardinality <= ENUMERABLE:
            return self._listed_rows[rng.integers(len(self._listed_rows), size=n)]
        rows = self._walk(rng, self._reservoir[rng.integers(WALKERS, size=min(n, WALKERS))], SETTLE)
        kept = [rows]
        while len(kept) * len(rows) < n:
            kept.append(self._walk(rng, kept[-1], THIN))
        return np.concatenate(kept)[:n]

    @cached_property
    def _listed_rows(self) -> Ints:
        return self.all_rows()

    @cached_property
    def _reservoir(self) -> Ints:
        """WALKERS feasible rows: ends of random walks from the one known feasible row."""
        return self._walk(np.random.default_rng(0), np.tile(self._known, (WALKERS, 1)), min(10 * self.dim, 1_000))

    def _walk(self, rng: np.random.Generator, rows: Ints, steps: int) -> Ints:
        """Metropolis steps: redraw two variables on average; stay if the new row is not feasible. Symmetric."""
        for _ in range(steps):
            redrawn = rng.random(rows.shape) * self.dim < 2
            proposed = np.where(redrawn, self._any_rows(rng, len(rows)), rows)
            rows = np.where(self._satisfy(proposed)[:, None], proposed, rows)
        return rows

    def all_rows(self, limit: int = ENUMERABLE) -> Ints:
        """All feasible rows in lexicographic order. SpaceError if there are more than `limit` combinations."""
        if self.cardinality > limit:
            raise SpaceError(f"space: expected at most {limit} combinations to list, got about "
                             f"10^{math.log10(self.cardinality):.1f}; draw random_rows, or raise limit")  # fmt: skip
        rows = self._every_row()
        return rows if not self.constrained else rows[self._satisfy(rows)]

    def _every_row(self) -> Ints:
        return self.project(combinations(np.where(self._free, self.sizes, 1)))

    # ---- neighbours

    def neighbours(self, rows: ArrayLike, leaps: bool = False) -> tuple[Ints, Ints]:
        """The feasible neighbours (m, d) of all rows, and (m,) the index of the row each belongs to, ascending.

        leaps: along paths and cycles also rows 2, 4, 8, ... steps away, so that a search crosses many levels fast
        """
        checked = self.check(rows)
        owner, column, value = self.moves(checked, leaps)
        out = checked[owner]
        out[np.arange(len(out)), column] = value
        if not self.constrained:
            return out, owner
        keep = self.feasible(out)
        return out[keep], owner[keep]

    def moves(self, rows: ArrayLike, leaps: bool = False) -> Moves:
        """The neighbours of all rows without the constraint, as `Moves`: three integers for each neighbour, not d."""
        checked, a = self.check(rows), self._all.adjacency[leaps]
        counts = a.degree[checked + a.offset].ravel()
        cell = np.repeat(np.arange(counts.size), counts)
        nth = np.arange(cell.size) - np.repeat(np.cumsum(counts) - counts, counts)
        owner, column = np.divmod(cell, self.dim)
        here = checked.ravel()[cell]
        value = nth + (nth >= here)  # complete graph: all values but this one
        if not np.all(a.complete):
            listed = np.flatnonzero(~a.complete[column])
            value[listed] = a.target[a.start[a.offset[column[listed]] + here[listed]] + nth[listed]]
        moves = Moves(owner, column, value)
        return moves if self._free.all() else Moves(*(each[self._free[column]] for each in moves))


def _permit_all(row: list[int]) -> bool:  # noqa: ARG001
    """The constraint of a space without a constraint."""
    return True


def combinations(sizes: Ints) -> Ints:
    """All combinations (prod sizes, d) in lexicographic order."""
    stride = np.append(np.cumprod(sizes[:0:-1])[::-1], 1).astype(np.intp)
    return np.asarray(np.arange(math.prod(sizes.tolist()), dtype=np.intp)[:, None] // stride % sizes)


def _probes(sizes: Ints, batch: int = 500) -> Iterable[Ints]:
    """PROBES rows in batches, the same in every process, in which a feasible row is searched.

    Every second batch lies near the row of all first choices or the row of all last choices, at various distances.
    Constraints such as "at most five of sixty" permit rows there and practically nowhere else.
    """
    rng = np.random.default_rng(0)
    for number in range(PROBES // batch):
        rows = rng.integers(0, sizes, size=(batch, len(sizes)), dtype=np.intp)
        if number % 2:
            corner = np.where(rng.random((batch, 1)) < 0.5, 0, sizes - 1)
            rows = np.where(rng.random(rows.shape) < rng.random((batch, 1)) ** 2, rows, corner)
        yield rows
