"""Who may import whom: the flat pipeline of DESIGN section 2, read from the source."""

from __future__ import annotations

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import carbo

ROOT = Path(carbo.__file__).parent
OPTUNA = {"optuna_arguments", "optuna_engine", "optuna_sampler", "optuna_space", "optuna_trials"}
DOORS = {"__init__", "__main__", "cli", "bench", "report", "tune", "ray_searcher", "ray_space"} | OPTUNA
"""What may know the whole package and third parties; the rest is the core."""
THIRD_PARTY = {"numpy", "scipy"}
OPTIONAL = {"threads": {"threadpoolctl"}}
"""What a module may use where it is installed, and do without."""

ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "graph": {"errors"},
    "rows": {"graph"},
    "adjacency": {"graph", "rows"},
    "choices": {"errors", "graph"},
    "variables": {"choices", "graph"},
    "space": {"adjacency", "choices", "errors", "graph", "rows", "variables"},
    "pinned": {"adjacency", "graph", "space"},
    "levelled": {"graph"},
    "kernel": {"graph", "levelled"},
    "orders": {"graph", "kernel"},
    "adjacent": {"graph", "kernel", "orders"},
    "sums": {"adjacent", "graph", "kernel"},
    "product": {"graph", "kernel", "sums"},
    "gp": {"errors"},
    "priors": {"errors"},
    "slice_sampling": set(),
    "threads": set(),
    "conditional": {"gp", "graph", "kernel", "slice_sampling"},
    "posterior": {"conditional", "errors", "gp", "graph", "kernel", "priors", "slice_sampling"},
    "hamiltonian": set(),
    "seen": {"graph", "kernel", "levelled"},
    "gradient": {"adjacent", "conditional", "graph", "kernel", "orders", "seen"},
    "chain": {"conditional", "errors", "gradient", "graph", "hamiltonian", "kernel", "orders", "posterior", "priors"},
    "ensemble": {"conditional", "gp", "graph", "kernel", "product", "sums"},
    "around": {"ensemble", "graph"},
    "incremental": {"around", "ensemble", "graph", "kernel", "orders", "product", "sums"},
    "acquisition": {"around", "ensemble", "graph", "incremental"},
    "knowledge": {"acquisition", "ensemble", "graph"},
    "doubt": {"ensemble", "graph", "rows", "search"},
    "search": set(),
    "values": {"graph"},
    "evidence": {"chain", "conditional", "errors", "graph", "posterior", "values"},
    "settings": {"errors", "graph", "posterior", "priors"},
    "subset": {"conditional", "graph"},
    "suggest": {
        "acquisition",
        "doubt",
        "ensemble",
        "errors",
        "graph",
        "knowledge",
        "rows",
        "search",
        "settings",
        "space",
        "subset",
    },
    "influence": {"adjacent", "ensemble", "graph", "incremental", "orders", "space"},
    "inputs": {"errors", "settings"},
    "beliefs": {
        "adjacent",
        "chain",
        "conditional",
        "ensemble",
        "evidence",
        "graph",
        "kernel",
        "orders",
        "posterior",
        "product",
        "settings",
        "space",
        "subset",
        "threads",
        "values",
    },
    "saving": {"beliefs", "chain", "conditional", "evidence", "graph", "kernel", "posterior", "space"},
    "optimizer": {
        "beliefs",
        "doubt",
        "ensemble",
        "errors",
        "graph",
        "influence",
        "inputs",
        "pinned",
        "rows",
        "saving",
        "settings",
        "space",
        "suggest",
        "threads",
        "values",
    },
    "minimize": {"errors", "inputs", "optimizer", "settings", "space"},
}


def core() -> list[str]:
    names = {p.stem for p in ROOT.glob("*.py")} | {p.name for p in ROOT.iterdir() if (p / "__init__.py").exists()}
    return sorted(names - DOORS)


def imports(module: str) -> set[str]:
    """Dotted names that a module imports anywhere, `from carbo import gp` read as carbo.gp."""
    tree = ast.parse((ROOT / f"{module}.py").read_text())
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: relative import; write it in full"
            assert node.module is not None
            if node.module == "carbo":
                found |= {f"carbo.{alias.name}" for alias in node.names}
            else:
                found.add(node.module)
    return found


def inside(module: str) -> set[str]:
    """The package's own modules that a module imports."""
    return {name.split(".")[1] for name in imports(module) if name.startswith("carbo.")}


def test_every_module_of_the_core_is_in_the_table() -> None:
    assert core() == sorted(ALLOWED)


@pytest.mark.parametrize("module", core())
def test_a_module_of_the_core_imports_what_the_table_allows(module: str) -> None:
    assert inside(module) <= ALLOWED[module]


@pytest.mark.parametrize("module", core())
def test_the_core_needs_numpy_and_scipy_and_nothing_else(module: str) -> None:
    outside = {name.split(".")[0] for name in imports(module)} - {"carbo"} - OPTIONAL.get(module, set())
    assert outside <= THIRD_PARTY | sys.stdlib_module_names


@pytest.mark.parametrize("module", core())
def test_the_core_knows_no_door(module: str) -> None:
    assert not inside(module) & DOORS
    assert "carbo" not in imports(module)  # the package as a whole is a door


def test_imports_make_no_circle() -> None:
    order = list(TopologicalSorter({module: inside(module) for module in core()}).static_order())
    assert set(order) == set(core())


def test_the_table_itself_makes_no_circle() -> None:
    assert set(TopologicalSorter(ALLOWED).static_order()) == set(ALLOWED)


def test_the_reader_of_imports_sees_late_and_plain_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = "import os.path\nfrom carbo import gp\nfrom carbo.bench.speed import x\ndef f():\n    import networkx\n"
    (tmp_path / "sample.py").write_text(source)
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    assert imports("sample") == {"os.path", "carbo.gp", "carbo.bench.speed", "networkx"}
    assert inside("sample") == {"gp", "bench"}


USED_LATER = """
import sys
import carbo
assert not {"scipy", "carbo.optimizer", "importlib.metadata"} & set(sys.modules)
import carbo.bench.local
space = carbo.Space({"a": carbo.Binary()})
assert not {"scipy", "carbo.optimizer"} & set(sys.modules)
assert carbo.Optimizer(space, seed=0).ask()
assert "scipy.optimize" not in sys.modules
assert carbo.posterior.Priors is carbo.priors.Priors
assert callable(carbo.minimize) and carbo.__version__
assert set(carbo.__all__) <= set(dir(carbo))
from carbo import *
assert Optimizer is carbo.Optimizer
"""


def test_what_takes_long_to_import_is_imported_when_it_is_used() -> None:
    """Every start of every command pays for what `import carbo` loads."""
    subprocess.run([sys.executable, "-c", USED_LATER], check=True)


def test_an_unknown_name_is_an_attribute_error() -> None:
    for name in ("optimiser", "__unknown__", "_hidden"):
        with pytest.raises(AttributeError, match=f"module 'carbo' has no attribute '{name}'"):
            getattr(carbo, name)
