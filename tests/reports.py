"""What the tests of the report share: studies made by hand, pages read back, and a browser to look at them."""

from __future__ import annotations

import datetime
import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

import carbo

CHEAP = {"samples": 2, "burn_in": 2}
START = datetime.datetime(2024, 5, 6, 7, 8, 9)
VOID = {"meta", "wbr"}
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def binary(count: int) -> dict[str, BaseDistribution]:
    return {f"v{i}": CategoricalDistribution([False, True]) for i in range(count)}


def study(direction: str = "minimize", name: str = "by hand") -> optuna.Study:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna.create_study(
        direction=StudyDirection[direction.upper()], study_name=name, sampler=carbo.CarboSampler(seed=0, settings=CHEAP)
    )


def trial(
    number: int,
    params: Mapping[str, Any],
    distributions: Mapping[str, BaseDistribution],
    value: float | None,
    **changes: Any,
) -> FrozenTrial:
    """A finished trial of ten seconds; it failed where the value is None."""
    began = START + datetime.timedelta(seconds=20 * number)
    fields: dict[str, Any] = {
        "number": number,
        "state": TrialState.FAIL if value is None else TrialState.COMPLETE,
        "value": value,
        "datetime_start": began,
        "datetime_complete": began + datetime.timedelta(seconds=10),
        "params": dict(params),
        "distributions": dict(distributions),
        "user_attrs": {},
        "system_attrs": {},
        "intermediate_values": {},
        "trial_id": number,
    }
    return FrozenTrial(**(fields | changes))


def filled(values: Sequence[float | None], direction: str = "minimize", variables: int = 4) -> optuna.Study:
    """A study of binary variables; the settings of trial i are the bits of i."""
    made, space = study(direction), binary(variables)
    for number, value in enumerate(values):
        params = {name: bool(number >> i & 1) for i, name in enumerate(space)}
        made.add_trial(trial(number, params, space, value))
    return made


class Page(HTMLParser):
    """A page read back: its elements, which have to be closed in order, its text, its numbers."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[tuple[str, str | None]] = []
        self.texts: list[tuple[tuple[str | None, ...], str]] = []
        """Each piece of text, with the ids of what it stands in."""
        self.rows: dict[str, list[list[str]]] = {}
        """Rows of the tables of a section, a text for each cell, tables one after another."""
        self.feed(text)
        self.close()
        assert not self.open, f"not closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        assert len(found) == len(attrs), f"an attribute twice in {tag}"
        self.elements.append((tag, found))
        if tag not in VOID:
            self.open.append((tag, found.get("id")))
        if tag == "tr":
            self.rows.setdefault(self._section(), []).append([])
        elif tag in ("th", "td"):
            self.rows[self._section()][-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> without its beginning"
        assert self.open.pop()[0] == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((tuple(name for _, name in self.open), data))
        if any(tag in ("th", "td") for tag, _ in self.open):
            self.rows[self._section()][-1][-1] += data

    def _section(self) -> str:
        return next((name for tag, name in self.open if tag == "section" and name), "")

    def text(self, within: str | None = None) -> str:
        """All text, or that inside the element of an id."""
        return "".join(text for ids, text in self.texts if within is None or within in ids)

    def number(self, name: str) -> float:
        """The exact number of the data element of that id."""
        (found,) = [attrs for tag, attrs in self.elements if tag == "data" and attrs.get("id") == name]
        assert found["value"] is not None
        return float(found["value"])

    @property
    def ids(self) -> list[str]:
        return [attrs["id"] for _, attrs in self.elements if attrs.get("id")]  # type: ignore[misc]


def browser() -> str | None:
    """A Chromium, where there is one."""
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


LOOK = """
window.onload = () => {
  const seen = [...document.querySelectorAll("iframe")].map(frame => {
    const page = frame.contentDocument, root = page.documentElement;
    const outside = e => !e.closest(".box, svg") && e.getBoundingClientRect().right > root.clientWidth + 0.5;
    return {
      page: frame.getAttribute("src"), given: frame.width - 0, width: root.clientWidth, needed: root.scrollWidth,
      outside: [...page.body.querySelectorAll("*")].filter(outside).map(e => e.tagName),
      requests: frame.contentWindow.performance.getEntriesByType("resource").map(e => e.name),
      sections: [...page.querySelectorAll("section")].filter(e => e.getBoundingClientRect().height > 40).length,
      dots: page.querySelectorAll("#convergence circle").length,
    };
  });
  document.getElementById("seen").textContent = JSON.stringify(seen);
}
"""


def looked_at(program: str, folder: Path, frames: Sequence[tuple[str, int]]) -> tuple[list[dict[str, Any]], list[str]]:
    """Pages of a folder as Chromium lays them out at some widths, and what it says on the console."""
    inner = "".join(f'<iframe src="{page}" width="{width}" height="900"></iframe>' for page, width in frames)
    look = folder / "look.html"
    look.write_text(f'<!DOCTYPE html><body>{inner}<pre id="seen"></pre><script>{LOOK}</script></body>')
    flags = (
        "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
        "--disable-component-update --disable-sync --disable-dev-shm-usage --allow-file-access-from-files "
        "--enable-logging=stderr --host-resolver-rules=MAP\t*\t~NOTFOUND --dump-dom"
    )
    arguments = [flag.replace("\t", " ") for flag in flags.split(" ")]
    done = subprocess.run(
        [program, *arguments, f"--user-data-dir={folder / 'profile'}", look.as_uri()],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    reader = Reader()
    reader.feed(done.stdout)
    return json.loads(reader.seen), [line for line in done.stderr.splitlines() if "CONSOLE" in line]


class Reader(HTMLParser):
    """What the page that looks has written down."""

    def __init__(self) -> None:
        super().__init__()
        self.seen, self._inside = "", False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside = tag == "pre"

    def handle_data(self, data: str) -> None:
        self.seen += data if self._inside else ""
