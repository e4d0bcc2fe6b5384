"""The search space for users: named variables, a constraint, and dicts of params as rows of integers and back.

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
from carbo.space.choices import as_json, as_native, as_text, hint, listing, refuse
from carbo.space.row_space import ENUMERABLE, RowSpace
from carbo.space.variables import KINDS, Variable

Params = dict[str, Any]
Constraint = Callable[[Params], bool]


class Space:
    """A search space: named variables and, optionally, a constraint on their values.

    variables   a dict of names and variables, for example {"lr": Float(1e-4, 1e-1, log=True), "adam": Binary()}
    constraint  a function of params that returns True for permitted points. It must always give the same answer for
                the same params, because its answers are remembered

    A point is a dict `params` of names and values. The methods below also use rows: a row has d integers, one for each
    of the d variables. Each integer is a position in the choices of the variable. `encode` makes rows from params, and
    `decode` makes params from rows. A space has the attributes `names`, `variables` and `constraint`, and it does not
    change after construction.

    Raises SpaceError for a wrong variable, for a constraint that raises an error, and if no permitted point was found.
    """

    def __init__(self, variables: Mapping[str, Variable], constraint: Constraint | None = None) -> None:
        self.variables: dict[str, Variable] = _check_variables(variables)
        self.names: tuple[str, ...] = tuple(self.variables)
        self.constraint: Constraint | None = constraint
        if constraint is not None and not callable(constraint):
            raise SpaceError(f"constraint: expected a function of params that returns True or False, "
                             f"got {reprlib.repr(constraint)}; for example lambda p: p['a'] < p['b']")  # fmt: skip
        self._choices = [v.choices for v in self.variables.values()]
        graphs = [v.graph for v in self.variables.values()]
        self.rows = RowSpace.of(self.names, graphs, None if constraint is None else self._permits)

    @property
    def dim(self) -> int:
        """The number d of variables."""
        return len(self.names)

    @property
    def sizes(self) -> Ints:
        """The number of choices of each variable, (d,)."""
        return self.rows.sizes

    @property
    def cardinality(self) -> int:
        """The number of all combinations, permitted or not; an exact int."""
        return self.rows.cardinality

    def __repr__(self) -> str:
        inside = listing([f"{name!r}: {variable!r}" for name, variable in self.variables.items()])
        return f"Space({{{inside}}}{'' if self.constraint is None else ', constraint=...'})"

    def __eq__(self, other: object) -> bool:
        return self._description(as_text) == other._description(as_text) if isinstance(other, Space) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.fingerprint())

    # ---- params <-> rows

    def encode(self, params: Mapping[str, Any]) -> Ints:
        """The row (d,) of `params`. SpaceError for missing or unknown names, and for values that are no choice."""
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
                                 f"got {params[name]!r}{hint(as_native(params[name]), choices)}")  # fmt: skip
        return np.array(row, dtype=np.intp)

    def encode_many(self, params: Iterable[Mapping[str, Any]]) -> Ints:
        """The rows (n, d) of a list of n params."""
        if not isinstance(params, Iterable):
            raise SpaceError(f"params: expected a dict of names and values, or a list of them, got {params!r}")
        return np.array([self.encode(p) for p in params], dtype=np.intp).reshape(-1, self.dim)

    def decode(self, row: ArrayLike) -> Params:
        """The params of a row (d,), with native Python values. SpaceError if `row` is no row of this space."""
        return self._decode(self.rows.check(np.asarray(row)[None])[0].tolist())

    def decode_many(self, rows: ArrayLike) -> list[Params]:
        """The params of each of n rows (n, d)."""
        return [self._decode(values) for values in self.rows.check(rows).tolist()]

    def _decode(self, values: list[int]) -> Params:
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
            return bool(self.constraint(self._decode(values)))
        except Exception as error:
            params = self._decode(values)
            raise SpaceError(f"constraint: expected True or False, got {type(error).__name__}: {error} for params "
                             f"{params!r}; let it return one for every combination") from error  # fmt: skip

    # ---- rows

    def feasible(self, rows: ArrayLike) -> Bools:
        """Whether each row satisfies the constraint, (n,). SpaceError, with the params, if the constraint raises."""
        return self.rows.feasible(rows)

    def random_rows(self, rng: np.random.Generator, n: int) -> Ints:
        """n random feasible rows (n, d): independent and uniform, except in large spaces with few feasible rows."""
        return self.rows.random_rows(rng, n)

    def all_rows(self, limit: int = ENUMERABLE) -> Ints:
        """All feasible rows in lexicographic order. SpaceError if there are more than `limit` combinations."""
        return self.rows.all_rows(limit)

    def neighbours(self, row: ArrayLike) -> Ints:
        """The feasible rows (m, d) that differ from `row` in one variable, by one edge of the variable's graph."""
        return self.rows.neighbours(np.asarray(row)[None])[0]

    # ---- descriptions

    def describe(self) -> dict[str, Any]:
        """The space as a JSON value for `from_description`. Of a constraint, only its existence is saved.

        SpaceError if a choice is not a bool, int, finite float, str or None.
        """
        return self._description(as_json)

    def _description(self, encode: Callable[[Any], Any]) -> dict[str, Any]:
        entries = []
        for name, variable in self.variables.items():
            try:
                entries.append({"name": name} | variable.describe(encode))
            except SpaceError as error:
                raise SpaceError(f"variable {name!r}: {error}") from None
        return {"variables": entries, "constrained": self.constraint is not None}

    @classmethod
    def from_description(cls, description: Mapping[str, Any], constraint: Constraint | None = None) -> Space:
        """The space that `describe` saved. SpaceError if the space had a constraint and none is passed."""
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
        """A digest of the description, the same in every process.

        Choices that JSON cannot hold enter by their repr.
        """
        return hashlib.sha256(json.dumps(self._description(as_text), sort_keys=True).encode()).hexdigest()


def _check_variables(variables: Any) -> dict[str, Variable]:
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
