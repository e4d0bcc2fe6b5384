"""The examples run, say what they promise, and are all listed; the compiler's options are measured and tuned."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "examples"
GCC_FLAGS = ROOT / "gcc-flags"
FILES = sorted(path.name for path in ROOT.glob("*.py"))
NEEDS = {"optuna_study.py": ("optuna", "tune")}
"""Packages that an example needs beyond carbo's own, and the extra that installs them."""
SAYS = {
    "minimize.py": r"best \d+\.\d{3}, found as number \d+\n(.*\n)*variable +influence",
    "ask_tell.py": r"best of 15: \d+\.\d\d .*\nthe model's guess .* \+- \d",
    "constraint.py": r"worth \d+\.\d\d at duty .*\n461 of 768 .* worth 26\.00",
    "category_graph.py": r"without a graph .*: 0\.[4-9]\d\nfamilies as a graph .*: 0\.[0-2]\d\nbest of 15 evaluations",
    "parallel_workers.py": r"best of 24: -?\d.*\n\d+ failed",
    "optuna_study.py": r"^best of 16 trials: \d+\.\d ms(.*\n)*variable +influence",
}


def run(*command: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", **env},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


@pytest.mark.parametrize("name", FILES)
def test_an_example_runs_and_says_what_it_promises(name: str, tmp_path: Path) -> None:
    package, extra = NEEDS.get(name, ("carbo", ""))
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed: pip install 'carbo[{extra}]'")
    done = run(sys.executable, str(ROOT / name), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert re.search(SAYS[name], done.stdout), done.stdout
    assert list(tmp_path.iterdir()) == []  # nothing is left behind


def test_the_index_lists_every_example_once_and_nothing_else() -> None:
    listed = re.findall(r"^\| \[([^]]+)\]", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted([*FILES, "gcc-flags/", "nas/"])
    assert set(SAYS) == set(FILES)


@pytest.mark.parametrize("name", FILES)
def test_an_example_is_short_and_begins_with_what_it_shows(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert text.startswith('"""')
    assert len(text.splitlines()) <= 80


# ---------------------------------------------------------------- gcc-flags


def _real_gcc() -> bool:
    gcc = shutil.which("gcc")
    if gcc is None:
        return False
    said = subprocess.run([gcc, "--version"], capture_output=True, text=True, check=False).stdout
    return "Free Software Foundation" in said  # on some systems gcc is another compiler


needs_gcc = pytest.mark.skipif(not _real_gcc(), reason="GCC is not installed (Debian, Ubuntu: apt install gcc)")
needs_valgrind = pytest.mark.skipif(
    shutil.which("valgrind") is None, reason="valgrind is not installed (Debian, Ubuntu: apt install valgrind)"
)
needs_tune = pytest.mark.skipif(
    importlib.util.find_spec("optuna") is None, reason="Optuna is not installed: pip install 'carbo[tune]'"
)


def measure(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, str(GCC_FLAGS / "measure.py"), *arguments, cwd=GCC_FLAGS)


def number(*arguments: str, **env: str) -> int:
    done = run(sys.executable, str(GCC_FLAGS / "measure.py"), *arguments, cwd=GCC_FLAGS, **env)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@needs_gcc
def test_the_size_is_the_same_in_every_run_and_depends_on_the_options() -> None:
    assert number("size", "-O2") == number("size", "-O2", NOISE="x" * 1000)
    assert number("size", "-Os") < number("size", "-O3")


@needs_gcc
@needs_valgrind
def test_the_instructions_are_the_same_in_every_run_and_fewer_where_the_compiler_tries() -> None:
    assert number("instructions", "-O2") == number("instructions", "-O2", NOISE="x" * 1000)
    assert number("instructions", "-O2") < number("instructions", "-O0") / 2


@needs_gcc
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["-fno-such-option"], "gcc ended with 1"),
        (["--param=max-unroll-times=many"], "gcc ended with 1"),
        (["-O2", "-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math"], "wrong result"),
        (["-DLIMIT=3"], "gcc ended with 1"),
        (["$(touch hacked)"], "gcc ended with 1"),
    ],
)
def test_what_does_not_compile_or_computes_something_else_fails_with_a_line(options: list[str], said: str) -> None:
    done = measure("size", *options)
    assert (done.returncode, done.stdout) == (1, "")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (GCC_FLAGS / "hacked").exists()


def test_a_missing_compiler_and_a_wrong_call_say_so() -> None:
    done = run(sys.executable, str(GCC_FLAGS / "measure.py"), "size", cwd=GCC_FLAGS, CC="no-such-compiler")
    assert (done.returncode, done.stderr) == (1, "measure.py: no-such-compiler is not installed\n")
    assert measure("time").returncode == 2
    assert measure().returncode == 2


@needs_gcc
def test_every_option_of_the_study_is_one_that_gcc_knows() -> None:
    study = tomllib.loads((GCC_FLAGS / "study.toml").read_text(encoding="utf-8"))
    known = run("gcc", "-Q", "--help=optimizers", "--help=params", cwd=GCC_FLAGS).stdout
    flags = [spelling for each in study["variables"].values() for spelling in each.get("flags", [])]
    switches = {flag.replace("-fno-", "-f") for flag in flags}
    with_values = {part.split("{")[0] for part in study["command"]["run"] if "={" in part}
    assert len(switches) + len(with_values) + 1 == len(study["variables"]) >= 30
    for option in switches | with_values:
        assert option in known, option


@needs_gcc
@needs_tune
def test_the_study_file_is_read_keeps_its_constraints_and_its_start_is_the_level_three(tmp_path: Path) -> None:
    from carbo.tune.arguments import Point, arguments
    from carbo.tune.study_file import load

    study = load(GCC_FLAGS / "study.toml")
    kinds = {type(variable).__name__ for variable in study.space.variables.values()}
    assert kinds == {"Binary", "Categorical", "Ordinal"}
    assert len(study.variables.constraints) == 3
    [start] = study.starts
    line = arguments(study.command.run, Point(start, 0, 0, str(tmp_path)), study.flags)
    options = line[line.index("instructions") + 1 :]
    assert options[0] == "-O3"
    assert number("size", *options) == number("size", "-O3")


@needs_gcc
@needs_tune
def test_the_tuner_evaluates_the_study(tmp_path: Path) -> None:
    for file in ("measure.py", "work.c"):
        shutil.copy(GCC_FLAGS / file, tmp_path)
    text = (GCC_FLAGS / "study.toml").read_text(encoding="utf-8").replace('"instructions"', '"size"')
    (tmp_path / "study.toml").write_text(text.replace('"python3"', json.dumps(sys.executable)))
    carbo = sys.executable, "-m", "carbo"
    done = run(*carbo, "tune", "study.toml", "--budget", "4", "--workers", "2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = json.loads(run(*carbo, "trials", "study.toml", "--json", cwd=tmp_path).stdout)
    assert len(rows) == 4
    assert (rows[0]["params"]["level"], rows[0]["value"]) == ("-O3", number("size", "-O3"))
    for row in rows:
        assert row["params"]["inline_auto"] <= row["params"]["inline_single"]
        assert row["value"] or "wrong result" in row["reason"]
