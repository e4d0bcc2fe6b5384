"""Constraint expressions mean what they mean in Python, and can do nothing else."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from carbo.tune.constraint_expression import MAX_DEPTH, MAX_LENGTH, parse
from carbo.tune.errors import ExpressionError

NAMES = ("a", "b", "c", "d", "s")
PARAMS = st.fixed_dictionaries(
    {
        "a": st.integers(-5, 5),
        "b": st.integers(0, 1000),
        "c": st.sampled_from([-1.5, 0.0, 0.25, 3.0, 1e300]),
        "d": st.booleans(),
        "s": st.sampled_from(["gcc", "g++", "", "it's"]),
    }
)
LEAVES = st.one_of(
    st.sampled_from(["a", "b", "c", "d", "True", "False", "0", "1", "2.5", "1e3"]), st.integers(0, 20).map(str)
)


def one(template: str, *parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(*parts).map(lambda texts: template.format(*texts))


def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Expressions around numbers, which themselves are numbers (truth values are numbers in Python)."""
    operator = st.sampled_from(["+", "-", "*", "/", "//", "%"])
    comparison = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
    text = st.sampled_from(["s", "'gcc'", '"g++"', "''"])
    return st.one_of(
        one("({} {} {})", inner, operator, inner),
        one("({} ** {})", LEAVES, st.sampled_from(["0", "1", "2", "3", "a"])),
        one("{}{}", st.sampled_from(["-", "+", "not "]), inner.map(lambda t: f"({t})")).map(lambda t: f"({t})"),
        one("({} {} {})", inner, comparison, inner),
        one("({} {} {} {} {})", inner, comparison, inner, comparison, inner),
        one("({} {} {})", inner, st.sampled_from(["and", "or"]), inner),
        one("({} and {} or {})", inner, inner, inner),
        one("({} if {} else {})", inner, inner, inner),
        one("({} {} [{}, {}])", inner, st.sampled_from(["in", "not in"]), inner, inner),
        one("({} {} {})", text, st.sampled_from(["==", "!=", "<", ">="]), text),
        one("({} in [{}, 'gcc', 3])", text, text),
        one("({} == {} < 3)", inner, inner),
        one("{}({}, {})", st.sampled_from(["min", "max"]), inner, inner),
        one("abs({})", inner),
    )


NUMBERS = st.recursive(LEAVES, larger, max_leaves=12)


def oracle(text: str, params: dict[str, Any]) -> Any:
    """Python itself, on a text that this file has made."""
    return eval(text, {"__builtins__": {}, "abs": abs, "min": min, "max": max}, dict(params))


@given(NUMBERS, PARAMS)
@example("(a < b < c)", {"a": 1, "b": 2, "c": 3.0, "d": True, "s": "gcc"})
@example("(a / 0)", {"a": 1, "b": 2, "c": 3.0, "d": True, "s": "gcc"})
@example("(0 and (1 / 0))", {"a": 1, "b": 2, "c": 3.0, "d": True, "s": "gcc"})
@example("(2 < 1 < (1 / 0))", {"a": 1, "b": 2, "c": 3.0, "d": True, "s": "gcc"})
def test_an_expression_is_worth_what_python_says(text: str, params: dict[str, Any]) -> None:
    expression = parse(text, NAMES)
    try:
        expected = oracle(text, params)
    except (ArithmeticError, TypeError):
        with pytest.raises(ExpressionError):
            expression(params)
        return
    got = expression(params)
    assert type(got) is type(expected)
    assert got == expected or (math.isnan(got) and math.isnan(expected))


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused_with_one_line(text: str) -> None:
    said = ""
    try:
        parse(text, NAMES)
    except ExpressionError as error:
        said = str(error)
    assert len(said.splitlines()) <= 1


@given(st.text(alphabet="abcds()[]<>=!+-*/%., 019'notandorifelsemi_:\\", max_size=60), PARAMS)
def test_text_that_looks_like_python_never_raises_anything_else(text: str, params: dict[str, Any]) -> None:
    with contextlib.suppress(ExpressionError):
        parse(text, NAMES)(params)


HOSTILE = [
    "__import__('os').system('true')",
    "a.real",
    "().__class__.__bases__[0].__subclasses__()",
    "(lambda: 1)()",
    "[x for x in [1]]",
    "open('/etc/passwd')",
    "abs.__self__",
    "s.format(a)",
    "s[0]",
    "f'{a}'",
    "(a := 3)",
    "min(*[1, 2])",
    "min([1, 2])",
    "max(1, 2, key=abs)",
    "abs()",
    "abs(1, 2)",
    "a @ b",
    "a << 9999",
    "a & b",
    "~a",
    "a is b",
    "1j",
    "b'x'",
    "...",
    "{1: 2}",
    "a in s",
    "a in b",
    "await a",
    "(yield)",
    "a; b",
    "a = 3",
    "import os",
    "",
    "   ",
    "\0",
    "a <",
    "unknown < 3",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_whatever_is_not_listed_is_refused(text: str) -> None:
    with pytest.raises(ExpressionError) as refused:
        parse(text, NAMES)
    assert str(refused.value).startswith("constraint ")


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5_000 + "a" + ")" * 5_000,
        "not " * 240 + "a",
        "-" * 900 + "a",
        "(" * 150 + "a" + ")" * 150 + "<" * 3,
        "a" + " + a" * 100_000,
        "[" * 900,
        "a" * 1_001,
        "(a if " * 60 + "a" + " else a)" * 60,
    ],
    ids=lambda text: text[:8],
)
def test_nesting_and_length_have_bounds(text: str) -> None:
    with pytest.raises(ExpressionError):
        parse(text, NAMES)


def test_what_the_bounds_permit_is_read() -> None:
    deep = "(" * 30 + "a" + " + 1)" * 30
    assert parse(deep, NAMES)({"a": 1}) == 31
    assert MAX_DEPTH > 30
    assert parse("a" + " " * (MAX_LENGTH - 1), NAMES)({"a": 1}) == 1


@pytest.mark.parametrize("text", ["9 ** 9 ** 9", "b ** 100000", "(b ** 200) ** 200", "2 ** -99999", "(-8) ** 0.5"])
def test_powers_stay_small_and_real(text: str) -> None:
    with pytest.raises(ExpressionError, match=r"too large|not a real number"):
        parse(text, NAMES)({"b": 1000})


@pytest.mark.parametrize("text", ["s * 1000", "s % 3", "s + s", "-s", "min(s, s)", "a < s", "a / 0", "10 ** 400 * 1.5"])
def test_a_value_that_does_not_exist_is_an_error_that_names_the_params(text: str) -> None:
    with pytest.raises(ExpressionError, match="expected a value") as refused:
        parse(text, NAMES)({"a": 3, "s": "gcc"})
    for name in parse(text, NAMES).names:
        assert f"{name}=" in str(refused.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cache < 3 and cahce > 1", "column 15, got 'cahce'; did you mean 'cache'?"),
        ("cache.real", "column 1, got 'cache.real'"),
        ("cache < ", "column 8"),
        ("  cache < 3 and cahce > 1", "column 17, got 'cahce'"),
        ("'\u00e9\u00e9' == unknown", "column 9"),
        ("cache is 3", "write == or != instead of is"),
        ("cache in level", "write it as in [1, 2, 4]"),
    ],
)
def test_errors_name_the_text_the_column_and_the_way_out(text: str, said: str) -> None:
    with pytest.raises(ExpressionError) as refused:
        parse(text, ["cache", "level"])
    assert repr(text) in str(refused.value)
    assert said in str(refused.value)


def test_an_expression_knows_its_variables_in_order() -> None:
    assert parse("b < a and b > 0 or s == 'x'", NAMES).names == ("b", "a", "s")
