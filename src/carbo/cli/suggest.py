"""carbo suggest: the next points for programs in any language, JSON in and JSON out."""

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
  echo '{"space": {"level": {"kind": "ordinal", "choices": [1, 2, 3]},
                   "fast": {"kind": "binary"}},
         "observations": [
           {"params": {"level": 1, "fast": true}, "value": 3.5},
           {"params": {"level": 3, "fast": true}, "value": null}],
         "pending": [{"level": 2, "fast": true}],
         "n": 2, "seed": 0}' | carbo suggest
  echo '{"observations": [], "n": 4}' | carbo suggest study.toml

keys of the input, all but space optional:
  space         the variables, as [variables] in a study file; not with FILE
  constraints   list of conditions, as in a study file
  observations  list of {"params": {...}, "value": number}; null if it failed
  pending       list of params that are being evaluated
  n             how many points to suggest (1)
  direction     "minimize" or "maximize" ("minimize")
  seed, preset, settings    of the engine
output:
  {"suggestions": [params, ...], "exhausted": false}
  exhausted is true if fewer than n points were left; then it has only those"""


def add(commands: Commands) -> None:
    """carbo suggest and its options."""
    suggest = command(
        commands,
        "suggest",
        "suggest the next points: JSON in, JSON out",
        about="Reads one JSON object from stdin, and prints another with the points to evaluate next.",
        examples=EXAMPLES,
    )
    suggest.add_argument("file", nargs="?", type=Path, metavar="FILE", help="a study file that defines the space")
    suggest.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from carbo.tune.suggest_json import answer, read

    text = sys.stdin.read()
    print(json.dumps(answer(read(text, arguments.file)), default=_never))
    return 0


def _never(value: Any) -> Any:
    raise AssertionError(f"{value!r} is no JSON")
