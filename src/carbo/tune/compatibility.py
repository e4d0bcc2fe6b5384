"""Whether a study file still agrees with the study it made: which changes there are, and which are compatible."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from carbo.errors import CarboError
from carbo.space.space import Space
from carbo.tune.arguments import BUILT_IN, Template, template
from carbo.tune.constraint_expression import parse
from carbo.tune.errors import StudyError
from carbo.tune.study_file import Command, StudyFile
from carbo.tune.variables import Constraint, Variables

DESCRIPTION = "carbo:study"
"""The user attribute of a study that holds its description."""
VERSION = 1
SHOWN = 54
"""Most characters that a message shows of a changed value."""


class Change(NamedTuple):
    """One difference. compatible: earlier evaluations can still be used."""

    what: str
    old: Any
    new: Any
    compatible: bool

    def __str__(self) -> str:
        old, new = json.dumps(self.old), json.dumps(self.new)
        same = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
        return f"{self.what}: was {_excerpt(old, same)}, is {_excerpt(new, same)}"


def _excerpt(text: str, place: int) -> str:
    """At most SHOWN characters of a text, around a place."""
    start = max(0, min(place - SHOWN // 3, len(text) - SHOWN)) if len(text) > SHOWN else 0
    end = start + SHOWN
    return ("..." if start else "") + text[start:end] + ("..." if end < len(text) else "")


def description(file: StudyFile) -> dict[str, Any]:
    """All that decides the meaning of an evaluation, as JSON. Of the environment, which may hold secrets, a digest."""
    command, value = file.command, file.value
    env = {name: text.text for name, text in command.env.items()}
    return {
        "version": VERSION,
        "direction": file.direction,
        "variables": {entry.pop("name"): entry for entry in file.space.describe()["variables"]},
        "constraints": list(file.variables.constraints),
        "flags": {name: list(both) for name, both in file.flags.items()},
        "command": {
            "run": [each.text for each in command.run],
            "shell": command.shell,
            "cwd": command.cwd.text,
            "env": hashlib.sha256(json.dumps(env, sort_keys=True).encode()).hexdigest() if env else None,
        },
        "value": {
            "from": value.reader,
            "stream": value.stream,
            "pattern": value.pattern,
            "field": value.field,
            "file": value.file.text if value.file else None,
            "repeats": file.plan.repeats,
            "aggregate": file.plan.aggregate,
        },
    }


def changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Change]:
    """The differences between two descriptions."""
    found = [Change("direction", old["direction"], new["direction"], False)]
    found += _variable_changes(old["variables"], new["variables"])
    found.append(Change("constraints", old["constraints"], new["constraints"], True))
    for part in ("flags", "command", "value"):
        for key in sorted({*old[part], *new[part]}):
            found.append(Change(f"{part}.{key}", old[part].get(key), new[part].get(key), True))
    return [change for change in found if change.old != change.new]


def _variable_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    for name in {**old, **new}:
        before, after = old.get(name), new.get(name)
        if before is None or after is None:
            yield Change(f"variables.{name}", before, after, False)
            continue
        for key in sorted({*before, *after}):
            word = "choices" if key == "values" else key  # as the file has it
            yield Change(f"variables.{name}.{word}", before.get(key), after.get(key), _may_change(key, before, after))


def _may_change(key: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether a change is compatible: of ranges and grids of numbers, and of graphs; not of kinds and choices."""
    return before["kind"] == after["kind"] and key in ("low", "high", "step", "points", "graph")


def refuse_changes(name: str, found: list[Change], extend: bool) -> None:
    """StudyError that names the changes, unless there are none, or all are compatible and `extend` accepts them."""
    fatal = [change for change in found if not change.compatible]
    if not found or (extend and not fatal):
        return
    listed = "; ".join(str(change) for change in (fatal or found)[:3])
    more = f" and {len(fatal or found) - 3} more" if len(fatal or found) > 3 else ""
    if fatal:
        way_out = "undo that, or give the study another name to begin a new one"
    else:
        way_out = "undo that, or pass --extend to go on with the evaluations so far, or give the study another name"
    raise StudyError(f"study {name!r}: expected the study file that it began with, got a change: {listed}{more}; "
                     f"{way_out}")  # fmt: skip


@dataclass(frozen=True)
class Described:
    """What the storage of a study says about it, without its file."""

    direction: str
    variables: Variables
    command: Command
    value: Mapping[str, Any]
    """How the value is read, as `description` has it."""


def read_description(name: str, stored: Any) -> Described:
    """The inverse of `description`, as far as needed. StudyError if `carbo tune` did not make the study."""
    if not isinstance(stored, Mapping) or stored.get("version") != VERSION:
        raise StudyError(
            f"study {name!r}: expected one made by this version of `carbo tune`, got another; "
            "Optuna's own tools can read it"
        )
    try:
        constraint = None
        if stored["constraints"]:
            names = list(stored["variables"])
            constraint = Constraint(tuple(parse(text, names) for text in stored["constraints"]))
        entries = [{"name": key, **entry} for key, entry in stored["variables"].items()]
        space = Space.from_description({"variables": entries, "constrained": bool(constraint)}, constraint)
        flags = {key: (both[0], both[1]) for key, both in stored["flags"].items()}
        run = tuple(template(text, [*space.names, *BUILT_IN]) for text in stored["command"]["run"])
        command = Command(run, stored["command"]["shell"], Template("", ()), {})
        return Described(stored["direction"], Variables(space, flags, constraint), command, stored["value"])
    except (KeyError, TypeError, ValueError, CarboError) as error:
        raise StudyError(f"study {name!r}: expected its description, got a damaged one ({error})") from None
