"""A study as one self-contained HTML page.

from carbo.report import write
write(study, "report.html")          # an optuna.Study, from a program that used CarboSampler
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import optuna


def html(study: optuna.Study, model: bool = True) -> str:
    """The page of a study. The model is that of the study's own sampler if it is a CarboSampler.

    model   False leaves out the panels that need the model, which take most of the time
    StudyError for a study of several objectives.
    """
    from carbo.report.page import render
    from carbo.report.report_data import gather
    from carbo.tune.reading import of_study

    return render(gather(of_study(study), model))


def write(study: optuna.Study, path: str | Path = "report.html", *, model: bool = True, force: bool = False) -> Path:
    """Write the page of a study, completely or not at all. Returns its path.

    StudyError if there is another kind of file at that path, unless `force`.
    """
    from carbo.report.page_file import check, save

    check(Path(path), force)
    return save(Path(path), html(study, model))
