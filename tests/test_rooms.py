"""Who may import whom: rooms, lowest first. A room imports from rooms before it in this list, and from itself."""

from __future__ import annotations

import ast
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import carbo

ROOT = Path(carbo.__file__).parent
ROOMS = ["errors", "numerics", "space", "kernels", "inference", "settings", "surrogate", "acquisition", "engine",
         "checks", "state", "optimizer", "minimize", "integrations", "tune", "report", "cli", "__main__"]  # fmt: skip
DOORS = {"integrations", "tune", "report", "cli", "__main__"}
"""What may know third parties. All other rooms need numpy and scipy, and nothing else."""
OPTIONAL = {"carbo.numerics.threads": {"threadpoolctl"}}
"""What a module uses where it is installed, and does without."""


def modules(root: Path) -> dict[str, Path]:
    """Every module below the package's folder, by its dotted name, `carbo` itself left out."""
    names = {path: ".".join(["carbo", *path.relative_to(root).with_suffix("").parts]) for path in root.rglob("*.py")}
    return {name.removesuffix(".__init__"): path for path, name in names.items() if name != "carbo.__init__"}


def imports(path: Path, known: set[str]) -> set[str]:
    """Dotted names that a module imports anywhere, functions included; `from carbo.space import graphs` is a module."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None
            assert node.level == 0, f"{path}: relative import; write it in full"
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= inner & known or {node.module}
    return found


def upward(root: Path) -> list[str]:
    """Imports from a room to a later one, and of rooms that the list does not name."""
    each, wrong = modules(root), []
    for name, path in each.items():
        for other in imports(path, set(each)):
            if other.startswith("carbo."):
                here, there = name.split(".")[1], other.split(".")[1]
                if not {here, there} <= set(ROOMS) or ROOMS.index(there) > ROOMS.index(here):
                    wrong.append(f"{name} imports {other}")
    return wrong


def graph(root: Path) -> dict[str, set[str]]:
    each = modules(root)
    return {name: imports(path, set(each)) & set(each) - {name} for name, path in each.items()}


def test_a_room_imports_from_rooms_before_it() -> None:
    assert upward(ROOT) == []


def test_imports_make_no_circle_late_ones_included() -> None:
    assert set(TopologicalSorter(graph(ROOT)).static_order()) == set(modules(ROOT))


@pytest.mark.parametrize("name", sorted(n for n in modules(ROOT) if n.split(".")[1] not in DOORS))
def test_the_engine_needs_numpy_and_scipy_and_nothing_else(name: str) -> None:
    outside = {other.split(".")[0] for other in imports(modules(ROOT)[name], set(modules(ROOT)))} - {"carbo"}
    assert outside - OPTIONAL.get(name, set()) <= {"numpy", "scipy"} | sys.stdlib_module_names


def test_the_package_knows_no_laboratory() -> None:
    assert not [
        name for name, path in modules(ROOT).items() if "lab" in {i.split(".")[0] for i in imports(path, set())}
    ]


def test_a_wrong_house_is_found_out(tmp_path: Path) -> None:
    """The broken twin: an import upwards inside a function, an unknown room, a circle within a room."""
    for name, text in {
        "space/row_space": "def f():\n    from carbo.optimizer import Optimizer\n",
        "cellar/wine": "import carbo.errors\n",
        "numerics/a": "from carbo.numerics import b\n",
        "numerics/b": "from carbo.numerics.a import x\n",
        "errors": "",
        "optimizer": "",
    }.items():
        path = tmp_path / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    wrong = ["carbo.cellar.wine imports carbo.errors", "carbo.space.row_space imports carbo.optimizer"]
    assert sorted(upward(tmp_path)) == wrong
    with pytest.raises(CycleError):
        list(TopologicalSorter(graph(tmp_path)).static_order())


USED_LATER = """
import sys
import carbo
public = sorted(carbo.__all__)
assert sorted(dir(carbo)) == public
assert not {"scipy", "carbo.optimizer", "importlib.metadata"} & set(sys.modules)
space = carbo.Space({"a": carbo.Binary()})
assert not {"scipy", "carbo.optimizer"} & set(sys.modules)
assert carbo.Optimizer(space, seed=0).ask()
assert "scipy.optimize" not in sys.modules
assert callable(carbo.minimize) and carbo.__version__
assert sorted(dir(carbo)) == public
from carbo import *
assert Optimizer is carbo.Optimizer
"""


def test_what_takes_long_to_import_is_imported_when_it_is_used() -> None:
    """Every start of every command pays for what `import carbo` loads; `dir` shows public names alone."""
    subprocess.run([sys.executable, "-c", USED_LATER], check=True)


def test_an_unknown_name_is_an_attribute_error() -> None:
    for name in ("optimiser", "__unknown__", "_hidden"):
        with pytest.raises(AttributeError, match=f"module 'carbo' has no attribute '{name}'"):
            getattr(carbo, name)
