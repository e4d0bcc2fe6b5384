"""The figure of `growth`: seconds and memory of a suggestion along each axis."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.tables.plots import BLACK, BLUE, GREY, ORANGE, RED, _figure, _plain, _save

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TITLES = {
    "observations": "observations\n(60 binary variables)",
    "variables": "binary variables\n(250 observations)",
    "category": "values of a category\n(5 others, 250 observations)",
    "levels": "levels of an integer\n(5 others, 250 observations)",
}
LINES = {
    "first": ("first, with burn-in", GREY, "--"),
    "total": ("warm", RED, "-"),
    "model": ("of which model", BLUE, "-"),
    "search": ("of which search", ORANGE, "-"),
}

MEGABYTES = (100, 200, 500, 1_000)


def draw(records: Sequence[dict[str, Any]], path: Path) -> Path:
    """Write the figure of these records; returns its file. SettingsError without matplotlib."""
    axes = [axis for axis in TITLES if any(r["axis"] == axis for r in records)]
    figure = _figure(3.4 * len(axes) + 0.6, 5.6)
    panels = figure.subplots(2, len(axes), sharex="col", sharey="row", squeeze=False, height_ratios=(2, 1))
    for (upper, lower), axis in zip(panels.T, axes, strict=True):
        _panel(upper, lower, [r for r in records if r["axis"] == axis])
        lower.set_xlabel(TITLES[axis])
    panels[0, 0].set_ylabel("processor seconds a suggestion")
    panels[1, 0].set_ylabel("peak memory, MB")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    panels[0, 0].legend(handles, labels, frameon=False, fontsize=8)
    presets = ", ".join(sorted({r["preset"] for r in records}))
    figure.suptitle(f"One suggestion, preset {presets}, one thread", x=0.01, ha="left", fontweight="bold")
    return _save(figure, path)


def _panel(upper: Axes, lower: Axes, records: Sequence[dict[str, Any]]) -> None:
    at = [r["at"] for r in records]
    for stage, (label, colour, line) in LINES.items():
        upper.plot(at, [r["seconds"][stage] for r in records], line, color=colour, label=label, marker="o", ms=3)
    known = [r for r in records if r["megabytes"]["peak"] is not None]
    lower.plot([r["at"] for r in known], [r["megabytes"]["peak"] for r in known], color=BLACK, marker="o", ms=3)
    upper.axhline(10.0, color=BLACK, lw=0.7, ls=":")
    for ax in (upper, lower):
        ax.set(xscale="log", yscale="log")
        _plain(ax)
    ticks = at if len(at) <= 6 else at[::2]
    lower.set_xticks(ticks, [f"{tick:,}" for tick in ticks], fontsize=8)
    lower.set_yticks(MEGABYTES, [f"{tick:,}" for tick in MEGABYTES])
    lower.minorticks_off()
