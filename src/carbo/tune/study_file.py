"""The study file: TOML, read into frozen values. Errors name file, line, key, expected, got and the way out."""

from __future__ import annotations

import datetime
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from carbo.errors import CarboError
from carbo.settings import PRESETS, preset
from carbo.space.space import Params, Space
from carbo.tune.arguments import BUILT_IN, Flags, Template, hole_in_quotes, template
from carbo.tune.errors import StudyError
from carbo.tune.formatting import duration
from carbo.tune.keyed_table import Source, Table
from carbo.tune.variables import Variables, variables

TOP_KEYS = ("study", "settings", "command", "value", "variables", "constraints", "start")
STUDY_KEYS = (
    "name",
    "direction",
    "budget",
    "deadline",
    "timeout",
    "repeats",
    "aggregate",
    "workers",
    "storage",
    "seed",
    "preset",
    "constraints",
    "give_up",
    "heartbeat",
)
DIRECTIONS = ("minimize", "maximize")
AGGREGATES = ("mean", "median", "min", "max")
READERS = ("last-number", "regex", "json", "wall-time")
STREAMS = ("stdout", "stderr", "file")
HEARTBEAT = 20.0
"""Seconds between signs of life. A worker that misses three counts as dead."""


@dataclass(frozen=True)
class Command:
    """The command: an argument list, or one line for a shell."""

    run: tuple[Template, ...]
    shell: bool
    cwd: Template
    env: Mapping[str, Template]


@dataclass(frozen=True)
class Value:
    """How the value is read."""

    reader: str = "last-number"
    stream: str = "stdout"
    pattern: str | None = None
    field: str | None = None
    file: Template | None = None


@dataclass(frozen=True)
class Plan:
    """How long, how often and with which settings evaluations run."""

    budget: int | None
    deadline: float | datetime.datetime | None
    timeout: float | None
    repeats: int
    aggregate: str
    workers: int
    seed: int | None
    preset: str
    settings: Mapping[str, Any]
    give_up: int
    heartbeat: int


@dataclass(frozen=True)
class StudyFile:
    """A study as its file describes it.

    storage     a database URL; it may hold a password: print only storage.mask_url(...) of it
    """

    path: Path
    name: str
    direction: str
    storage: str
    plan: Plan
    command: Command
    value: Value
    variables: Variables
    starts: tuple[Params, ...] = field(default=())

    @property
    def space(self) -> Space:
        return self.variables.space

    @property
    def flags(self) -> Flags:
        return self.variables.flags

    @property
    def folder(self) -> Path:
        return self.path.resolve().parent


def load(path: Path, storage: str | None = None) -> StudyFile:
    """Read a study file. `storage` replaces the storage in it. StudyError if anything in it is wrong."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or f"it is not UTF-8 text ({error})"
        raise StudyError(f"{path}: expected a study file, got: {why}; `carbo init` writes one") from None
    return loads(text, path, storage)


def loads(text: str, path: Path, storage: str | None = None) -> StudyFile:
    """Read the text of a study file. `path` is where the file is, or will be."""
    try:
        values = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise StudyError(f"{path}: expected TOML, got an error: {error}; correct that line") from None
    return _study(Table(Source(str(path), text), "", values), path, storage)


def _study(top: Table, path: Path, storage: str | None) -> StudyFile:
    study = top.only(*TOP_KEYS).table("study").only(*STUDY_KEYS)
    if "study" not in top:
        top.refuse("study", "a table [study]", None, "`carbo init` shows what a study file holds")
    where = "constraints" if "constraints" in top else "study.constraints"
    made = variables(top.table("variables"), _constraints(top, study), where)
    file = StudyFile(
        path=path,
        name=study.take("name", str, path.stem) or path.stem,
        direction=study.choice("direction", DIRECTIONS, "minimize"),
        storage=_storage(study, path, storage),
        plan=_plan(study, top.table("settings")),
        command=_command(top.table("command").only("run", "shell", "cwd", "env"), made),
        value=_value(top.table("value").only("from", "stream", "pattern", "field", "file"), made),
        variables=made,
        starts=_starts(top, made),
    )
    _check_use(top, file)
    return file


def _constraints(top: Table, study: Table) -> tuple[str, ...]:
    """The constraints, which are at the top of the file or in [study]."""
    if "constraints" in top and "constraints" in study:
        study.refuse("constraints", "constraints in one place", "two lists", "join them in [study]")
    return top.strings("constraints") + study.strings("constraints")


def _plan(study: Table, settings: Table) -> Plan:
    plan = Plan(
        budget=study.count("budget"),
        deadline=_deadline(study),
        timeout=_seconds(study, "timeout"),
        repeats=study.count("repeats", 1),
        aggregate=study.choice("aggregate", AGGREGATES, "mean"),
        workers=study.count("workers", 1),
        seed=study.count("seed", None, 0),
        preset=study.choice("preset", tuple(PRESETS), "default"),
        settings=dict(settings.values),
        give_up=study.count("give_up", 5, 0),
        heartbeat=max(1, round(_seconds(study, "heartbeat") or HEARTBEAT)),
    )
    if plan.budget is None and plan.deadline is None:
        study.source.refuse("study", "a budget or a deadline", "neither", 'add budget = 100 or deadline = "2h"')
    try:
        preset(plan.preset).changed(plan.settings)
    except CarboError as error:
        raise StudyError(f"{study.source.place('settings')}: settings: {error}") from None
    return plan


def _seconds(table: Table, key: str) -> float | None:
    given = table.raw(key)
    seconds = duration(given)
    if given is not None and seconds is None:
        table.refuse(key, 'a duration like 90, "90s" or "1h30m"', given, "the units are ms, s, m, h, d")
    return seconds


def _deadline(study: Table) -> float | datetime.datetime | None:
    given = study.raw("deadline")
    if isinstance(given, datetime.datetime):
        return given.astimezone()
    return _seconds(study, "deadline")


def _storage(study: Table, path: Path, given: str | None) -> str:
    named = study.take("storage", str)
    url = given or named
    if url is None:
        return f"sqlite:///{path.resolve().with_suffix('.db')}"
    try:
        url = _expand(url)
    except KeyError as error:
        study.refuse("storage", "an environment variable that is set", f"${{{error.args[0]}}}", "export it first")
    return storage_url(url, Path.cwd() if given else path.resolve().parent)


def storage_url(text: str, folder: Path) -> str:
    """A database URL unchanged; or the path of an SQLite file, relative to that folder, as a URL."""
    file = text.removeprefix("sqlite:///")
    return text if "://" in file else f"sqlite:///{folder / file}"


def _expand(text: str) -> str:
    """The text with each ${NAME} replaced by that environment variable. KeyError if it is not set."""
    return re.sub(r"\$\{(\w+)\}", lambda match: os.environ[match.group(1)], text)


def _command(table: Table, made: Variables) -> Command:
    known = [*made.space.names, *BUILT_IN]
    shell = table.take("shell", bool, False)
    if shell:
        line = table.need("run", str, 'with shell = true it is one line, as in run = "prog --x={x} | tail -1"')
        run: tuple[Template, ...] = (_template(table, "run", line, known),)
        if (hole := hole_in_quotes(run[0])) is not None:
            table.refuse("run", f"{{{hole}}} outside quotes", line, "take the quotes away: values are quoted for you")
    else:
        table.need("run", list, 'it is a list of arguments, as in run = ["prog", "--x={x}"]; shell = true for one line')
        run = tuple(_template(table, "run", text, known) for text in table.strings("run"))
        if not run or not run[0].text:
            table.refuse("run", "a program and its arguments", [each.text for each in run], 'as in ["prog", "--x={x}"]')
    env = table.table("env")
    return Command(
        run=run,
        shell=shell,
        cwd=_template(table, "cwd", table.take("cwd", str, "."), known),
        env={key: _template(env, key, env.take(key, str), known) for key in env.values},
    )


def _template(table: Table, key: str, text: str, known: list[str]) -> Template:
    if "\0" in text:
        table.refuse(key, "text without a null character", text, "no program can be given one")
    try:
        return template(text, known)
    except ValueError as error:
        raise StudyError(f"{table.source.place(table.at(key))}: {table.at(key)}: {error}") from None


def _value(table: Table, made: Variables) -> Value:
    reader = table.choice("from", READERS, "last-number")
    file = table.take("file", str)
    stream = table.choice("stream", STREAMS, "file" if file else "stdout")
    if (stream == "file") != (file is not None):
        table.refuse("file", 'a path together with stream = "file"', file, "give both or neither")
    return Value(
        reader=reader,
        stream=stream,
        pattern=_pattern(table, reader),
        field=_only_with(table, "field", reader, "json"),
        file=None if file is None else _template(table, "file", file, [*made.space.names, *BUILT_IN]),
    )


def _only_with(table: Table, key: str, reader: str, owner: str) -> str | None:
    """The value of a key that one reader needs, and no other may have."""
    if reader == owner:
        return str(table.need(key, str, f'from = "{owner}" needs it'))
    if key in table:
        table.refuse(key, f'this key with from = "{owner}" only', table.values[key], f"set from, or remove {key}")
    return None


def _pattern(table: Table, reader: str) -> str | None:
    text = _only_with(table, "pattern", reader, "regex")
    if text is None:
        return None
    try:
        groups = re.compile(text).groups
    except re.error as error:
        table.refuse("pattern", "a regular expression", text, f"it is wrong: {error}")
    if groups != 1:
        table.refuse("pattern", "one group (...) around the number", text, "use (?:...) for other groups")
    return text


def _starts(top: Table, made: Variables) -> tuple[Params, ...]:
    entries = top.take("start", list, [], "write each as [[start]]")
    starts: list[Params] = []
    for position, entry in enumerate(entries):
        try:
            row = made.space.encode(entry)
        except CarboError as error:
            raise StudyError(f"{top.source.place('start')}: start number {position + 1}: {error}") from None
        if not made.space.feasible(row[None])[0]:
            top.source.refuse("start", "starting points that the constraints permit", repr(entry), "leave it out")
        point = made.space.decode(row)
        if point not in starts:
            starts.append(point)
    return tuple(starts)


def _check_use(top: Table, file: StudyFile) -> None:
    """StudyError if the command does not use some variable."""
    used: set[str] = set()
    for each in (*file.command.run, file.command.cwd, *file.command.env.values()):
        used |= each.names
    missing = [name for name in file.space.names if name not in used]
    if missing and "params" not in used:
        top.source.refuse(
            "command.run", f"a placeholder {{{missing[0]}}}", "none", "else that variable would change nothing"
        )
