"""What the documents show, runs; what they name, exists."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]


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
