"""Numbers and choices as text for people."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from carbo.tune.formatting import as_text

MINUS = "−"
DIGITS = 6
SMALLEST, LARGEST = 1e-4, 1e9
"""Sizes of numbers that are written without an exponent. For whole numbers the largest is EXACT."""
EXACT = 1e15


def figure(value: float, digits: int = DIGITS) -> str:
    """A number with that many significant digits, without trailing zeros."""
    if float(value).is_integer() and abs(value) < EXACT:
        return _with_minus(f"{int(value):,}")
    if not SMALLEST <= abs(value) < LARGEST:
        return _exponent(f"{value:.{digits}g}")
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{decimals}f}"
    return _with_minus(text.rstrip("0").rstrip(".") if "." in text else text)


def column(values: Sequence[float]) -> list[str]:
    """Numbers of one column: all with the same decimals, enough for four digits of their range."""
    if all(float(v).is_integer() and abs(v) < EXACT for v in values):
        return [figure(v) for v in values]
    if any(v != 0 and not SMALLEST <= abs(v) < LARGEST for v in values):
        return [figure(v) for v in values]
    spread = (max(values) - min(values)) or max(map(abs, values))
    decimals = min(max(3 - math.floor(math.log10(spread)), 0), 10)
    return [_with_minus(f"{v:,.{decimals}f}") for v in values]


def share(value: float) -> str:
    """A share of one as a percentage."""
    if 0 < value < 0.0005:
        return "< 0.1 %"
    return f"{100 * value:.1f} %" if 0 < value < 0.0995 else f"{100 * value:.0f} %"


def choice(value: Any) -> str:
    """A value of a variable: as in a command line, floats to six digits, invisible text in quotes."""
    if isinstance(value, float) and math.isfinite(value):
        return figure(value)
    text = as_text(value)
    seen = text.strip() == text and text.isprintable() and text
    return text if seen else repr(value)


def exact(value: Any) -> str:
    """A value of a variable with all its digits, for machines and for pasting."""
    return repr(value) if isinstance(value, float) else as_text(value)


def _with_minus(text: str) -> str:
    return text.replace("-", MINUS)


def _exponent(text: str) -> str:
    """1.5e+09 as 1.5e9."""
    head, _, power = text.partition("e")
    return _with_minus(f"{head}e{int(power)}" if power else head)
