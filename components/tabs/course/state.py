"""State of the Build tab."""

from __future__ import annotations

from dataclasses import dataclass

from components.state.jobs import Job
from gpt.course.check import Verdict
from gpt.course.steps import STEPS

OPENS = "8"  # step that completes the GPT


@dataclass(frozen=True, eq=False)
class BuildState:
    """State of the Build tab.

    Attributes:
        verdicts: Verdicts from the last check, in the order of the steps, up to the first failure.
        opening: Whether the job opens a model instead of checking.
        notice: The latest error.
    """

    verdicts: tuple[Verdict, ...] = ()
    opening: bool = False
    job: Job | None = None
    notice: ValueError | None = None

    @property
    def busy(self) -> bool:
        return self.job is not None

    @property
    def failed(self) -> Verdict | None:
        """The verdict of the first unfinished step; None if all checked steps are done."""
        return next((verdict for verdict in self.verdicts if verdict.state != "ok"), None)

    @property
    def n_done(self) -> int:
        return sum(verdict.state == "ok" for verdict in self.verdicts)

    @property
    def is_gpt(self) -> bool:
        """Whether the program computes the logits of a GPT."""
        return self.n_done > list(STEPS).index(OPENS)
