"""The display of a tuner at work, on stderr: a live page on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from carbo.integrations.optuna.evaluations import Evaluation
from carbo.tune.formatting import clock, number, plain, settings
from carbo.tune.live_relevance import Insight
from carbo.tune.storage import mask_url
from carbo.tune.study_file import StudyFile
from carbo.tune.trials import best, count, ended_at
from carbo.tune.tuner import Snapshot

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live
    from rich.table import Table

LAST = 8
"""Number of evaluations on the page."""
MATTER = 8
"""Number of variables on the page."""


def remaining(file: StudyFile, now: Snapshot) -> float | None:
    """Seconds to go: to the deadline, or at the pace of all tuners since this one began. None if neither is known."""
    guesses = [] if now.left is None else [now.left]
    done, budget = count(now.rows), file.plan.budget
    if budget is not None and done > now.before:
        guesses.append(now.seconds / (done - now.before) * max(0, budget - done))
    return min(guesses) if guesses else None


class Plain:
    """Prints one line per evaluation."""

    def __init__(self, file: StudyFile, stream: TextIO | None = None) -> None:
        self._file, self._stream = file, stream or sys.stderr
        self._printed = 0

    @contextlib.contextmanager
    def open(self) -> Iterator[None]:
        yield

    def say(self, text: str) -> None:
        self._stream.write(f"carbo: {plain(text)}\n")
        self._stream.flush()

    def update(self, now: Snapshot) -> None:
        leader = best(now.rows, self._file.direction)
        for row in now.mine[self._printed :]:
            done, budget = count(now.rows), self._file.plan.budget
            progress = f"{done}/{budget}" if budget else f"{done}"
            top = f"best {number(leader.value)}" if leader else "nothing yet"
            self._stream.write(f"[{progress}] trial {row.number}: {outcome(row)}; {top}; {settings(row.params)}\n")
        self._printed = len(now.mine)
        self._stream.flush()


class Page:
    """A page that is redrawn in place, with rich."""

    def __init__(self, file: StudyFile, insight: Insight) -> None:
        from rich.console import Console

        self._file, self._insight = file, insight
        self._console = Console(stderr=True)
        self._live: Live | None = None
        self._notes: list[str] = []

    @contextlib.contextmanager
    def open(self) -> Iterator[None]:
        from rich.live import Live

        with Live(console=self._console, auto_refresh=False, transient=True) as self._live:
            yield

    def say(self, text: str) -> None:
        self._notes = [*self._notes[-2:], plain(text)]

    def update(self, now: Snapshot) -> None:
        assert self._live is not None
        self._insight.consider(now)
        self._live.update(self.page(now), refresh=True)

    def page(self, now: Snapshot) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        leader = best(now.rows, self._file.direction)
        parts: list[RenderableType] = [
            Text(f"{self._file.name}  {self._file.direction}  {mask_url(self._file.storage)}", style="dim"),
            self._progress(now),
            self._best(now.rows, leader),
            self._last(now, leader),
            *self._matter(),
            *(Text(f"! {note}", style="yellow") for note in self._notes),
            Text("Ctrl-C stops; the same command goes on from there", style="dim"),
        ]
        return Group(*parts)

    def _progress(self, now: Snapshot) -> RenderableType:
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        done, budget = count(now.rows), self._file.plan.budget
        left = remaining(self._file, now)
        counts = [f"{count(now.rows, ('running',))} running", f"{count(now.rows, ('failed',))} failed"]
        words = f" {done}/{budget} " if budget else f" {done} evaluations "
        words += f" {clock(now.seconds)} so far" + (f", {clock(left)} left" if left is not None else "")
        total = budget or max(now.seconds + (now.left or 1), 1)
        bar = ProgressBar(total, done if budget else now.seconds, width=min(30, self._console.width // 6))
        row = Table.grid(padding=(0, 1))
        for _ in range(3):
            row.add_column(no_wrap=True, overflow="ellipsis")
        row.add_row(bar, Text(words), Text(", ".join(counts), style="dim"))
        return row

    def _best(self, rows: Sequence[Evaluation], leader: Evaluation | None) -> RenderableType:
        from rich.text import Text

        if leader is None:
            return Text("best so far: nothing yet", style="bold")
        later = count(row for row in rows if row.number > leader.number)
        text = Text(f"best so far: {number(leader.value)}", style="bold green")
        text.append(f"  trial {leader.number}, {later} evaluations ago\n", style="dim")
        text.append(f"  {settings(leader.params)}", style="default not bold")
        return text

    def _last(self, now: Snapshot, leader: Evaluation | None) -> Table:
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, padding=(0, 2, 0, 0), title="last evaluations", title_justify="left", title_style="")
        for heading, width in (("trial", 5), ("value", 8), ("time", 6)):  # kept where the terminal is narrow
            table.add_column(heading, justify="right", no_wrap=True, min_width=width)
        table.add_column("difference from the best" if leader else "settings", no_wrap=True, overflow="ellipsis")
        running = [row for row in now.rows if row.standing == "running"][-LAST:]
        finished = sorted((row for row in now.rows if row.counts), key=lambda row: ended_at(row) or "")
        for row in (*running[::-1], *finished[-LAST:][::-1]):
            style = {"failed": "red", "running": "cyan"}.get(row.standing, "")
            text = plain(row.reason or "") if row.standing == "failed" else difference(row, leader)
            text = text if row.params else "being chosen"
            seconds = "" if row.seconds is None else clock(row.seconds)
            value = number(row.value) if row.standing == "done" else row.standing
            table.add_row(*(Text(cell, style=style) for cell in (str(row.number), value, seconds, text)))
        return table

    def _matter(self) -> list[RenderableType]:
        from rich.table import Table
        from rich.text import Text

        shares = self._insight.shares
        if not shares:
            return []
        table = Table(
            box=None,
            padding=(0, 2, 0, 0),
            title="which variables matter",
            title_justify="left",
            title_style="",
            show_header=False,
        )
        for name, share in list(shares.items())[:MATTER]:
            table.add_row(Text(name), Text(f"{share:.2f}"), Text("█" * round(30 * min(share, 1.0)), style="blue"))
        return [table]


def outcome(row: Evaluation) -> str:
    """Value and time of an evaluation, or why it failed."""
    if row.standing == "failed":
        return f"failed: {plain(row.reason or '')}"
    return number(row.value) + (f" ({clock(row.seconds)})" if row.seconds is not None else "")


def difference(row: Evaluation, leader: Evaluation | None) -> str:
    """The settings of an evaluation that differ from those of the best."""
    if leader is None:
        return settings(row.params)
    if leader.number == row.number:
        return "the best"
    differing: Mapping[str, Any] = {
        name: value for name, value in row.params.items() if leader.params.get(name) != value
    }
    return settings(differing)


def display(file: StudyFile, insight: Insight) -> Plain | Page:
    """The page if stderr is a terminal and rich is installed; otherwise plain lines."""
    if sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        with contextlib.suppress(ImportError):
            return Page(file, insight)
    return Plain(file)
