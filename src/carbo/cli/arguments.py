"""What the commands and their options have in common."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]


class Parser(argparse.ArgumentParser):
    """Wrong options are refused in one line, by the command that they were given to, with the way out."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        found, extra = super().parse_known_args(args, namespace)
        if extra:
            import difflib  # only where something is wrong

            named = extra[0].partition("=")[0]
            options = [option for option in self._option_string_actions if option.startswith("--")]
            close = difflib.get_close_matches(named, options, n=1) if named.startswith("-") else []
            kind = "option" if named.startswith("-") else "argument"
            self.error(f"expected no {kind} {named!r}" + (f" (did you mean {close[0]}?)" if close else ""))
        return found, extra

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; see `{self.prog} --help`\n")


class Help(argparse.RawDescriptionHelpFormatter):
    """Fits descriptions into the terminal and leaves examples, which have lines of their own, as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if "\n" in text:
            return super()._fill_text(text, width, indent)
        return argparse.HelpFormatter._fill_text(self, text, width, indent)


def command(commands: Commands, name: str, what: str, *, about: str, examples: str) -> argparse.ArgumentParser:
    """A command with its help: what it does in a line, then in full, then examples as they are typed."""
    return commands.add_parser(name, help=what, description=about, epilog=examples, formatter_class=Help)


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


def counts(text: str) -> tuple[int, ...]:
    """An option that is a list of whole numbers from 1 on."""
    return tuple(count(part.strip()) for part in text.split(","))
