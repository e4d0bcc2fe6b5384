"""What the commands and their options have in common."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]


def command(commands: Commands, name: str, what: str, *, about: str, examples: str) -> argparse.ArgumentParser:
    """A command with its help: what it does in a line, then in full, then examples as they are typed."""
    return commands.add_parser(
        name, help=what, description=about, epilog=examples, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def add_study(parser: argparse.ArgumentParser, named: bool = True) -> None:
    """The options that say which study is meant; without a name where all of a storage are."""
    parser.add_argument("study", metavar="FILE|STORAGE", help="a study file, an SQLite file or a database URL")
    if named:
        parser.add_argument("--study", dest="name", metavar="NAME", help="which study, where the storage holds several")
    parser.add_argument("--storage", metavar="URL", help="where the study of FILE is, if not where FILE says")


def count(text: str) -> int:
    """An option that is a whole number from 1 on."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number >= 1, got {text!r}")
    return int(text)
