"""Durations, values and settings as text for people and for command lines."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

WHOLE = 1e12
UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


def duration(value: Any) -> float | None:
    """Seconds of 90, 1.5, "90s", "1h30m" or "500ms"; None for anything else."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        seconds = float(value)
    elif isinstance(value, str):
        parts = re.findall(r"\s*(\d+(?:\.\d+)?)\s*(ms|min|s|m|h|d)?", value)
        if not parts or not re.fullmatch(r"(?:\s*\d+(?:\.\d+)?\s*(?:ms|min|s|m|h|d)?)+\s*", value):
            return None
        if len(parts) > 1 and not all(unit for _, unit in parts):
            return None
        seconds = sum(float(number) * UNITS[unit or "s"] for number, unit in parts)
    else:
        return None
    return seconds if 0 < seconds < 1e9 else None


def clock(seconds: float) -> str:
    """A duration for people: 0.42 s, 12 s, 3 min 05 s, 2 h 10 min."""
    if seconds < 10:
        return f"{seconds:.2g} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def number(value: float | None) -> str:
    """A value for people: six digits, or all digits of whole numbers up to WHOLE."""
    if value is None:
        return "-"
    return f"{value + 0.0:.0f}" if float(value).is_integer() and abs(value) < WHOLE else f"{value:.6g}"


def as_text(value: Any) -> str:
    """A choice as a command line has it: true and false for booleans, the shortest exact text for numbers."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def plain(text: str) -> str:
    """Text without characters that could move a terminal's cursor or break a line."""
    return "".join(character if character.isprintable() else " " for character in text)


def settings(params: Mapping[str, Any]) -> str:
    """Params on one line. Values with blanks or unprintable characters are quoted."""
    words = {name: as_text(value) for name, value in params.items()}
    odd = {name for name, word in words.items() if not word or not word.isprintable() or " " in word}
    return " ".join(f"{name}={word!r}" if name in odd else f"{name}={word}" for name, word in words.items())
