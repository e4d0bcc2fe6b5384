"""Versions, revision and processor of a run. Nothing personal is recorded: no names, no paths."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import carbo

HOME = Path(carbo.__file__).resolve().parent
THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
                    "BLIS_NUM_THREADS", "NUMEXPR_NUM_THREADS", "RAYON_NUM_THREADS")  # fmt: skip
ONE_THREAD = dict.fromkeys(THREAD_VARIABLES, "1")
"""Environment variables that keep numerical libraries to one thread; they must be set before the libraries load."""
REPEATABLE = {**ONE_THREAD, "PYTHONHASHSEED": "0"}
"""Environment variables that make runs of one seed equal: SMAC iterates over sets, in the order of hashes."""


def measured_apart(module: str, request: dict[str, Any], threads: int = 1) -> dict[str, Any]:
    """The answer of `python -m module` to the request, both JSON, from a new process with so many threads."""
    child = subprocess.run(
        [sys.executable, "-m", module],
        input=json.dumps(request),
        env={**os.environ, **dict.fromkeys(THREAD_VARIABLES, str(threads))},
        text=True,
        stdout=subprocess.PIPE,
        check=True,
    )
    return dict(json.loads(child.stdout))


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Versions of Python, carbo, numpy, scipy and the packages."""
    names = dict.fromkeys(("carbo", "numpy", "scipy", *packages))
    return {"python": platform.python_version(), **{name: version(name) for name in names}}


CODE = ("src", "lab", "examples/nas", "pyproject.toml")
"""What a run depends on in the checkout; results lie there too, and are no code."""


@cache
def revision() -> str:
    """The git revision of the checkout, with "+" where its code was changed; without a checkout "v" and the version."""
    top = _output_of("git", "-C", str(HOME), "rev-parse", "--show-toplevel")
    # an installed copy may lie inside the checkout of another project
    if not top or Path(top).resolve() / "src" / "carbo" != HOME:
        return f"v{carbo.__version__}"
    short = _output_of("git", "-C", top, "rev-parse", "--short=12", "HEAD")
    if not short:
        return f"v{carbo.__version__}"
    return short + "+" * bool(_output_of("git", "-C", top, "status", "--porcelain", "--", *CODE))


@cache
def machine() -> dict[str, Any]:
    """Processor, number of cores, system."""
    return {"cpu": _cpu(), "cores": os.cpu_count(), "platform": f"{platform.system()} {platform.machine()}"}


def _cpu() -> str:
    if platform.system() == "Darwin":
        return _output_of("sysctl", "-n", "machdep.cpu.brand_string") or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    models = (text.partition(":")[2].strip() for text in lines if text.startswith("model name"))
    return next(models, platform.machine())


def _output_of(*command: str) -> str:
    """The output of a command, stripped; empty where the command is missing or fails."""
    try:
        finished = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return ""
    return finished.stdout.strip() if finished.returncode == 0 else ""
