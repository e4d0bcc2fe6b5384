"""Figures: for each problem the best value so far against evaluations and against time, and one figure of ranks."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from carbo.errors import DataError, SettingsError
from carbo.numerics.types import Floats
from lab.runs.record import Record
from lab.tables.number_cells import any_runs, count_text, printed_optimum
from lab.tables.paper import COLUMNS, COMBO, DECIMALS, Column
from lab.tables.rankings import MOMENTS, Comparison, comparisons, ranks_at
from lab.tables.results import Results, Version, optimum

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = ("png", "svg", "pdf")
DPI, COLOURS = 90, 128
INSTANT = 1e-4
"""Seconds; faster methods are drawn here, so that they do not stretch the axis of time."""
CURVED = ("ising",)
"""Problems whose values span orders of magnitude down to 0; linear below 0.1, logarithmic above."""
CURVED_TICKS = (0, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)
BLACK, ORANGE, SKY, GREEN, BLUE, RED, PURPLE, GREY, BROWN = (
    "#000000", "#e69f00", "#56b4e9", "#009e73", "#0072b2", "#d55e00", "#cc79a7", "#8c8c8c", "#7a4b00",
)  # fmt: skip
"""Colours that the colour-blind tell apart (Okabe and Ito), and two more."""


class Look(NamedTuple):
    """Colour and line of a method, the same in every figure."""

    colour: str
    line: str = "-"
    width: float = 1.3


LOOKS = {
    "default": Look(RED, "-", 2.4),
    "paper": Look(BLUE, "-", 2.4),
    "combo-gm": Look(BLUE, ":"),
    "default-told": Look(RED, "--"),
    "default-penalty": Look(RED, "-."),
    "random": Look(GREY, "-"),
    "annealing": Look(BLACK, "-"),
    "genetic": Look(BLACK, "--"),
    "evolution": Look(BLACK, ":"),
    "tpe": Look(GREEN, "--"),
    "tpe-hyperopt": Look(GREEN, "-"),
    "smac": Look(PURPLE, "-"),
    "gp-optuna": Look(ORANGE, "-"),
    "bocs-sdp": Look(SKY, "-"),
    "bocs-sa3": Look(SKY, "--"),
}


def look(method: str) -> Look:
    """The look of a method. A method that LOOKS does not list gets one from its name, always the same."""
    if method in LOOKS:
        return LOOKS[method]
    return Look(BROWN, ("-", "--", "-.", ":")[zlib.crc32(method.encode()) % 4])


def draw_all(results: Results, forms: Sequence[str], folder: str | Path, kind: str = "png") -> list[Path]:
    """Write a figure for each problem and form, and one of ranks for each form; returns the files.

    SettingsError without matplotlib; DataError when a file cannot be written.
    """
    pictures = {f"{name}-{form}": progress(results, name, form) for form in forms for name in results.problems(form)}
    for form in forms:
        ranked = rank_figure(results, form) if results.problems(form) else None
        pictures |= {f"ranks-{form}": ranked} if ranked else {}
    return [_save(figure, Path(folder) / f"{name}.{kind}") for name, figure in pictures.items()]


def progress(results: Results, name: str, form: str) -> Figure:
    """Mean and standard error of the best value so far: against evaluations (left) and against time (right)."""
    figure = _figure(10.5, 4.2)
    left, right = figure.subplots(1, 2, sharey=True)
    column = COLUMNS.get(name, Column(name, name))
    lines = sorted((_line(results, name, form, version) for version in results.versions_on(name, form)),
                   key=lambda line: (line.mean[-1], line.label))  # fmt: skip
    for line in lines:
        _draw(left, np.arange(1, len(line.mean) + 1), line, line.mean, line.error)
        start = len(line.mean) - len(line.time)
        _draw(right, np.maximum(line.time, INSTANT), line, line.mean[start:], line.error[start:])
    _levels((left, right), results, column, form)
    left.set_xlim(1, results.budgets[name])
    low, high = _limits(lines, _level_values(results, column, form))
    if name.startswith(CURVED):
        left.set_yscale("symlog", linthresh=0.1)
        left.set_yticks(CURVED_TICKS, map(str, CURVED_TICKS))
        left.set_ylim(low - 0.01, 1.1 * high)
    else:
        left.set_ylim(low - 0.04 * (high - low), high + 0.04 * (high - low))
    right.set_xscale("log")
    left.set(xlabel="evaluations", ylabel="best value so far: mean, standard error")
    right.set(xlabel=f"seconds spent on suggestions (mean; at least {INSTANT:g})")
    figure.suptitle(f"{column.title}, {form}", x=0.01, ha="left", fontweight="bold")
    left.set_title(_related_numbers(column), fontsize=8, loc="left", color="0.35")
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", frameon=False, fontsize=8, title="best mean first",
                  alignment="left")  # fmt: skip
    return figure


def _related_numbers(column: Column) -> str:
    """A note with the paper's numbers of a related problem, which are no levels of this one; empty without such."""
    if not column.shown_with:
        return ""
    other = COLUMNS[column.shown_with]
    numbers = sorted(other.printed.items(), key=lambda item: item[1].mean)
    listed = ", ".join(f"{name} {printed.mean:.{DECIMALS}f}" for name, printed in numbers)
    return f"printed in the paper for another data set ({other.title}): {listed}"


def rank_figure(results: Results, form: str) -> Figure | None:
    """Mean ranks after some numbers of evaluations, a panel for each comparison; None where there is no comparison."""
    found = comparisons(results, form)
    if not found:
        return None
    across, down = min(len(found), 3), -(-len(found) // 3)
    figure = _figure(4.6 * across, 4.4 * down)
    for place, comparison in enumerate(found, start=1):
        _rank_panel(figure.add_subplot(down, across, place), results, form, comparison)
    figure.suptitle(f"Ranks, {form}", x=0.01, ha="left", fontweight="bold")
    return figure


def _rank_panel(ax: Axes, results: Results, form: str, comparison: Comparison) -> None:
    """Draw the ranks of one comparison; each line ends at its label."""
    moments = (*MOMENTS, None)
    ranks = np.array([ranks_at(results, form, comparison, moment) for moment in moments])
    ends = _spaced(ranks[-1], 0.035 * len(comparison.versions))
    for version, line, end in zip(comparison.versions, ranks.T, ends, strict=True):
        style, label = look(version.method), results.labels[version]
        ax.plot(range(len(moments)), line, color=style.colour, ls=style.line, lw=style.width, marker="o", ms=3,
                label=label)  # fmt: skip
        ax.annotate(label, (len(moments) - 1, line[-1]), (len(moments) - 0.85, end), fontsize=7,
                    color=style.colour, va="center", annotation_clip=False)  # fmt: skip
    counts = [len(cases) for cases in comparison.cases]
    runs = count_text(min(counts)) if min(counts) == max(counts) else f"{min(counts)} to {max(counts)} runs"
    ax.set_title(f"{comparison.what} ({len(comparison.problems)}), {runs} each", fontsize=9, loc="left")
    ax.set_xticks(range(len(moments)), [*map(str, MOMENTS), "end"])
    ax.set_xlim(-0.1, len(moments) + 1.4)
    ax.invert_yaxis()
    ax.set(xlabel="evaluations", ylabel="mean rank (1 is best)")
    _plain(ax)


class Line(NamedTuple):
    """The line of a version."""

    label: str
    look: Look
    faint: bool
    mean: Floats
    """(n,) the mean of the best value so far."""
    error: Floats
    """(n,) standard errors; 0 for a single run."""
    time: Floats
    """(n - initial,) mean of the seconds spent so far."""


def _line(results: Results, name: str, form: str, version: Version) -> Line:
    records = list(results.of(name, form, version).values())
    best = np.array([record.best for record in records])
    n = len(records)
    error = best.std(axis=0, ddof=1) / np.sqrt(n) if n > 1 else np.zeros(best.shape[1])
    faint = version != results.newest(version.method)
    label = f"{results.labels[version]} ({count_text(n)})"
    return Line(label, look(version.method), faint, best.mean(axis=0), error, _time(records))


def _time(records: Sequence[Record]) -> Floats:
    shortest = min(len(record.seconds) for record in records)
    return np.asarray(np.mean([np.cumsum(record.seconds[-shortest:]) for record in records], axis=0))


def _draw(ax: Axes, x: Any, line: Line, mean: Floats, error: Floats) -> None:
    strength = 0.45 if line.faint else 1.0
    ax.plot(x, mean, color=line.look.colour, ls=line.look.line, lw=line.look.width, alpha=strength, label=line.label)
    if error.any():
        ax.fill_between(x, mean - error, mean + error, color=line.look.colour, alpha=0.15 * strength, lw=0)


def _levels(axes: Sequence[Axes], results: Results, column: Column, form: str) -> None:
    """Draw the paper's COMBO (dashed) and the best possible value (dotted)."""
    least, combo = _optimum_level(results, column, form), _combo_level(results, column, form)
    for ax in axes:
        if combo is not None:
            ax.axhline(combo.value, color="0.35", ls=(0, (6, 3)), lw=1, label=combo.label)
        if least is not None:
            ax.axhline(least, color="0.35", ls=(0, (1, 2)), lw=1, label="best possible")
        _plain(ax)


class Level(NamedTuple):
    """A horizontal line."""

    value: float
    label: str


def _combo_level(results: Results, column: Column, form: str) -> Level | None:
    """The paper's COMBO mean, shifted with the optimum where our runs have another one than the paper's."""
    if COMBO not in column.printed:
        return None
    mean, ours, theirs = (
        column.printed[COMBO].mean,
        _optimum_level(results, column, form),
        printed_optimum(results, column),
    )
    shift = 0.0 if ours is None or theirs is None else ours - theirs
    how = "at the end" if abs(shift) < 1e-4 else "as far from the best"
    return Level(mean + shift, f"{COMBO} in the paper, {how}")


def _optimum_level(results: Results, column: Column, form: str) -> float | None:
    """The mean of the best possible values of the runs shown."""
    optima = [optimum(record) for record in any_runs(results, column, form).values()]
    known = [value for value in optima if value is not None]
    return sum(known) / len(known) if known and len(known) == len(optima) else None


def _level_values(results: Results, column: Column, form: str) -> list[float]:
    least, combo = _optimum_level(results, column, form), _combo_level(results, column, form)
    return [value for value in (least, combo and combo.value) if value is not None]


def _limits(lines: Sequence[Line], levels: Sequence[float]) -> tuple[float, float]:
    """Limits of the axis of values: the lowest level, and the values a little after the initial points."""
    bottom = [float(line.mean[-1] - line.error[-1]) for line in lines]
    top = [float(line.mean[min(len(line.mean) - len(line.time) + 5, len(line.mean) - 1)]) for line in lines]
    low, high = min([*bottom, *levels]), max([*top, *levels])
    return low, high if high > low else low + 1.0


def _spaced(places: Sequence[float], gap: float) -> list[float]:
    """Positions of labels, increased until each is at least `gap` above the one before."""
    order, moved, last = np.argsort(places), list(places), -np.inf
    for i in order:
        last = moved[i] = max(float(places[i]), last + gap)
    return [float(place) for place in moved]


def _plain(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(alpha=0.25, lw=0.5)


def _figure(width: float, height: float) -> Figure:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise SettingsError("plot: expected matplotlib to be installed, got none; pip install 'carbo[plot]'") from None
    return Figure(figsize=(width, height), layout="constrained")


def _save(figure: Figure, path: Path) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=DPI)
        if path.suffix == ".png":
            _save_with_palette(path)
    except OSError as error:
        raise DataError(f"figure {str(path)!r}: expected a file that can be written, got: {error}") from error
    return path


def _save_with_palette(path: Path) -> None:
    """Save an image with a palette, which takes a third of the bytes of full colours."""
    from PIL import Image

    with Image.open(path) as picture:
        small = picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    small.save(path, optimize=True)
