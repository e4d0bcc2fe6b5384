"""A study as one self-contained HTML page.

source          the study of a file, a database or a program, opened to be looked at
evaluations     its trials as plain values; model, what the engine makes of them; definition, what was tuned
findings        best, top, start, trail: what follows from the evaluations
figures         numbers as text; axis, their places; markup, HTML that escapes; charts and panels, the page's parts
page            all of it together; file, how it is written

    from carbo.report import write
    write(study, "report.html")          # an optuna.Study, from a program that used CarboSampler
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import optuna


def html(study: optuna.Study, model: bool = True) -> str:
    """The page of a study. Its own sampler is asked for the model, where that is a CarboSampler.

    model   False leaves out the panels that need the model, which takes most of the time
    StudyError for a study of several objectives.
    """
    from carbo.report.page import render
    from carbo.report.report_data import gather
    from carbo.tune.reading import of_study

    return render(gather(of_study(study), model))


def write(study: optuna.Study, path: str | Path = "report.html", *, model: bool = True, force: bool = False) -> Path:
    """Write the page of a study, and return where. It appears as a whole or not at all.

    StudyError where something else than a carbo report stands at that path, unless `force`.
    """
    from carbo.report.page_file import check, save

    check(Path(path), force)
    return save(Path(path), html(study, model))
