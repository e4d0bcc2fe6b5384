"""Parts that the commands share: the parser, its help, and common options."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, from the command that got the wrong option, with the way out.

    options     the names of its options, as in --budget
    files       its arguments that are files, for completion
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.options: list[str] = []
        self.files: list[argparse.Action] = []
        super().__init__(*args, **kwargs)

    def add_argument(self, *args: Any, **kwargs: Any) -> argparse.Action:
        action: argparse.Action = super().add_argument(*args, **kwargs)
        self.options += [option for option in action.option_strings if option.startswith("--")]
        if str(action.metavar).startswith("FILE"):
            self.files.append(action)
        return action

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        found, extra = super().parse_known_args(args, namespace)
        if extra:
            import difflib  # only where something is wrong

            named = extra[0].partition("=")[0]
            close = difflib.get_close_matches(named, self.options, n=1) if named.startswith("-") else []
            kind = "option" if named.startswith("-") else "argument"
            self.error(f"expected no {kind} {named!r}" + (f" (did you mean {close[0]}?)" if close else ""))
        return found, extra

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; see `{self.prog} --help`\n")


class Help(argparse.RawDescriptionHelpFormatter):
    """Fits descriptions into the terminal, and keeps the lines of examples."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if "\n" in text:
            return super()._fill_text(text, width, indent)
        return argparse.HelpFormatter._fill_text(self, text, width, indent)


def command(commands: Commands, name: str, what: str, *, about: str, examples: str) -> argparse.ArgumentParser:
    """A command with its help: what it does in one line, then in full, then examples."""
    return commands.add_parser(name, help=what, description=about, epilog=examples, formatter_class=Help)


def add_study(parser: argparse.ArgumentParser, named: bool = True) -> None:
    """The options that name a study. named: False for a command about all studies of a storage."""
    parser.add_argument("study", metavar="FILE|STORAGE", help="a study file, an SQLite file or a database URL")
    if named:
        parser.add_argument("--study", dest="name", metavar="NAME", help="which study, if the storage has several")
    parser.add_argument("--storage", metavar="URL", help="a storage to use instead of the one in FILE")


def count(text: str) -> int:
    """The value of an option: a whole number, 1 or more."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number >= 1, got {text!r}")
    return int(text)


def counts(text: str) -> tuple[int, ...]:
    """The value of an option: whole numbers, 1 or more, separated by commas."""
    return tuple(count(part.strip()) for part in text.split(","))
