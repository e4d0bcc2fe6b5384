"""What a person sees while runs are made: plain lines, or a live board in a terminal."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from collections.abc import Iterator
from typing import Protocol

from lab.runs.events import Elsewhere, Event, Failed, Finished, Note
from lab.runs.progress import Board, duration


class Display(Protocol):
    """Shows events; each comes after the board was updated with it."""

    def show(self, event: Event) -> None: ...


class Plain:
    """Prints one line for each finished run."""

    def __init__(self, board: Board) -> None:
        self._board = board

    def show(self, event: Event) -> None:
        text = event_line(event, self._board)
        if text is not None:
            print(text, file=sys.stderr if isinstance(event, Failed | Note) else sys.stdout, flush=True)


def event_line(event: Event, board: Board) -> str | None:
    """The event in a line; None for events that are not printed."""
    match event:
        case Finished(task, outcome, fresh):
            how = duration(outcome.seconds) if fresh else "made by another process"
            text = f"[{board.finished()}/{len(board.tasks)}] {task}: {outcome.best:.6g} ({how})"
            return ", ".join(filter(None, (text, str(board.time_left()))))
        case Failed(task, why):
            return f"lab: {task} failed: {why}"
        case Elsewhere(task):
            return f"{task}: another process makes this run"
        case Note(text):
            return f"lab: {text}"
    return None


@contextlib.contextmanager
def display(board: Board) -> Iterator[Display]:
    """A live board on stderr where that is a terminal (and rich is installed), plain lines on stdout elsewhere."""
    if not sys.stderr.isatty() or importlib.util.find_spec("rich") is None:
        yield Plain(board)
        return
    from rich.console import Console
    from rich.live import Live

    from lab.runs.live_board import LiveBoard

    with Live(console=Console(stderr=True), auto_refresh=False, redirect_stdout=False) as live:
        shown = LiveBoard(board, live)
        try:
            yield shown
        finally:
            board.running.clear()  # the last drawing stays on the screen, where no run is under way any more
            shown.draw()


def summary(board: Board) -> list[str]:
    """Which runs finished and which failed, in a few lines."""
    lines = [f"{board.finished()} of {len(board.tasks)} runs recorded, {board.fresh} of them now, "
             f"in {duration(board.elapsed)}"]  # fmt: skip
    if board.elsewhere:
        lines.append(f"{len(board.elsewhere)} left to another process")
    if board.failed:
        lines.append(f"{len(board.failed)} failed:")
        lines += [f"  {event.task}: {event.why}" for event in board.failed]
    return lines
