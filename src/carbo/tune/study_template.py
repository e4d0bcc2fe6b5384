"""The text of a new study file, with comments."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from carbo.tune.errors import StudyError


class Variable(NamedTuple):
    """A variable and the keys of its table, as TOML text."""

    name: str
    keys: dict[str, str]


@dataclass(frozen=True)
class Draft:
    """The content of a new study file."""

    run: tuple[str, ...]
    variables: tuple[Variable, ...]
    constraints: tuple[str, ...] = ()
    direction: str = "minimize"
    budget: int = 100
    timeout: str | None = None
    value: str = "last-number"


def variable(kind: str, given: str) -> Variable:
    """The variable of NAME, NAME=FLAG, NAME=A,B or NAME=LOW:HIGH[:log]. StudyError for another form."""
    name, _, rest = given.partition("=")
    name = name.strip()
    keys = {"kind": toml(kind)}
    if kind == "binary":
        return Variable(name, keys | ({"flag": toml(rest)} if rest else {}))
    if kind in ("categorical", "ordinal"):
        choices = [_scalar(word.strip()) for word in rest.split(",") if word.strip()]
        if not choices:
            _refuse(kind, given, f"{name or 'NAME'}=1,2,4")
        return Variable(name, keys | {"choices": toml(choices)})
    low, high, *log = rest.split(":") if rest.count(":") in (1, 2) else _refuse(kind, given, f"{name or 'x'}=1:64:log")
    if log not in ([], ["log"]) or not all(isinstance(_scalar(end), int | float) for end in (low, high)):
        _refuse(kind, given, f"{name or 'NAME'}=1:64:log")
    return Variable(name, keys | {"low": low, "high": high} | ({"log": "true"} if log else {}))


def _refuse(kind: str, given: str, example: str) -> Any:
    raise StudyError(f"{kind}: expected a form like {example}, got {given!r}; write it so")


def _scalar(word: str) -> Any:
    """A number where the text is one, else the text."""
    for read in (int, float):
        try:
            return read(word)
        except ValueError:
            continue
    return word


def toml(value: Any) -> str:
    """A string, number or list of them as TOML."""
    if isinstance(value, list):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)


def text(draft: Draft) -> str:
    """The study file."""
    return "\n".join(_lines(draft)) + "\n"


def _lines(draft: Draft) -> Iterator[str]:
    timeout = f"timeout = {toml(draft.timeout)}" if draft.timeout else '# timeout = "30s"'
    yield "# A study: what `carbo tune` optimises. Lines that begin with # show other options."
    yield ""
    yield "[study]"
    yield f"direction = {toml(draft.direction)}"
    yield f"budget = {draft.budget}                  # number of evaluations; or a deadline, or both"
    yield '# deadline = "2h"              # no evaluation starts later; or a date and time'
    yield f"{timeout:<30} # a run that takes longer is killed, and counts as failed"
    yield "# repeats = 3                  # runs of each evaluation, for noisy values"
    yield '# aggregate = "median"         # of the runs: mean, median, min, max'
    yield "# workers = 2                  # evaluations at the same time"
    yield "# seed = 0                     # same seed, same suggestions (with one worker)"
    yield '# storage = "postgresql://me:${PGPASSWORD}@host/database"    # default: SQLite beside this file'
    if draft.constraints:
        yield "constraints = ["
        yield from (f"    {toml(each)}," for each in draft.constraints)
        yield "]"
    else:
        yield '# constraints = ["a < b", "not (x and y)"]    # conditions on the variables'
    yield ""
    yield "[command]                      # runs in the directory of this file, without a shell"
    yield f"run = {toml(list(draft.run))}"
    yield '# cwd = "build"'
    yield '# env = { THREADS = "{threads}" }'
    yield ""
    yield "[value]"
    yield f"from = {toml(draft.value):<24}# last-number, regex, json or wall-time"
    yield "# pattern = 'time: ([0-9.]+)'  # with regex: one group around the number"
    yield '# field = "result.seconds"     # with json'
    yield '# stream = "stderr"            # default stdout; or file = "{tmp}/out.json"'
    for each in draft.variables:
        yield ""
        yield f"[variables.{each.name}]"
        yield from (f"{key} = {value}" for key, value in each.keys.items())
    yield ""
    yield "# [[start]]                    # settings to try first; write one [[start]] for each"
    yield from (f"# {each.name} = ..." for each in draft.variables)


EXAMPLE = Draft(
    run=("awk", "-v", "size={size}", "-v", "level={level}", "-v", "cache={cache}", "-v", "mode={mode}",
         'BEGIN {{ cost = (size - 24)^2 / 50 + (5 - level)^2 + 4 * (cache == "true" ? 0 : 1); '
         'if (mode == "turbo") cost -= level > 3 ? 2 : -3; print "cost", cost }}'),
    variables=(
        variable("integer", "size=1:64"),
        variable("ordinal", "level=1,2,3,4,5"),
        variable("binary", "cache"),
        variable("categorical", "mode=safe,normal,turbo"),
    ),
    constraints=("size >= 8 or not cache",),
    budget=40,
    timeout="10s",
)  # fmt: skip
"""A made-up cost that awk computes; the best is -2 at size 24, level 5, with cache, in turbo mode."""
