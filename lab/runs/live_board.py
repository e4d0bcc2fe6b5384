"""The live board of a grid in a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean
from time import monotonic
from typing import TYPE_CHECKING

from lab.runs.display import event_line
from lab.runs.events import Elsewhere, Event, Failed, Note
from lab.runs.grid import Task
from lab.runs.progress import Board, Running, duration

if TYPE_CHECKING:
    from rich.console import Group, RenderableType
    from rich.live import Live
    from rich.table import Table

REFRESH = 0.25
"""Seconds between two drawings."""
CELL = 17
"""Characters that the column of a method needs, for 25/25 and a value."""
BAR = 20


class LiveBoard:
    """Draws the board again and again; prints failures and notes above it."""

    def __init__(self, board: Board, live: Live) -> None:
        self._board = board
        self._live = live
        self._last = -REFRESH

    def show(self, event: Event) -> None:
        """Print the event if it has a line, and draw if the last drawing is old."""
        if isinstance(event, Failed | Elsewhere | Note):
            self._live.console.print(event_line(event, self._board), markup=False, highlight=False)
        now = monotonic()
        if now - self._last >= REFRESH:
            self._last = now
            self.draw()

    def draw(self) -> None:
        """Draw the board as it is now."""
        self._live.update(drawing(self._board, self._live.console.width), refresh=True)


def drawing(board: Board, width: int) -> Group:
    """The board in a terminal of that width: first the runs under way, then problems x methods."""
    from rich.console import Group

    parts: list[RenderableType] = [_head(board)]
    if board.running:
        parts.append(_under_way(board))
    return Group(*parts, *_tables(board, width))


def _head(board: Board) -> str:
    words = [f"[bold]{board.finished()}/{len(board.tasks)}[/] runs recorded", f"{duration(board.elapsed)} so far"]
    words.append(str(board.time_left()))
    if board.failed:
        words.append(f"[red]{len(board.failed)} failed[/]")
    if any(task.relocated is not None for task in board.tasks):
        words.append("[dim]* relocated[/]")
    return "  ".join(filter(None, words))


def _under_way(board: Board) -> Table:
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    table = Table.grid(padding=(0, 2, 0, 0))
    for run in board.running.values():
        bar = ProgressBar(total=run.task.budget, completed=run.evaluations, width=BAR)
        table.add_row(str(run.task), bar, *_figures(run))
    return table


def _figures(run: Running) -> tuple[str, str, str]:
    best = f"best {run.best:.5g}" if run.evaluations else ""
    return f"{run.evaluations}/{run.task.budget}", best, duration(monotonic() - run.since)


def _tables(board: Board, width: int) -> Iterator[Table]:
    """Problems x methods, in as many tables, one below the other, as the width makes necessary."""
    from rich.table import Table

    cells: dict[tuple[str, str], list[Task]] = {}
    for task in board.tasks:
        cells.setdefault((task.row, task.method), []).append(task)
    rows = list(dict.fromkeys(row for row, _ in cells))
    methods = list(dict.fromkeys(name for _, name in cells))
    fit = max(1, (width - max(map(len, rows), default=0) - 2) // CELL)
    for start in range(0, len(methods), fit):
        part = methods[start : start + fit]
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False)
        table.add_column("mean of best", no_wrap=True)
        for name in part:
            table.add_column(name, no_wrap=True, min_width=min(CELL - 2, len(name)))
        for row in rows:
            table.add_row(row, *(_cell(cells.get((row, name), ()), board) for name in part))
        yield table


def _cell(tasks: Sequence[Task], board: Board) -> str:
    if not tasks:
        return "[dim]-[/]"
    best = [board.done[task.key].best for task in tasks if task.key in board.done]
    share = f"{len(best)}/{len(tasks)}"
    colour = "green" if len(best) == len(tasks) else "yellow" if best else "dim"
    mean = f" {fmean(best):.5g}" if best else ""
    return f"[{colour}]{share}[/]{mean}"
