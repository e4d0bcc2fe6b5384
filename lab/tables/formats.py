"""A table and its three formats: Markdown, CSV and LaTeX."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Cell(NamedTuple):
    """One cell of a table. Its text is empty where nothing is known."""

    text: str = ""
    value: float | None = None
    error: float | None = None
    runs: int | None = None
    bold: bool = False


class Row(NamedTuple):
    """A row: a method, measured here or printed in the paper, or the best possible value."""

    label: str
    cells: tuple[Cell, ...]
    source: str = "here"
    """"here", "paper" or "exact"."""


@dataclass(frozen=True)
class Table:
    """A table. Rows are methods; columns are problems or numbers of evaluations."""

    name: str
    """A name for machines, used in CSV."""
    form: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    """Names of the columns for machines; () where these are the titles."""


CORNER = "method"
"""The title of the first column."""


def markdown(tables: Sequence[Table], heading: str = "##") -> str:
    """Tables as Markdown, padded so that they read well as plain text."""
    return "\n".join(_markdown(table, heading) for table in tables)


def _markdown(table: Table, heading: str) -> str:
    lines = [[CORNER, *table.columns]]
    lines += [[row.label, *(_bold(cell, "**{}**") for cell in row.cells)] for row in table.rows]
    lines = [[text.replace("|", "\\|") for text in line] for line in lines]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    pads = [f"{{:<{widths[0]}}}", *(f"{{:>{width}}}" for width in widths[1:])]
    rule = "|".join(["-" * (widths[0] + 2), *("-" * (width + 1) + ":" for width in widths[1:])])
    padded = [" | ".join(map(str.format, pads, line)) for line in lines]
    body = [f"| {padded[0]} |", f"|{rule}|", *(f"| {line} |" for line in padded[1:])]
    notes = ["", *(f"- {note}" for note in table.notes)] if table.notes else []
    return "\n".join([f"{heading} {table.title}", "", *body, *notes]) + "\n"


FIELDS = ("table", "form", "row", "source", "column", "value", "standard_error", "runs", "text")


def comma_separated(tables: Sequence[Table]) -> str:
    """Tables as CSV: a line for each cell that is not empty, with all digits. Notes are left out."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(FIELDS)
    for table in tables:
        for row in table.rows:
            for column, cell in zip(table.keys or table.columns, row.cells, strict=True):
                if cell.text:
                    writer.writerow([table.name, table.form, row.label, row.source, column,
                                     cell.value, cell.error, cell.runs, cell.text])  # fmt: skip
    return out.getvalue()


def latex(tables: Sequence[Table]) -> str:
    """Tables as LaTeX, for \\usepackage{booktabs}."""
    return "% needs \\usepackage{booktabs}\n" + "\n".join(map(_latex, tables))


def _latex(table: Table) -> str:
    head = " & ".join(map(escape, [CORNER, *table.columns]))
    body = [" & ".join([escape(row.label), *map(_latex_cell, row.cells)]) for row in table.rows]
    notes = [rf"\par\footnotesize {escape(note)}." for note in table.notes]
    return "\n".join([
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escape(table.title)}}}",
        rf"\begin{{tabular}}{{l{'r' * len(table.columns)}}}",
        r"\toprule",
        rf"{head} \\",
        r"\midrule",
        *(rf"{line} \\" for line in body),
        r"\bottomrule",
        r"\end{tabular}",
        *notes,
        r"\end{table}",
        "",
    ])  # fmt: skip


def _latex_cell(cell: Cell) -> str:
    return _bold(cell._replace(text=escape(cell.text)), r"\textbf{{{}}}")


LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"$<$", ">": r"$>$", "|": r"$|$", "*": "",
    "±": r"$\pm$", "−": r"$-$", "–": "--", "×": r"$\times$", "≤": r"$\leq$", "≥": r"$\geq$", "≈": r"$\approx$",
    "λ": r"$\lambda$", "`": "'",
}  # fmt: skip


def escape(text: str) -> str:
    """LaTeX of a text with a little Markdown."""
    signed = re.sub(r"(?<![\w.])-(?=\d)", "−", text)
    return "".join(LATEX.get(character, character) for character in signed)


def _bold(cell: Cell, template: str) -> str:
    return template.format(cell.text) if cell.bold else cell.text


FORMATS: dict[str, Callable[[Sequence[Table]], str]] = {"md": markdown, "csv": comma_separated, "latex": latex}
