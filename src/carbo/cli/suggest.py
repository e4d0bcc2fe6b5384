"""carbo suggest: one question in JSON, one answer in JSON, for programs in other languages."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from carbo.cli.arguments import command

if TYPE_CHECKING:
    from carbo.cli.arguments import Commands

EXAMPLES = """examples:
  echo '{"space": {"level": {"kind": "ordinal", "choices": [1, 2, 3]}, "fast": {"kind": "binary"}},
         "observations": [{"params": {"level": 1, "fast": true}, "value": 3.5},
                          {"params": {"level": 3, "fast": true}, "value": null}],
         "pending": [{"level": 2, "fast": true}], "n": 2, "seed": 0}' | carbo suggest
  echo '{"observations": [], "n": 4}' | carbo suggest study.toml      the file's space

in:  space (as [variables] of a study file), constraints, observations (value null: it failed), pending, n (1), seed,
     direction ("minimize"), preset ("default"), settings
out: {"suggestions": [params, ...], "exhausted": false}; fewer than n, and true, when the space is used up"""


def add(commands: Commands) -> None:
    """carbo suggest and its options."""
    suggest = command(
        commands,
        "suggest",
        "suggest points: JSON on stdin, JSON on stdout",
        about="Reads one JSON object from stdin and prints one: the points to evaluate next.",
        examples=EXAMPLES,
    )
    suggest.add_argument("file", nargs="?", type=Path, metavar="FILE", help="a study file, for its space")
    suggest.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from carbo.tune.suggest_json import answer, read

    text = sys.stdin.read()
    print(json.dumps(answer(read(text, arguments.file)), default=_never))
    return 0


def _never(value: Any) -> Any:
    raise AssertionError(f"{value!r} is no JSON")
