"""Hides what looks like a secret in commands and messages."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

HIDDEN = "***"
_WORD = (
    r"(?:pass(?:word|wd|phrase|code)?|pwd|secret|token|credentials?|auth"
    r"|(?:api|access|private|secret|ssh|signing|encryption)[-_]?key)"
)
_NAME = rf"[\w.-]*(?<![a-z])(?:[\w-]*[-_])?{_WORD}(?![a-z])[\w-]*"
_URL = re.compile(r"(\w://)[^\s'\"]*@")
_ASSIGNED = re.compile(rf"""({_NAME}["']?\s*[=:]\s*)("[^"]*"|'[^']*'|[^\s"'&;,]+)""", re.IGNORECASE)
_OPTION = re.compile(rf"""((?:^|\s)--?{_NAME}\s+)("[^"]*"|'[^']*'|[^\s"'-][^\s"']*)""", re.IGNORECASE)
_SCHEME = re.compile(r"\b(Bearer|Basic)\s+[\w.~+/=-]+")
_HOLES = re.compile(r"(?:\{\w+\})+")


def mask_text(text: str) -> str:
    """A line of text without passwords of URLs, values of options and settings named like a secret, bearer tokens."""
    text = _SCHEME.sub(rf"\1 {HIDDEN}", _URL.sub(rf"\1{HIDDEN}@", text))
    return _OPTION.sub(_hide, _ASSIGNED.sub(_hide, text))


def _hide(match: re.Match[str]) -> str:
    """Placeholders of variables are no secrets."""
    value = match.group(2).strip("\"'")
    return match.group(0) if _HOLES.fullmatch(value) else match.group(1) + HIDDEN


def mask_arguments(arguments: Sequence[str]) -> str:
    """An argument list as it could stand in a shell, secrets hidden."""
    out: list[str] = []
    secret = False
    for argument in arguments:
        hide = secret and not _HOLES.fullmatch(argument) and not argument.startswith("-")
        out.append(HIDDEN if hide else mask_text(argument))
        secret = re.fullmatch(rf"--?{_NAME}", argument, re.IGNORECASE) is not None
    return " ".join(map(_quote, out))


def _quote(argument: str) -> str:
    """Quoted for a shell; braces of placeholders and our stars need no quotes to be read."""
    return argument if re.fullmatch(r"[\w@%+=:,./{}*-]+", argument) else shlex.quote(argument)
