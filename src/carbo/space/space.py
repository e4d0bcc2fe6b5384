"""The search space: dicts of params <-> rows of integers, neighbours, random rows, the constraint.

Notation
    d       number of variables
    k_i     number of choices of variable i, `sizes[i]`
    params  a dict, name -> one of the variable's choices
    row     (d,) integers; row[i] in 0..k_i-1 is a position in the choices of variable i
    rows    (n, d)
    vertex  offset[i] + row[i]: one value of one variable, numbered through all variables

Nothing here lists the product of the choices, except `Space.all_rows` and the checks of spaces that small.
"""

from __future__ import annotations

import hashlib
import json
import math
import reprlib
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from operator import getitem
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from carbo.errors import NothingPermitted, SpaceError
from carbo.numerics.types import Bools, Ints
from carbo.space.choices import as_json, as_text, hint, listing, native, refuse
from carbo.space.graphs import Graph
from carbo.space.neighbours import Moves, adjacency
from carbo.space.rows import row_keys
from carbo.space.variables import KINDS, Variable

Params = dict[str, Any]
Constraint = Callable[[Params], bool]

ENUMERABLE = 100_000
"""Spaces with at most this many combinations may be listed."""
PROBES = 100_000
"""Rows tried in larger spaces before a constraint is declared unsatisfiable."""
PILOT, MIN_ACCEPTANCE = 1_000, 0.02
"""Rejection sampling is given up when, after PILOT rows, fewer than this share of them was feasible."""
WALKERS, SETTLE, THIN = 64, 20, 5
"""Random walk over rare feasible rows: rows that walk, steps before the first is kept, steps between kept ones."""
CACHE_BYTES = 2**25
"""Room for remembered verdicts of a constraint."""


class Space:
    """Named variables and, optionally, a known constraint on their values.

    constraint(params) -> bool must be deterministic: its verdicts are remembered. SpaceError when a variable or
    the constraint is unusable, or when no combination (in spaces beyond ENUMERABLE: none of PROBES tried rows)
    satisfies the constraint. A space is a value: it is not changed after construction.
    """

    names: tuple[str, ...]
    variables: dict[str, Variable]
    constraint: Constraint | None
    sizes: Ints
    graphs: tuple[Graph, ...]

    def __init__(self, variables: Mapping[str, Variable], constraint: Constraint | None = None) -> None:
        self.variables = _checked_variables(variables)
        self.names = tuple(self.variables)
        self.constraint = constraint
        self.sizes = np.array([v.size for v in self.variables.values()], dtype=np.intp)
        self.sizes.setflags(write=False)
        self._choices = [v.choices for v in self.variables.values()]
        self.graphs = tuple(v.graph for v in self.variables.values())
        self._adjacency = {leaps: adjacency(self.graphs, leaps) for leaps in (False, True)}
        self._verdicts: dict[bytes, bool] = {}
        if constraint is not None and not callable(constraint):
            raise SpaceError(f"constraint: expected a function of params that returns True or False, "
                             f"got {reprlib.repr(constraint)}; for example lambda p: p['a'] < p['b']")  # fmt: skip
        self._known = self._first_feasible()

    @property
    def dim(self) -> int:
        return len(self.names)

    @property
    def cardinality(self) -> int:
        """Number of combinations, the constraint left aside; an exact int of any size."""
        return math.prod(self.sizes.tolist())

    @property
    def used_up(self) -> str:
        """What may be said when no permitted point is found that has not been evaluated."""
        if self.constraint is None or self.cardinality <= ENUMERABLE:
            return "every permitted point has been evaluated"
        return "no permitted point was found that has not been evaluated"

    def __repr__(self) -> str:
        inside = listing([f"{name!r}: {variable!r}" for name, variable in self.variables.items()])
        return f"Space({{{inside}}}{'' if self.constraint is None else ', constraint=...'})"

    def __eq__(self, other: object) -> bool:
        return self._described(as_text) == other._described(as_text) if isinstance(other, Space) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.fingerprint())

    # ---- params <-> rows

    def encode(self, params: Mapping[str, Any]) -> Ints:
        """The row (d,) of `params`. SpaceError on missing or unknown names, and on values that are no choice."""
        if not isinstance(params, Mapping):
            raise SpaceError(f"params: expected a dict of names and values, got {reprlib.repr(params)}; "
                             'one dict a point, such as {"name": choice}')  # fmt: skip
        if params.keys() != self.variables.keys():
            self._refuse_names(params)
        row = [variable.position(params[name]) for name, variable in self.variables.items()]
        for name, position in zip(self.names, row, strict=True):
            if position is None:
                choices = self.variables[name].choices
                raise SpaceError(f"variable {name!r}: expected one of {listing([repr(c) for c in choices])}, "
                                 f"got {params[name]!r}{hint(native(params[name]), choices)}")  # fmt: skip
        return np.array(row, dtype=np.intp)

    def encode_many(self, params: Iterable[Mapping[str, Any]]) -> Ints:
        """The rows (n, d) of n params."""
        if not isinstance(params, Iterable):
            raise SpaceError(f"params: expected a dict of names and values, or a list of them, got {params!r}")
        return np.array([self.encode(p) for p in params], dtype=np.intp).reshape(-1, self.dim)

    def decode(self, row: ArrayLike) -> Params:
        """The params of a row (d,), native Python values. SpaceError when it is no row of this space."""
        return self._decoded(self.checked_rows(np.asarray(row)[None])[0].tolist())

    def decode_many(self, rows: ArrayLike) -> list[Params]:
        """The params of each of the rows (n, d)."""
        return [self._decoded(values) for values in self.checked_rows(rows).tolist()]

    def _decoded(self, values: list[int]) -> Params:
        return dict(zip(self.names, map(getitem, self._choices, values), strict=True))

    def _refuse_names(self, params: Mapping[str, Any]) -> NoReturn:
        missing = [repr(name) for name in self.names if name not in params]
        unknown = [repr(name) for name in params if name not in self.variables]
        got = [f"{listing(missing)} missing"] * bool(missing) + [f"unknown {listing(unknown)}"] * bool(unknown)
        raise SpaceError(f"params: expected the names {listing([repr(n) for n in self.names])}, "
                         f"got {' and '.join(got)}; name every variable once")  # fmt: skip

    def checked_rows(self, rows: ArrayLike) -> Ints:
        given = np.asarray(rows)
        if given.size == 0:
            return np.empty((0, self.dim), dtype=np.intp)
        if given.ndim != 2 or given.shape[1] != self.dim or given.dtype.kind not in "iu":
            raise SpaceError(f"rows: expected {self.dim} integers a row, got an array of shape {given.shape} "
                             f"and type {given.dtype}; make rows with `encode`")  # fmt: skip
        if np.any(given < 0) or np.any(given >= self.sizes):
            row, i = np.argwhere((given < 0) | (given >= self.sizes))[0]
            raise SpaceError(f"variable {self.names[i]!r}: expected a position from 0 to {self.sizes[i] - 1}, "
                             f"got {given[row, i]}; make rows with `encode`")  # fmt: skip
        return given.astype(np.intp, copy=False)

    # ---- the constraint

    def feasible(self, rows: ArrayLike) -> Bools:
        """(n,) whether each row satisfies the constraint; verdicts are remembered up to CACHE_BYTES.

        SpaceError, chained and with the params at fault, when the constraint raises.
        """
        checked = self.checked_rows(rows)
        if self.constraint is None:
            return np.ones(len(checked), dtype=np.bool_)
        out = np.empty(len(checked), dtype=np.bool_)
        for i, key in enumerate(row_keys(checked)):
            verdict = self._verdicts.get(key)
            if verdict is None:
                if len(self._verdicts) >= CACHE_BYTES // (len(key) + 100):
                    self._verdicts.clear()
                verdict = self._verdicts[key] = self._permits(checked[i].tolist())
            out[i] = verdict
        return out

    def _permits(self, values: list[int]) -> bool:
        assert self.constraint is not None
        try:
            return bool(self.constraint(self._decoded(values)))
        except Exception as error:
            params = self._decoded(values)
            raise SpaceError(f"constraint: expected True or False, got {type(error).__name__}: {error} for params "
                             f"{params!r}; let it answer for every combination of choices") from error  # fmt: skip

    def _permitted(self, rows: Ints) -> Bools:
        """`feasible` without a memory, for rows unlikely to be asked about again."""
        return np.fromiter(map(self._permits, rows.tolist()), dtype=np.bool_, count=len(rows))

    def _first_feasible(self) -> Ints:
        """A row that satisfies the constraint, the same in every process; SpaceError when none turns up."""
        if self.constraint is None:
            return np.zeros(self.dim, dtype=np.intp)
        listable = self.cardinality <= ENUMERABLE
        tried = f"all {self.cardinality} combinations" if listable else f"all of {PROBES} rows tried"
        for rows in [self._every_row()] if listable else _probes(self.sizes):
            for values in self.held(rows).tolist():
                if self._permits(values):
                    return np.array(values, dtype=np.intp)
        raise NothingPermitted(f"constraint: expected it to permit something, got False for {tried}; check that it "
                               "returns True for what is permitted, or make one Categorical of it")  # fmt: skip

    # ---- rows by chance

    def random_rows(self, rng: np.random.Generator, n: int) -> Ints:
        """n feasible rows (n, d), independent and uniform, by rejection.

        Where the constraint permits less than about MIN_ACCEPTANCE of the rows, spaces that can be listed are
        (the draw stays exact). In larger ones the rest comes from a Metropolis walk over feasible rows, begun at
        rows that are the same in every process: its stationary law is uniform over what it can reach, its rows
        are correlated.
        """
        if self.constraint is None:
            return self._any_rows(rng, n)
        found, count, tried = [np.empty((0, self.dim), dtype=np.intp)], 0, 0
        while count < n:
            if tried >= PILOT and count < MIN_ACCEPTANCE * tried:
                found.append(self._rare_rows(rng, n - count))
                break
            rows = self._any_rows(rng, min(max(2 * (n - count), 16), PILOT))
            found.append(rows[self._permitted(rows)])
            count, tried = count + len(found[-1]), tried + len(rows)
        return np.concatenate(found)[:n]

    def _any_rows(self, rng: np.random.Generator, n: int) -> Ints:
        return self.held(rng.integers(0, self.sizes, size=(n, self.dim), dtype=np.intp))

    def held(self, rows: Ints) -> Ints:
        """Rows (..., d) with the variables that stand still where they stand; of a whole space none does."""
        return rows

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
        """WALKERS feasible rows, spread from the one known."""
        return self._walk(np.random.default_rng(0), np.tile(self._known, (WALKERS, 1)), min(10 * self.dim, 1_000))

    def _walk(self, rng: np.random.Generator, rows: Ints, steps: int) -> Ints:
        """Metropolis: redraw two variables on average, stay where that is not feasible. Proposals are symmetric."""
        for _ in range(steps):
            redrawn = rng.random(rows.shape) * self.dim < 2
            proposed = np.where(redrawn, self._any_rows(rng, len(rows)), rows)
            rows = np.where(self._permitted(proposed)[:, None], proposed, rows)
        return rows

    def all_rows(self, limit: int = ENUMERABLE) -> Ints:
        """Every feasible row, the last variable changing fastest. SpaceError beyond `limit` combinations."""
        if self.cardinality > limit:
            raise SpaceError(f"space: expected at most {limit} combinations to list, got about "
                             f"10^{math.log10(self.cardinality):.1f}; draw random_rows, or raise limit")  # fmt: skip
        rows = self._every_row()
        return rows if self.constraint is None else rows[self._permitted(rows)]

    def _every_row(self) -> Ints:
        return combinations(self.sizes)

    # ---- neighbours

    def neighbours(self, row: ArrayLike) -> Ints:
        """(m, d) the feasible rows one edge of one variable's graph away from `row`."""
        return self.neighbours_many(np.asarray(row)[None])[0]

    def neighbours_many(self, rows: ArrayLike, leaps: bool = False) -> tuple[Ints, Ints]:
        """The feasible neighbours (m, d) of all rows, and (m,) which row each belongs to, ascending.

        leaps: along paths and cycles also 2, 4, 8, ... steps away, so that no search has to walk a thousand levels.
        """
        checked = self.checked_rows(rows)
        owner, column, value = self.moves(checked, leaps)
        out = checked[owner]
        out[np.arange(len(out)), column] = value
        if self.constraint is None:
            return out, owner
        keep = self.feasible(out)
        return out[keep], owner[keep]

    def moves(self, rows: ArrayLike, leaps: bool = False) -> Moves:
        """What `neighbours_many` does, the constraint left aside, as three integers a neighbour instead of d."""
        checked, a = self.checked_rows(rows), self._adjacency[leaps]
        counts = a.degree[checked + a.offset].ravel()
        cell = np.repeat(np.arange(counts.size), counts)
        nth = np.arange(cell.size) - np.repeat(np.cumsum(counts) - counts, counts)
        owner, column = np.divmod(cell, self.dim)
        here = checked.ravel()[cell]
        value = nth + (nth >= here)  # complete graph: every value but this one
        if not np.all(a.complete):
            listed = np.flatnonzero(~a.complete[column])
            value[listed] = a.target[a.start[a.offset[column[listed]] + here[listed]] + nth[listed]]
        return Moves(owner, column, value)

    # ---- descriptions

    def describe(self) -> dict[str, Any]:
        """A JSON value from which `from_description` makes the space again; of the constraint, that there is one.

        SpaceError when a choice is not a bool, int, finite float, str or None.
        """
        return self._described(as_json)

    def _described(self, encode: Callable[[Any], Any]) -> dict[str, Any]:
        entries = []
        for name, variable in self.variables.items():
            try:
                entries.append({"name": name} | variable.describe(encode))
            except SpaceError as error:
                raise SpaceError(f"variable {name!r}: {error}") from None
        return {"variables": entries, "constrained": self.constraint is not None}

    @classmethod
    def from_description(cls, description: Mapping[str, Any], constraint: Constraint | None = None) -> Space:
        """The space of `describe`; a constraint that was there must be given again, or SpaceError."""
        try:
            entries = [dict(entry) for entry in description["variables"]]
            constrained = description["constrained"]
            variables = {entry.pop("name"): KINDS[entry.pop("kind")](**entry) for entry in entries}
        except (KeyError, TypeError, ValueError) as error:
            raise SpaceError(f"description: expected what Space.describe() returns, got {reprlib.repr(description)} "
                             f"({type(error).__name__}: {error})") from error  # fmt: skip
        if len(variables) < len(entries):
            raise SpaceError(f"description: expected distinct names, got {len(entries) - len(variables)} twice")
        if constrained and constraint is None:
            raise SpaceError("description: expected the constraint that this space had, got none; pass constraint=")
        return cls(variables, constraint)

    def fingerprint(self) -> str:
        """A digest of the description, the same in every process; choices that JSON cannot hold go by their repr."""
        return hashlib.sha256(json.dumps(self._described(as_text), sort_keys=True).encode()).hexdigest()


def _checked_variables(variables: Any) -> dict[str, Variable]:
    if not isinstance(variables, Mapping):
        raise SpaceError(f"space: expected a dict of names and variables, got {reprlib.repr(variables)}; "
                         'write Space({"name": Binary()})')  # fmt: skip
    if not variables:
        raise SpaceError("space: expected at least one variable, got none; name what may vary")
    for name, variable in variables.items():
        if not isinstance(name, str) or not name:
            raise SpaceError(f"variable {name!r}: expected a non-empty string as its name, got {name!r}; name it")
        if not isinstance(variable, Variable):
            refuse(name, "a variable", reprlib.repr(variable), "write for example Categorical([...]) or Binary()")
        variable.domain(name)
    return dict(variables)


def combinations(sizes: Ints) -> Ints:
    """(prod sizes, d) every row, the last variable changing fastest."""
    stride = np.append(np.cumprod(sizes[:0:-1])[::-1], 1).astype(np.intp)
    return np.asarray(np.arange(math.prod(sizes.tolist()), dtype=np.intp)[:, None] // stride % sizes)


def _probes(sizes: Ints, batch: int = 500) -> Iterable[Ints]:
    """PROBES rows in batches, the same in every process, to find a feasible one among.

    Every second batch lies near the first or the last choices, at all distances: "at most five of sixty" is met
    there and, practically, nowhere else.
    """
    rng = np.random.default_rng(0)
    for turn in range(PROBES // batch):
        rows = rng.integers(0, sizes, size=(batch, len(sizes)), dtype=np.intp)
        if turn % 2:
            corner = np.where(rng.random((batch, 1)) < 0.5, 0, sizes - 1)
            rows = np.where(rng.random(rows.shape) < rng.random((batch, 1)) ** 2, rows, corner)
        yield rows
