"""How large the house is: what one `ask` walks through, and how many settings and constants the engine has.

The walk is one whole search of the `default` preset: 25 categories of 3 values, 24 points told, the first model built.

    modules     files of the package that the walk enters
    functions   functions and methods that it calls, comprehensions and lambdas left out
    frames      most calls of these that are open at one time
    switches    calls from one file of the package into another
    settings    fields of `Settings` and of `Priors`
    constants   upper-case names assigned at the top of a module, in all rooms but the doors
"""

from __future__ import annotations

import ast
import dataclasses
import sys
from pathlib import Path
from types import FrameType
from typing import Any

DOORS = ("tune", "report", "cli", "integrations")
LIMITS = {"modules": 18, "functions": 150, "frames": 14, "settings": 30, "constants": 70}
"""What the design allows."""


class Walk:
    """A profiler that notes every call of a function of the package."""

    def __init__(self, root: Path) -> None:
        self._root = f"{root}/"
        self.modules: set[str] = set()
        self.functions: set[tuple[str, str]] = set()
        self.frames = self.switches = self._open = 0
        self._stack: list[str] = []

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        file, name = frame.f_code.co_filename, frame.f_code.co_qualname
        if not file.startswith(self._root):
            return
        if event == "call":
            if self._stack and self._stack[-1] != file:
                self.switches += 1
            self._stack.append(file)
            self.modules.add(file.removeprefix(self._root))
            if not frame.f_code.co_name.startswith("<"):
                self.functions.add((file, name))
                self._open += 1
                self.frames = max(self.frames, self._open)
        elif event == "return" and self._stack:
            self._stack.pop()
            self._open -= not frame.f_code.co_name.startswith("<")


def measure() -> dict[str, Any]:
    """All counts, and the modules of the walk."""
    import carbo
    from carbo.inference.priors import Priors

    assert carbo.__file__ is not None
    root = Path(carbo.__file__).parent
    walk = walked(root)
    settings = len(dataclasses.fields(carbo.Settings)) + len(dataclasses.fields(Priors))
    return {
        "modules": len(walk.modules),
        "functions": len(walk.functions),
        "frames": walk.frames,
        "switches": walk.switches,
        "settings": settings,
        "constants": len(constants(root)),
        "limits": LIMITS,
        "walk": sorted(walk.modules),
    }


def walked(root: Path) -> Walk:
    """The walk of one `ask`."""
    import numpy as np

    import carbo

    space = carbo.Space({f"x{i}": carbo.Categorical(["a", "b", "c"]) for i in range(25)})
    rows = space.random_rows(np.random.default_rng(0), 24)
    optimizer = carbo.Optimizer(space, seed=0)
    values = np.sin(np.arange(24.0)) - 10.0 * (np.arange(24) == 23)  # the last one is the best: a whole search
    optimizer.tell(space.decode_many(rows), values.tolist())
    walk = Walk(root)
    sys.setprofile(walk)
    try:
        optimizer.ask()
    finally:
        sys.setprofile(None)
    return walk


def constants(root: Path) -> list[str]:
    """Names of the engine's module-level constants, by file."""
    found = []
    for path in sorted(root.rglob("*.py")):
        if path.relative_to(root).parts[0] in DOORS:
            continue
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            names = [
                name for target in targets for name in (target.elts if isinstance(target, ast.Tuple) else [target])
            ]
            found += [f"{path.relative_to(root)}: {n.id}" for n in names if isinstance(n, ast.Name) and n.id.isupper()]
    return found
