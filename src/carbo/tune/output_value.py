"""The value of a run, read from its output. EvaluationFailed says why there is none."""

from __future__ import annotations

import json
import math
import re
import statistics
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from carbo.tune.errors import EvaluationFailed

NUMBER = re.compile(
    r"(?<![\w.])[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?(?![\d.]*\d)|(?<![\w])[-+]?(?:nan|inf(?:inity)?)(?!\w)",
    re.IGNORECASE,
)
"""A number that does not begin inside a word ("p99" has none). A unit may follow ("3.5s" is 3.5)."""
UNCLEAR = re.compile(
    r"(?<![\w.,])(?:\d{1,3}(?:,\d{3})+(?![\d,])|\d+(?:\.\d{3})*,\d+(?!\d|[.,]\d|e[-+]?\d)|\d+(?:_\d+)+|0[xob][\da-f]+)",
    re.IGNORECASE,
)
"""Numbers that may be read in several ways: 1,234 and 1,5; 1_000 and 0x1F."""
SHOWN = 60


def last_number(text: str) -> float:
    """The last number in the text. nan and inf count too; `finite` refuses them."""
    found = _last(NUMBER, text)
    if found is None:
        raise EvaluationFailed(f"expected a number in the output, got {_end(text)}")
    for unclear in UNCLEAR.finditer(text, text.rfind("\n", 0, found.start()) + 1):
        if unclear.start() <= found.start() < unclear.end():
            raise EvaluationFailed(
                f"expected a plain number, got {unclear.group()!r}, which may be read in several ways; "
                "print it in decimal digits with a point, or read it with a regex"
            )
    return float(found.group())


def pattern_number(text: str, pattern: str) -> float:
    """The number in the group of the last match of a pattern."""
    found = _last(re.compile(pattern, re.MULTILINE), text)
    if found is None:
        raise EvaluationFailed(f"expected output that matches {pattern!r}, got {_end(text)}")
    return _float(found.group(1), f"the group of {pattern!r}")


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    return next(iter(deque(pattern.finditer(text), maxlen=1)), None)


def json_field(text: str, path: str) -> float:
    """The number in a field like results.0.time of the output's JSON, or of its last line that is JSON."""
    value = _document(text)
    for step in path.split(".") if path else []:
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and re.fullmatch(r"-?\d+", step) and -len(value) <= int(step) < len(value):
            value = value[int(step)]
        else:
            held = f"the keys {', '.join(value)[:SHOWN]}" if isinstance(value, dict) else f"{value!r:.{SHOWN}}"
            raise EvaluationFailed(f"expected a field {path!r} in the JSON output, got {held} at {step!r}")
    return _float(value, f"the field {path!r}")


def _document(text: str) -> Any:
    for candidate in (text, *reversed(text.splitlines())):
        if candidate.strip()[:1] in ("{", "["):
            try:
                return json.loads(candidate)
            except (ValueError, RecursionError):
                continue
    raise EvaluationFailed(f"expected JSON in the output, got {_end(text)}")


def _float(value: Any, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise EvaluationFailed(f"expected a number as {what}, got {value!r:.{SHOWN}}")
    try:
        return float(value)
    except (ValueError, OverflowError):
        raise EvaluationFailed(f"expected a number as {what}, got {value!r:.{SHOWN}}") from None


def finite(value: float) -> float:
    """The value itself. EvaluationFailed for nan and infinities."""
    if not math.isfinite(value):
        raise EvaluationFailed(f"expected a finite value, got {value}")
    return value


COMBINE: dict[str, Callable[[Sequence[float]], float]] = {
    "mean": statistics.fmean,
    "median": statistics.median,
    "min": min,
    "max": max,
}
"""How the values of repeats become one value."""


def _end(text: str) -> str:
    """The end of the last line of the output, for messages."""
    last = text.strip().splitlines()[-1:] or [""]
    return repr(last[0][-SHOWN:]) if last[0] else "nothing"
