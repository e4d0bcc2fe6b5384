"""The search space of users: named variables and a constraint; dicts of params <-> rows of integers (`RowSpace`).

Notation
    d       number of variables
    k_i     number of choices of variable i, `sizes[i]`
    params  a dict, name -> one of the variable's choices
    row     (d,) integers; row[i] in 0..k_i-1 is a position in the choices of variable i
    rows    (n, d)
"""

from __future__ import annotations

import hashlib
import json
import reprlib
from collections.abc import Callable, Iterable, Mapping
from operator import getitem
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from carbo.errors import SpaceError
from carbo.numerics.types import Bools, Ints
from carbo.space.choices import as_json, as_text, hint, listing, native, refuse
from carbo.space.row_space import ENUMERABLE, RowSpace
from carbo.space.variables import KINDS, Variable

Params = dict[str, Any]
Constraint = Callable[[Params], bool]


class Space:
    """Named variables and, optionally, a known constraint on their values.

    constraint(params) -> bool must be deterministic: its verdicts are remembered. SpaceError when a variable or
    the constraint is unusable, or when no combination (in spaces beyond ENUMERABLE: none of PROBES tried rows)
    satisfies the constraint. A space is a value: it is not changed after construction.
    """

    names: tuple[str, ...]
    variables: dict[str, Variable]
    constraint: Constraint | None
    rows: RowSpace

    def __init__(self, variables: Mapping[str, Variable], constraint: Constraint | None = None) -> None:
        self.variables = _checked_variables(variables)
        self.names = tuple(self.variables)
        self.constraint = constraint
        if constraint is not None and not callable(constraint):
            raise SpaceError(f"constraint: expected a function of params that returns True or False, "
                             f"got {reprlib.repr(constraint)}; for example lambda p: p['a'] < p['b']")  # fmt: skip
        self._choices = [v.choices for v in self.variables.values()]
        graphs = [v.graph for v in self.variables.values()]
        self.rows = RowSpace.of(self.names, graphs, None if constraint is None else self._permits)

    @property
    def dim(self) -> int:
        return len(self.names)

    @property
    def sizes(self) -> Ints:
        """(d,) the number of choices of each variable."""
        return self.rows.sizes

    @property
    def cardinality(self) -> int:
        """Number of combinations, the constraint left aside; an exact int of any size."""
        return self.rows.cardinality

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
        return self._decoded(self.rows.check(np.asarray(row)[None])[0].tolist())

    def decode_many(self, rows: ArrayLike) -> list[Params]:
        """The params of each of the rows (n, d)."""
        return [self._decoded(values) for values in self.rows.check(rows).tolist()]

    def _decoded(self, values: list[int]) -> Params:
        return dict(zip(self.names, map(getitem, self._choices, values), strict=True))

    def _refuse_names(self, params: Mapping[str, Any]) -> NoReturn:
        missing = [repr(name) for name in self.names if name not in params]
        unknown = [repr(name) for name in params if name not in self.variables]
        got = [f"{listing(missing)} missing"] * bool(missing) + [f"unknown {listing(unknown)}"] * bool(unknown)
        raise SpaceError(f"params: expected the names {listing([repr(n) for n in self.names])}, "
                         f"got {' and '.join(got)}; name every variable once")  # fmt: skip

    def _permits(self, values: list[int]) -> bool:
        assert self.constraint is not None
        try:
            return bool(self.constraint(self._decoded(values)))
        except Exception as error:
            params = self._decoded(values)
            raise SpaceError(f"constraint: expected True or False, got {type(error).__name__}: {error} for params "
                             f"{params!r}; let it answer for every combination of choices") from error  # fmt: skip

    # ---- rows

    def feasible(self, rows: ArrayLike) -> Bools:
        """(n,) whether each row satisfies the constraint. SpaceError, with the params at fault, when it raises."""
        return self.rows.feasible(rows)

    def random_rows(self, rng: np.random.Generator, n: int) -> Ints:
        """n feasible rows (n, d), independent and uniform; where these are rare, from a random walk (`RowSpace`)."""
        return self.rows.random_rows(rng, n)

    def all_rows(self, limit: int = ENUMERABLE) -> Ints:
        """Every feasible row, the last variable changing fastest. SpaceError beyond `limit` combinations."""
        return self.rows.all_rows(limit)

    def neighbours(self, row: ArrayLike) -> Ints:
        """(m, d) the feasible rows one edge of one variable's graph away from `row`."""
        return self.rows.neighbours(np.asarray(row)[None])[0]

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
