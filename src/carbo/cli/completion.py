"""carbo completion: completion of commands and options for a shell."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from carbo.cli.arguments import command

if TYPE_CHECKING:
    from carbo.cli.arguments import Commands

SHELLS = ("bash", "zsh", "fish")
EXAMPLES = """examples:
  eval "$(carbo completion bash)"                 in ~/.bashrc
  carbo completion zsh >"${fpath[1]}/_carbo"
  carbo completion fish >~/.config/fish/completions/carbo.fish"""


def add(commands: Commands, parser: Callable[[], argparse.ArgumentParser]) -> None:
    """carbo completion; `parser` makes what is to be completed."""
    completion = command(
        commands,
        "completion",
        "print completion for a shell",
        about="Prints a script that completes carbo's commands and options.",
        examples=EXAMPLES,
    )
    completion.add_argument("shell", choices=SHELLS)
    completion.set_defaults(run=lambda arguments: _run(arguments.shell, parser()))


def _run(shell: str, parser: argparse.ArgumentParser) -> int:
    from carbo.errors import SettingsError

    try:
        import shtab
    except ImportError:
        raise SettingsError("completion: expected the package shtab, got none; pip install 'carbo[tune]'") from None
    if shell not in shtab.SUPPORTED_SHELLS:
        raise SettingsError(f"completion: expected a shtab that knows {shell}, got an older one; pip install -U shtab")
    _complete_files(parser, shtab.FILE)
    print(shtab.complete(parser, shell))
    return 0


def _complete_files(parser: argparse.ArgumentParser, how: Any) -> None:
    """Let what is called FILE be completed by files, in all commands."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                _complete_files(each, how)
        elif str(action.metavar).startswith("FILE"):
            vars(action)["complete"] = how
