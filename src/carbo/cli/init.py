"""carbo init: writes a commented study file, from options or from the answers to questions."""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from carbo.cli.arguments import command, count

if TYPE_CHECKING:
    from carbo.cli.arguments import Commands
    from carbo.tune.study_template import Draft, Variable

EXAMPLES = """examples:
  carbo init                             asks what to run, and writes study.toml
  carbo init gcc.toml --command 'sh measure.sh {unroll} -O{level}' \\
      --binary unroll=-funroll-loops --ordinal level=0,1,2,3 --timeout 30s
  carbo init db.toml --command 'bench --cache={cache} --planner={planner}' \\
      --integer cache=1:1024:log --categorical planner=greedy,dynamic \\
      --constraint "cache > 8 or planner == 'greedy'" --maximize
  carbo init example.toml --example      writes a small study that runs"""
KINDS = {
    "binary": "NAME[=FLAG]",
    "categorical": "NAME=A,B,...",
    "ordinal": "NAME=1,2,4",
    "integer": "NAME=LOW:HIGH[:log]",
    "float": "NAME=LOW:HIGH[:log]",
}
HELP = {
    "binary": "an option of the command that is on or off",
    "categorical": "one of these choices, in no order",
    "ordinal": "one of these values, in order",
    "integer": "a whole number in this range",
    "float": "a number in this range",
}


def add(commands: Commands) -> None:
    """carbo init and its options."""
    init = command(
        commands,
        "init",
        "write a study file, from options or by asking",
        about="Writes a commented study file: from the options if --command is there, otherwise by asking.",
        examples=EXAMPLES,
    )
    init.add_argument("file", nargs="?", type=Path, default=Path("study.toml"), metavar="FILE",
                      help="the file to write (default study.toml)")  # fmt: skip
    init.add_argument("--force", action="store_true", help="overwrite FILE")
    init.add_argument("--example", action="store_true", help="write a small study that runs without changes")
    init.add_argument("--command", metavar="LINE", help="the command to run, with {name} for each variable")
    for kind, form in KINDS.items():
        init.add_argument(f"--{kind}", action="append", default=[], metavar=form, help=HELP[kind])
    init.add_argument(
        "--constraint", action="append", default=[], metavar="CONDITION", help="a condition that all settings must meet"
    )
    init.add_argument("--maximize", action="store_true", help="larger values are better")
    init.add_argument("--budget", type=count, default=100, help="number of evaluations (default 100)")
    init.add_argument("--timeout", metavar="DURATION", help="longest time of one run, for example 30s")
    init.add_argument("--value", choices=("last-number", "wall-time"), default="last-number",
                      help="the value of a run: the last number it prints (default), or how long it takes")  # fmt: skip
    init.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from carbo.tune.errors import StudyError
    from carbo.tune.study_file import loads
    from carbo.tune.study_template import EXAMPLE, text

    file: Path = arguments.file
    if file.exists() and not arguments.force:
        raise StudyError(f"{file}: expected a name that is free, got a file that exists; --force overwrites it")
    if arguments.example:
        draft = EXAMPLE
    elif arguments.command is not None:
        draft = _from_flags(arguments)
    elif sys.stdin.isatty():
        draft = _ask_all(arguments)
    else:
        raise StudyError("init: expected --command, or a terminal to ask on, got neither; `carbo init -h` has examples")
    written = text(draft)
    loads(written, file)
    try:
        file.write_text(written, encoding="utf-8")
    except OSError as error:
        raise StudyError(f"{file}: expected a file that can be written, got: {error.strerror}") from None
    print(f"wrote {file}; next: carbo tune {shlex.quote(str(file))} --dry-run")
    return 0


def _from_flags(arguments: argparse.Namespace) -> Draft:
    from carbo.tune.study_template import Draft, variable

    made = [variable(kind, given) for kind in KINDS for given in getattr(arguments, kind)]
    run = _split(arguments.command)
    seen = _names(run)
    made.sort(key=lambda each: seen.index(each.name) if each.name in seen else len(seen))
    return Draft(
        run=run,
        variables=tuple(made),
        constraints=tuple(arguments.constraint),
        direction="maximize" if arguments.maximize else "minimize",
        budget=arguments.budget,
        timeout=arguments.timeout,
        value=arguments.value,
    )


def _split(line: str) -> tuple[str, ...]:
    from carbo.tune.errors import StudyError

    try:
        return tuple(shlex.split(line))
    except ValueError as error:
        raise StudyError(
            f"--command: expected a line that a shell could split, got: {error}; check its quotes"
        ) from None


def _names(run: tuple[str, ...]) -> list[str]:
    """The variables among the placeholders of a command, in order."""
    from carbo.tune.arguments import BUILT_IN

    found = dict.fromkeys(re.findall(r"(?<!\{)\{(\w+)\}", " ".join(run)))
    return [name for name in found if name not in BUILT_IN]


# ---------------------------------------------------------------- asking


def _ask_all(arguments: argparse.Namespace) -> Draft:
    from carbo.tune.study_template import Draft

    print("Write the command that evaluates one setting. Put a {name} in place of each thing that may vary,")
    print("for example: ./bench --cache={cache} {compress}")
    run = _split(_ask("command"))
    wall = _ask("is the value the last number it prints, or the time it takes? [number/time]", "number").startswith("t")
    larger = _ask("are smaller or larger values better? [smaller/larger]", "smaller").startswith("l")
    return Draft(
        run=run,
        variables=tuple(_ask_variable(name) for name in _names(run)),
        constraints=tuple(arguments.constraint),
        direction="maximize" if larger else "minimize",
        budget=int(_ask("how many evaluations?", str(arguments.budget), r"[1-9]\d*")),
        timeout=_ask("longest time of one run, for example 30s (empty: no limit)", "") or None,
        value="wall-time" if wall else "last-number",
    )


def _ask_variable(name: str) -> Variable:
    from carbo.tune.study_template import variable

    shown = "/".join(KINDS)
    kind = _ask(f"what is {name}? [{shown}]", "binary", "|".join(f"{kind[0]}|{kind}" for kind in KINDS))
    kind = next(each for each in KINDS if each.startswith(kind))
    prompts = {
        "binary": "the argument when it is on, for example --fast (empty: true or false)",
        "categorical": "its choices, for example a,b,c",
        "ordinal": "its values in order, for example 1,2,4",
        "integer": "its range, for example 1:64 or 1:64:log",
        "float": "its range, for example 0.1:10 or 0.1:10:log",
    }
    while True:
        given = _ask(f"  {prompts[kind]}", "" if kind == "binary" else None)
        try:
            return variable(kind, f"{name}={given}" if given else name)
        except ValueError as error:
            print(f"  {error}")


def _ask(question: str, default: str | None = None, pattern: str = r".*") -> str:
    """The answer to a question, which is repeated until the answer fits the pattern."""
    while True:
        try:
            answer = input(f"{question}{f' ({default})' if default else ''}: ").strip() or default
        except EOFError:
            raise KeyboardInterrupt from None
        if answer is not None and re.fullmatch(pattern, answer) and (answer or default is not None):
            return answer
        print("  please answer, or press Ctrl-C to leave")
