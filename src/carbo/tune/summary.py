"""How a run of the tuner ended, for people and for programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from carbo.integrations.optuna.evaluations import Evaluation
from carbo.tune.evaluate import command_text
from carbo.tune.formatting import clock, number, settings
from carbo.tune.storage import mask_url
from carbo.tune.study_file import StudyFile
from carbo.tune.trials import best, count


@dataclass(frozen=True)
class Summary:
    """The end of a run.

    ended   why it ended
    mine    number of evaluations of this run
    """

    file: StudyFile
    ended: str
    interrupted: bool
    rows: list[Evaluation]
    mine: int
    seconds: float

    @property
    def best(self) -> Evaluation | None:
        return best(self.rows, self.file.direction)

    def as_json(self) -> dict[str, Any]:
        leader = self.best
        found = leader and {
            "value": leader.value,
            "trial": leader.number,
            "params": leader.params,
            "command": self._command(leader),
        }
        return {
            "study": self.file.name,
            "direction": self.file.direction,
            "storage": mask_url(self.file.storage),
            "ended": self.ended,
            "interrupted": self.interrupted,
            "evaluations": count(self.rows),
            "failed": count(self.rows, ("failed",)),
            "evaluations_of_this_run": self.mine,
            "seconds": round(self.seconds, 3),
            "best": found,
        }

    def __str__(self) -> str:
        failed = count(self.rows, ("failed",))
        lines = [
            f"{self.file.name}: {self.ended}",
            f"  {count(self.rows)} evaluations, {self.mine} of them now, {failed} failed; {clock(self.seconds)}",
        ]
        leader = self.best
        if leader is None:
            return "\n".join([*lines, "  no evaluation has succeeded; `carbo trials` shows why"])
        lines += [f"  best {number(leader.value)} (trial {leader.number}): {settings(leader.params)}"]
        lines += [f"  command: {self._command(leader)}"]
        if self.interrupted:
            lines += ["  the same command goes on from here"]
        return "\n".join(lines)

    def _command(self, leader: Evaluation) -> str:
        return command_text(self.file.command, self.file.flags, leader.params, leader.number)
