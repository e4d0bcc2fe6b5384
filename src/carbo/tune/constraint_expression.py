"""Constraint expressions: a small part of Python's syntax, turned into closures. Python never compiles or runs them.

Allowed: names of variables; numbers, strings, True, False, None; + - * / // % **; comparisons, chained too, and
`in` or `not in` a list; and, or, not; `a if b else c`; abs, min, max. They mean the same as in Python, except that
arithmetic takes only numbers, and powers must be small.
"""

from __future__ import annotations

import ast
import difflib
import operator
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from carbo.tune.errors import ExpressionError

ALLOWED = (
    "names of variables, numbers, strings, + - * / // % **, comparisons, in [...], and, or, not, if else, abs, min, max"
)
MAX_LENGTH, MAX_DEPTH = 1_000, 40
"""Most characters of an expression, and most levels of nesting."""
MAX_BITS = 2_048
"""Size of the largest whole number that a power may make."""

Params = Mapping[str, Any]
Term = Callable[[Params], Any]

ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
SIGNS: dict[type[ast.unaryop], Callable[[Any], Any]] = {ast.UAdd: operator.pos, ast.USub: operator.neg}
COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
FUNCTIONS: dict[str, Callable[..., Any]] = {"abs": abs, "min": min, "max": max}


@dataclass(frozen=True)
class Expression:
    """One expression over params. A call gives its value; ExpressionError if it has none.

    names   the variables in it, in the order they are first read
    """

    text: str
    names: tuple[str, ...]
    _term: Term = field(repr=False, compare=False)

    def __call__(self, params: Params) -> Any:
        try:
            return self._term(params)
        except (TypeError, ArithmeticError, ValueError) as error:
            seen = ", ".join(f"{name}={params[name]!r}" for name in self.names)
            raise ExpressionError(
                f"constraint {self.text!r}: expected a value, got an error: {error}{f' (with {seen})' if seen else ''}"
            ) from error


def parse(text: str, names: Collection[str]) -> Expression:
    """The expression of a text over these variables. ExpressionError names the text, the column and what is allowed."""
    if len(text) > MAX_LENGTH:
        raise ExpressionError(
            f"constraint {text[:40]!r}...: expected at most {MAX_LENGTH} characters, got {len(text)}; "
            "write several constraints"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # an odd escape or "1if" is an error here
            tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError as error:
        column = (error.offset or len(text.strip()) + 1) + _indent(text)
        raise ExpressionError(
            f"constraint {text!r}: expected an expression like a < b, got an error at column {column}: {error.msg}; "
            f"allowed: {ALLOWED}"
        ) from None
    except (ValueError, RecursionError, MemoryError) as error:  # null bytes; nesting beyond the parser's stack
        raise ExpressionError(
            f"constraint {text!r}: expected a readable expression, got: {error or 'too much nesting'}; "
            f"allowed: {ALLOWED}"
        ) from None
    reader = _Reader(text, frozenset(names))
    term = reader.term(tree.body, 0)
    return Expression(text, tuple(reader.found), term)


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


class _Reader:
    """Turns a syntax tree into one closure, and refuses all nodes without a method here."""

    def __init__(self, text: str, names: frozenset[str]) -> None:
        self._text, self._parsed, self._names = text, text.strip(), names
        self.found: dict[str, None] = {}

    def term(self, node: ast.expr, depth: int) -> Term:
        if depth > MAX_DEPTH:
            self.refuse(node, f"at most {MAX_DEPTH} levels of nesting", "more", "write several constraints")
        read = getattr(self, f"_{type(node).__name__}", None)
        if read is None:
            self.refuse(node, "a permitted form", self._source(node), f"allowed: {ALLOWED}")
        made: Term = read(node, depth + 1)
        return made

    def refuse(self, node: ast.expr, expected: str, got: str, way_out: str) -> NoReturn:
        line = self._parsed.splitlines()[node.lineno - 1]
        column = len(line.encode()[: node.col_offset].decode(errors="ignore")) + 1 + _indent(self._text)
        raise ExpressionError(
            f"constraint {self._text!r}: expected {expected} at column {column}, got {got}; {way_out}"
        )

    def _source(self, node: ast.expr) -> str:
        source = ast.get_source_segment(self._parsed, node) or type(node).__name__
        return repr(source if len(source) <= 40 else source[:37] + "...")

    def _Constant(self, node: ast.Constant, _: int) -> Term:
        value = node.value
        if not (value is None or isinstance(value, bool | int | float | str)):
            self.refuse(node, "a number, string, True, False or None", self._source(node), f"allowed: {ALLOWED}")
        return lambda _: value

    def _Name(self, node: ast.Name, _: int) -> Term:
        name = node.id
        if name not in self._names:
            close = difflib.get_close_matches(name, self._names, n=1)
            way_out = f"did you mean {close[0]!r}?" if close else f"the variables are {', '.join(sorted(self._names))}"
            self.refuse(node, "a variable", repr(name), way_out)
        self.found[name] = None
        return operator.itemgetter(name)

    def _UnaryOp(self, node: ast.UnaryOp, depth: int) -> Term:
        inner = self.term(node.operand, depth)
        if isinstance(node.op, ast.Not):
            return lambda p: not inner(p)
        sign = SIGNS.get(type(node.op))
        if sign is None:
            self.refuse(node, "a permitted operator", self._source(node), f"allowed: {ALLOWED}")
        return lambda p: sign(_number(inner(p)))

    def _BinOp(self, node: ast.BinOp, depth: int) -> Term:
        left, right = self.term(node.left, depth), self.term(node.right, depth)
        if isinstance(node.op, ast.Pow):
            return lambda p: _power(_number(left(p)), _number(right(p)))
        combine = ARITHMETIC.get(type(node.op))
        if combine is None:
            self.refuse(node, "a permitted operator", self._source(node), f"allowed: {ALLOWED}")
        return lambda p: combine(_number(left(p)), _number(right(p)))

    def _BoolOp(self, node: ast.BoolOp, depth: int) -> Term:
        terms = [self.term(value, depth) for value in node.values]
        return _all_of(terms) if isinstance(node.op, ast.And) else _any_of(terms)

    def _IfExp(self, node: ast.IfExp, depth: int) -> Term:
        test, yes, no = (self.term(part, depth) for part in (node.test, node.body, node.orelse))
        return lambda p: yes(p) if test(p) else no(p)

    def _Compare(self, node: ast.Compare, depth: int) -> Term:
        first = self.term(node.left, depth)
        steps: list[tuple[Callable[[Any, Any], bool], Term]] = []
        for comparison, right in zip(node.ops, node.comparators, strict=True):
            compare = COMPARISONS.get(type(comparison))
            if compare is None:
                self.refuse(node, "a permitted comparison", self._source(node), "write == or != instead of is")
            within = isinstance(comparison, ast.In | ast.NotIn)
            steps.append((compare, self._members(right, depth) if within else self.term(right, depth)))
        return _chain(first, steps)

    def _members(self, node: ast.expr, depth: int) -> Term:
        if not isinstance(node, ast.List | ast.Tuple | ast.Set):
            self.refuse(node, "a list after in", self._source(node), "write it as in [1, 2, 4]")
        terms = [self.term(element, depth) for element in node.elts]
        return lambda p: [term(p) for term in terms]

    def _Call(self, node: ast.Call, depth: int) -> Term:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name not in FUNCTIONS or node.keywords:
            self.refuse(node, "abs, min or max as the only functions", self._source(node), f"allowed: {ALLOWED}")
        if len(node.args) != 1 if name == "abs" else len(node.args) < 2:
            wanted = "one value in abs(...)" if name == "abs" else f"at least two values in {name}(...)"
            self.refuse(node, wanted, self._source(node), "list them, separated by commas")
        call, terms = FUNCTIONS[name], [self.term(argument, depth) for argument in node.args]
        return lambda p: call(*[_number(term(p)) for term in terms])


def _all_of(terms: list[Term]) -> Term:
    def term(params: Params) -> Any:
        value: Any = True
        for each in terms:
            value = each(params)
            if not value:
                break
        return value

    return term


def _any_of(terms: list[Term]) -> Term:
    def term(params: Params) -> Any:
        value: Any = False
        for each in terms:
            value = each(params)
            if value:
                break
        return value

    return term


def _chain(first: Term, steps: list[tuple[Callable[[Any, Any], bool], Term]]) -> Term:
    if len(steps) == 1:  # nearly all comparisons: without a loop
        compare, only = steps[0]
        return lambda p: compare(first(p), only(p))

    def term(params: Params) -> bool:
        left = first(params)
        for compare, each in steps:
            right = each(params)
            if not compare(left, right):
                return False
            left = right
        return True

    return term


def _number(value: Any) -> Any:
    if isinstance(value, int | float):
        return value
    raise TypeError(f"arithmetic takes numbers, got {value!r}")


def _power(base: Any, exponent: Any) -> Any:
    """base ** exponent. ArithmeticError if the result is too large or not a real number."""
    if isinstance(base, int) and isinstance(exponent, int) and base.bit_length() * abs(exponent) > MAX_BITS:
        raise ArithmeticError(f"{base!r} ** {exponent!r} is too large")
    result = base**exponent
    if isinstance(result, complex):
        raise ArithmeticError(f"{base!r} ** {exponent!r} is not a real number")
    return result
