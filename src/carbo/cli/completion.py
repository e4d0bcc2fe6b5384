"""carbo completion: completion of commands and options for a shell."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from carbo.cli.arguments import Parser, command

if TYPE_CHECKING:
    from carbo.cli.arguments import Commands

SHELLS = ("bash", "zsh", "fish")
EXAMPLES = """examples:
  eval "$(carbo completion bash)"        put this line into ~/.bashrc
  carbo completion zsh >"${fpath[1]}/_carbo"
  carbo completion fish >~/.config/fish/completions/carbo.fish"""


def add(commands: Commands, top: argparse.ArgumentParser) -> None:
    """carbo completion, for all commands of the top parser."""
    completion = command(
        commands,
        "completion",
        "print a completion script for a shell",
        about="Prints a script with which the shell completes carbo's commands and options.",
        examples=EXAMPLES,
    )
    completion.add_argument("shell", choices=SHELLS, help="the shell that runs the script")
    completion.set_defaults(run=lambda arguments: _run(arguments.shell, top, commands))


def _run(shell: str, top: argparse.ArgumentParser, commands: Commands) -> int:
    from carbo.errors import SettingsError

    try:
        import shtab
    except ImportError:
        raise SettingsError("completion: expected the package shtab, got none; pip install 'carbo[tune]'") from None
    if shell not in shtab.SUPPORTED_SHELLS:
        raise SettingsError(f"completion: expected a shtab that knows {shell}, got an older one; pip install -U shtab")
    for each in commands.choices.values():
        for action in each.files if isinstance(each, Parser) else ():
            vars(action)["complete"] = shtab.FILE
    print(shtab.complete(top, shell))
    return 0
