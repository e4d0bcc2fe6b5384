"""One evaluation: runs the command of a study file at one point, once or several times, and reads the value."""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from carbo.tune.arguments import Flags, Point, arguments, shell_line, words
from carbo.tune.command import KEPT, Job, Output, Runner
from carbo.tune.errors import EvaluationFailed, StudyError
from carbo.tune.output_value import COMBINE, finite, json_field, last_number, pattern_number
from carbo.tune.study_file import Command, StudyFile


class Evaluated(NamedTuple):
    """The value of an evaluation, the values of its runs, and the wall time of all runs together."""

    value: float
    values: list[float]
    seconds: float


@dataclass(frozen=True)
class Evaluator:
    """Evaluates points of a study file."""

    file: StudyFile
    runner: Runner

    def __call__(self, params: Mapping[str, Any], trial: int, mark: str) -> Evaluated:
        """EvaluationFailed with the reason if a run gives no value; Interrupted if the runner is stopped."""
        runs = [self._once(params, trial, repeat, mark) for repeat in range(self.file.plan.repeats)]
        values = [value for value, _ in runs]
        return Evaluated(COMBINE[self.file.plan.aggregate](values), values, sum(seconds for _, seconds in runs))

    def _once(self, params: Mapping[str, Any], trial: int, repeat: int, mark: str) -> tuple[float, float]:
        with tempfile.TemporaryDirectory(prefix="carbo-", ignore_cleanup_errors=True) as tmp:
            point = Point(params, trial, repeat, tmp)
            job = self._job(point, mark)
            result = self._result_file(point, job.cwd)
            before = _stamp(result) if result else None
            output = self.runner.run(job)
            if result and _stamp(result) == before:
                raise EvaluationFailed(f"expected the command to write {str(result)!r}, got no change to it")
            return finite(self._value(output, result)), output.seconds

    def _job(self, point: Point, mark: str) -> Job:
        texts = words(point, self.file.flags)
        command = self.file.command
        return Job(
            arguments=command_line(command, self.file.flags, point),
            cwd=self.file.folder / command.cwd.fill(texts),
            env={name: value.fill(texts) for name, value in command.env.items()},
            timeout=self.file.plan.timeout,
            mark=mark,
        )

    def _result_file(self, point: Point, cwd: Path) -> Path | None:
        file = self.file.value.file
        return None if file is None else cwd / file.fill(words(point, self.file.flags))

    def _value(self, output: Output, result: Path | None) -> float:
        how = self.file.value
        if how.reader == "wall-time":
            return output.seconds
        text = output.stderr if how.stream == "stderr" else output.stdout
        if result is not None:
            text = _ending(result)
        if how.pattern is not None:
            return pattern_number(text, how.pattern)
        return last_number(text) if how.field is None else json_field(text, how.field)


def command_line(command: Command, flags: Flags, point: Point) -> list[str]:
    """The argument list that runs a point."""
    if command.shell:
        return ["/bin/sh", "-c", shell_line(command.run[0], point, flags)]
    return arguments(command.run, point, flags)


def command_text(command: Command, flags: Flags, params: Mapping[str, Any], trial: int = 0) -> str:
    """The command of a point, ready to be pasted into a shell. Its temporary directory is written as TMP."""
    point = Point(params, trial, 0, "TMP")
    if command.shell:
        return shell_line(command.run[0], point, flags)
    return shlex.join(arguments(command.run, point, flags))


def check_program(file: StudyFile) -> None:
    """StudyError if the program, or the directory in which it runs, does not exist."""
    cwd = file.command.cwd
    folder = file.folder if cwd.names else file.folder / cwd.fill({})
    if not folder.is_dir():
        raise StudyError(
            f"{file.path}: command.cwd: expected a directory, got {cwd.text!r}; it is relative to the study file"
        )
    program = file.command.run[0]
    if file.command.shell or program.names or cwd.names:
        return
    name = program.fill({})
    path = str(folder / name) if os.sep in name else name
    if shutil.which(path) is None:
        raise StudyError(
            f"{file.path}: command.run: expected a program that can be executed, got {name!r}; "
            "give its path, from the study file's directory, or put it on PATH"
        )


def _stamp(path: Path) -> tuple[int, ...] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


def _ending(path: Path) -> str:
    """The last KEPT bytes of a file."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - KEPT))
            return file.read(KEPT).decode("utf-8", errors="replace")
    except OSError as error:
        raise EvaluationFailed(f"expected to read {str(path)!r}, got: {error.strerror}") from None
