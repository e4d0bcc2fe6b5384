"""What the documents show, runs; what they name, exists."""

from __future__ import annotations

import ast
import dataclasses
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from carbo import DEFAULT
from carbo.inference.priors import Priors

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
FOLDERS = sorted(path.parent.name for path in (ROOT / "src" / "carbo").glob("*/__init__.py"))


def test_the_readme_examples_run_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 2
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    assert names["result"].fun == -0.5  # the whole space has 18 points, and the budget of 15 finds the best
    assert "'adam'" in capsys.readouterr().out


def test_the_readme_opens_with_the_two_commands_and_a_short_example() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text.index("make demo") < text.index("make test") < text.index("import carbo")
    first = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert first is not None
    assert len([line for line in first.group(1).splitlines() if line.strip()]) <= 12


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_inside_the_project_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)", document.read_text(encoding="utf-8")):
        if "://" not in target:
            assert (document.parent / target).exists(), target


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_files_and_make_targets_that_a_document_names_exist(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    for name in re.findall(r"`([\w/]+\.py)`", text):
        assert (ROOT / name).exists() or list((ROOT / "src" / "carbo").rglob(name)), name
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"`?make ([a-z][a-z-]+)`", text):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def anchors(document: Path) -> set[str]:
    """What a link may say after #: headings in small letters, without punctuation, hyphens for spaces."""
    headings = re.findall(r"^#+ (.*)$", document.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_to_a_section_lead_to_a_heading(document: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", document.read_text(encoding="utf-8")):
        assert anchor in anchors(document.parent / target if target else document), f"{target}#{anchor}"


# ---------------------------------------------------------------- docs/architecture.md

MAP = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("room", FOLDERS)
def test_the_map_lists_the_modules_of_every_room(room: str) -> None:
    """Words in small letters between backticks, in the room's row, are its modules; subfolders are included."""
    row = next(line for line in MAP.splitlines() if line.startswith(f"| `{room}/` |"))
    modules = {path.stem for path in (ROOT / "src" / "carbo" / room).rglob("*.py")} - {"__init__"}
    assert set(re.findall(r"`([a-z_]+)`", row)) == modules


def test_a_name_that_follows_a_file_on_the_map_is_defined_there() -> None:
    name = r"\s+`(?![\w.]+\.py`)[A-Za-z_][\w.]*`"
    pairs = re.findall(rf"`([\w/]+\.py)`({name}(?:,{name})*)", MAP)
    assert len(pairs) > 40
    for file, names in pairs:
        path = ROOT / file if (ROOT / file).exists() else ROOT / "src" / "carbo" / file
        text = path.read_text(encoding="utf-8")
        for name in re.findall(r"[A-Za-z_]\w*(?=`)", names):
            assert re.search(rf"^ *(?:def|class) {name}\b|^ *{name}(?:: .*)? = ", text, re.MULTILINE), (file, name)


# ---------------------------------------------------------------- docs/choices.md


def test_every_setting_is_among_the_choices_with_its_value() -> None:
    text = (ROOT / "docs" / "choices.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([\w.]+)` \| `(.*?)` \| .+ \| \[.+\]\(.+\) \|$", text, re.MULTILINE))
    wanted = {field.name: getattr(DEFAULT, field.name) for field in dataclasses.fields(DEFAULT)}
    priors = wanted.pop("priors")
    wanted |= {f"priors.{field.name}": getattr(priors, field.name) for field in dataclasses.fields(Priors)}
    assert rows.keys() == wanted.keys()
    supports = ast.literal_eval(rows.pop("priors.supports"))
    np.testing.assert_allclose(supports, wanted.pop("priors.supports"), atol=1e-3)
    assert {name: ast.literal_eval(value) for name, value in rows.items()} == wanted
