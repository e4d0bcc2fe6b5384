"""Where and with what a run was made: versions, revision, processor. Nothing personal: no names, no paths."""

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
"""The environment in which numerical libraries, once loaded, keep to one thread."""
REPEATABLE = {**ONE_THREAD, "PYTHONHASHSEED": "0"}
"""The environment in which a run of the same seed is the same again: SMAC goes through sets, in the order of hashes."""


def measured_apart(module: str, request: dict[str, Any], threads: int = 1) -> dict[str, Any]:
    """What `python -m module` answers to the request, JSON both, in a fresh process with so many threads."""
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
    """Of carbo and what it stands on, and of the packages."""
    names = dict.fromkeys(("carbo", "numpy", "scipy", *packages))
    return {"python": platform.python_version(), **{name: version(name) for name in names}}


@cache
def revision() -> str:
    """The git revision of carbo's checkout, "+" added when its code was changed since; else "v" and the version."""
    top = _said("git", "-C", str(HOME), "rev-parse", "--show-toplevel")
    # an installed copy may lie inside a checkout of something else
    if not top or Path(top).resolve() / "src" / "carbo" != HOME:
        return f"v{carbo.__version__}"
    short = _said("git", "-C", top, "rev-parse", "--short=12", "HEAD")
    if not short:
        return f"v{carbo.__version__}"
    # only the code counts: the results themselves may lie in the checkout
    return short + "+" * bool(_said("git", "-C", top, "status", "--porcelain", "--", "src", "pyproject.toml"))


@cache
def machine() -> dict[str, Any]:
    """Processor, number of cores, system."""
    return {"cpu": _cpu(), "cores": os.cpu_count(), "platform": f"{platform.system()} {platform.machine()}"}


def _cpu() -> str:
    if platform.system() == "Darwin":
        return _said("sysctl", "-n", "machdep.cpu.brand_string") or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    models = (text.partition(":")[2].strip() for text in lines if text.startswith("model name"))
    return next(models, platform.machine())


def _said(*command: str) -> str:
    """The command's output without surrounding space; empty where it is missing or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
