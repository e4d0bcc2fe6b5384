"""Compile work.c with the given GCC options and print what it costs: one number.

    python3 measure.py instructions -O2 -funroll-loops     instructions executed, counted by valgrind
    python3 measure.py size -Os                            bytes of code and data in the program

Both are the same in every run, on any machine load: nothing is timed. Exits with 1 and a line on stderr when the
program does not compile, does not run, or prints another checksum than it should.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

SOURCE = Path(__file__).resolve().with_name("work.c")
CHECKSUM = "c94539c1733813a3"
"""What a correct compilation prints: IEEE double arithmetic, each operation rounded."""
SECONDS = 60


class Failed(Exception):
    """Why there is no number."""


def run(*command: str) -> subprocess.CompletedProcess[str]:
    """Run a program without a shell and in an environment that is always the same; Failed if it is unsuccessful."""
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)
    except FileNotFoundError:
        raise Failed(f"{command[0]} is not installed") from None
    except subprocess.TimeoutExpired:
        raise Failed(f"{command[0]} took longer than {SECONDS} s") from None
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or [""]
        raise Failed(f"{Path(command[0]).name} ended with {done.returncode}: {said[0]}")
    return done


def check(printed: str) -> None:
    if printed.strip() != CHECKSUM:
        raise Failed(f"wrong result: expected the checksum {CHECKSUM}, got {printed.strip()!r}")


def number(pattern: str, text: str) -> int:
    found = re.search(pattern, text, re.MULTILINE)
    if found is None or int(found.group(1)) == 0:
        raise Failed(f"expected a count, got {text.strip()[-200:]!r}")
    return int(found.group(1))


def instructions(program: str) -> int:
    """Instructions from the beginning of main to its end; the loader's are left out."""
    options = ["--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=main"]
    done = run("valgrind", *options, program)
    check(done.stdout)
    return number(r"Collected : (\d+)", done.stderr)


def size(program: str) -> int:
    """Bytes of code and initialised data, as `size` counts them."""
    check(run(program).stdout)
    lines = run("size", program).stdout.splitlines()
    text, data = lines[1].split()[:2]
    return int(text) + int(data)


COSTS: dict[str, Callable[[str], int]] = {"instructions": instructions, "size": size}


def measure(cost: str, options: Sequence[str]) -> int:
    with tempfile.TemporaryDirectory() as folder:
        program = str(Path(folder) / "work")
        run(os.environ.get("CC", "gcc"), "-std=c11", "-w", *options, str(SOURCE), "-o", program)
        return COSTS[cost](program)


def main(arguments: Sequence[str]) -> int:
    if not arguments or arguments[0] not in COSTS:
        print(f"usage: measure.py {{{','.join(COSTS)}}} [GCC option ...]", file=sys.stderr)
        return 2
    try:
        print(measure(arguments[0], arguments[1:]))
    except Failed as failed:
        print(f"measure.py: {failed}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
